"""For tests of programs that use this package: a pytest plugin, and the same without pytest.

    async def test_a_lost_answer_pays_once(sandbox, payments_client):    # fixtures of the plugin
        sandbox.on("payouts.create").respond("lost_response")
        ...

    service = Sandbox()
    client = AsyncPayments(service.api_key, base_url=IN_PROCESS, transport=InProcessTransport(service))

A module imports only from those before it:

    _request_log            the requests of a test as lines, short and masked
    _tenant                 a sandbox as one test uses it: a key of its own; the clock
    _skipping_clock         a runtime whose waits move the sandbox's clock instead of taking time
    _in_process_transport   a transport without a network
    _verdicts               the checks at the end of a test; hides this package's frames in failures
    _aioresponses           lets aioresponses answer on the newest aiohttp
    _plugin                 the fixtures; imports pytest and nothing else until one is used

Public names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._aioresponses import adapt_aioresponses as adapt_aioresponses
    from ._in_process_transport import IN_PROCESS as IN_PROCESS
    from ._in_process_transport import InProcessTransport as InProcessTransport
    from ._skipping_clock import SkippingRuntime as SkippingRuntime
    from ._tenant import SandboxClock as SandboxClock
    from ._tenant import SandboxTenant as SandboxTenant

_HOMES = {
    "_aioresponses": ("adapt_aioresponses",),
    "_in_process_transport": ("IN_PROCESS", "InProcessTransport"),
    "_skipping_clock": ("SkippingRuntime",),
    "_tenant": ("SandboxClock", "SandboxTenant"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*_HOME]  # pyright: ignore[reportUnsupportedDunderAll] # from a table


def __getattr__(name: str) -> Any:
    """A public name, loaded now and kept."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
