"""Serves what memory is measured with: creations that stay unanswered until told, and a list without end."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.answer_server import Requests, framed, serving
from benchmarks.wire import PAGE_ANSWER, PAYOUT_ANSWER
from benchmarks.worker import SERVER_CORE, hold

_CURSOR = re.compile(rb"cursor=c(\d+)")
_PAGE = json.dumps({**json.loads(PAGE_ANSWER), "pagination": {"count": 100, "next_cursor": "c@"}}).encode()


class _Holding(Requests):
    """`POST /v1/payouts` waits for `POST /v1/release`; `GET /v1/full/9` is answered once nine wait."""

    waiting: list[asyncio.Transport]
    """Of all connections together."""
    watching: list[tuple[int, asyncio.Transport]]
    """Who wants to know when so many wait."""

    def asked(self, head: bytes, body: bytes) -> None:
        line = head.partition(b"\r\n")[0]
        if line.startswith(b"POST /v1/payouts"):
            self.waiting.append(self.transport)
            self._tell()
        elif line.startswith(b"GET /v1/full/"):
            self.watching.append((int(line.split()[1].rpartition(b"/")[2]), self.transport))
            self._tell()
        elif line.startswith(b"GET /v1/payouts"):
            found = _CURSOR.search(line)
            following = int(found[1]) + 1 if found else 1
            self.transport.write(framed(_PAGE.replace(b"c@", b"c%d" % following)))
        else:
            for transport in self.waiting:
                transport.write(framed(PAYOUT_ANSWER, "201 Created"))
            self.waiting.clear()
            self.transport.write(framed(b"{}"))

    def _tell(self) -> None:
        for watch in [watch for watch in self.watching if watch[0] <= len(self.waiting)]:
            self.watching.remove(watch)
            watch[1].write(framed(b"{}"))


def _serve(listener: socket.socket) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(_Holding, sock=listener, backlog=2048)
        await server.serve_forever()

    _Holding.waiting, _Holding.watching = [], []
    hold(SERVER_CORE)
    asyncio.run(main())


@contextmanager
def holding() -> Iterator[str]:
    """The base URL of such a server."""
    with serving(_serve, backlog=2048) as url:
        yield url
