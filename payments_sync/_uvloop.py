"""uvloop's event loop without libuv's threads, which a forked child does not have.

libuv resolves names in threads of its own, and asks them about the address of every socket that connects.
Each process waits for them at its exit. A forked child crashes then, since they are the parent's. Python's
own threads do not have this fault.
"""

from __future__ import annotations

import socket
from typing import Any

import uvloop


class ForkSafeLoop(uvloop.Loop):
    """Resolves names in Python's threads, and addresses in none."""

    async def getaddrinfo(
        self,
        host: str | bytes | None,
        port: str | bytes | int | None,
        *,
        family: int = 0,
        type: int = 0,
        proto: int = 0,
        flags: int = 0,
    ) -> Any:
        """As asyncio's own loops do."""
        try:
            return socket.getaddrinfo(host, port, family, type, proto, flags | socket.AI_NUMERICHOST)
        except socket.gaierror:
            return await self.run_in_executor(
                None, socket.getaddrinfo, host, port, family, type, proto, flags
            )
