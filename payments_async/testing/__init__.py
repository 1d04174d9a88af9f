"""For tests of programs that use this package.

    sandbox = Sandbox()
    client = AsyncPayments(sandbox.api_key, base_url=IN_PROCESS, transport=InProcessTransport(sandbox))

Nothing crosses a socket: requests are answered by the sandbox in the caller's own thread.
"""

from ._in_process import IN_PROCESS, InProcessTransport

__all__ = ["IN_PROCESS", "InProcessTransport"]
