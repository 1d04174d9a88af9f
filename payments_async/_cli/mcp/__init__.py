"""`payments mcp`: what a coding agent may see and do in a running sandbox, over the Model Context Protocol.

control    the tools, which are routes of the control API; the answer to a call of one
server     the protocol on stdin and stdout; the only module that imports the MCP SDK
"""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ..._extras import needs

Write = Annotated[bool, Parameter(negative="", show_default=False)]


def mcp(*, sandbox: str | None = None, write: Write = False) -> int:
    """Serve a coding agent the log, findings, records and books of a running `payments sandbox`.

    The agent's program starts this command and speaks to it on stdin and stdout. It reads only, unless
    `--write` is given. It works on a sandbox on this machine only, and refuses live keys.

    Parameters
    ----------
    sandbox
        The sandbox's address; PAYMENTS_BASE_URL, or http://127.0.0.1:7788, unless given.
    write
        Also set and remove fault rules, advance the clock, pay as the payer, and bring events about.
    """
    try:
        from .server import serve
    except ImportError as missing:
        raise ImportError(needs("payments mcp needs", "sandbox", "mcp")) from missing
    return serve(sandbox, may_write=write)
