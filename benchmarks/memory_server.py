"""Serves what memory is measured with: creations that stay unanswered until told, and a list without end."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from benchmarks.answer_server import _body_length as body_length
from benchmarks.wire import PAGE_ANSWER, PAYOUT_ANSWER
from benchmarks.worker import SERVER_CORE, hold

_CURSOR = re.compile(rb"cursor=c(\d+)")
_PAGE = json.dumps({**json.loads(PAGE_ANSWER), "pagination": {"count": 100, "next_cursor": "c@"}}).encode()


def _framed(body: bytes, status: bytes = b"200 OK") -> bytes:
    head = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (
        status,
        len(body),
    )
    return head + body


class _Holding(asyncio.Protocol):
    """`POST /v1/payouts` waits for `POST /v1/release`; `GET /v1/full/9` is answered once nine wait."""

    waiting: list[asyncio.Transport]
    """Of all connections together."""
    watching: list[tuple[int, asyncio.Transport]]
    """Who wants to know when so many wait."""

    def __init__(self) -> None:
        self._pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._pending += data
        while (head := self._pending.find(b"\r\n\r\n")) >= 0:
            whole = head + 4 + body_length(self._pending[:head])
            if len(self._pending) < whole:
                return
            line, self._pending = self._pending[: self._pending.find(b"\r\n")], self._pending[whole:]
            self._answer(line)

    def _answer(self, line: bytes) -> None:
        if line.startswith(b"POST /v1/payouts"):
            self.waiting.append(self._transport)
            self._tell()
        elif line.startswith(b"GET /v1/full/"):
            self.watching.append((int(line.split()[1].rpartition(b"/")[2]), self._transport))
            self._tell()
        elif line.startswith(b"GET /v1/payouts"):
            found = _CURSOR.search(line)
            following = int(found[1]) + 1 if found else 1
            self._transport.write(_framed(_PAGE.replace(b"c@", b"c%d" % following)))
        else:
            for transport in self.waiting:
                transport.write(_framed(PAYOUT_ANSWER, b"201 Created"))
            self.waiting.clear()
            self._transport.write(_framed(b"{}"))

    def _tell(self) -> None:
        for watch in [watch for watch in self.watching if watch[0] <= len(self.waiting)]:
            self.watching.remove(watch)
            watch[1].write(_framed(b"{}"))


def _serve(listener: socket.socket) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(_Holding, sock=listener, backlog=2048)
        await server.serve_forever()

    _Holding.waiting, _Holding.watching = [], []
    hold(SERVER_CORE)
    asyncio.run(main())


@contextmanager
def holding() -> Iterator[str]:
    """The base URL of such a server, in a process of its own."""
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        process = multiprocessing.get_context("fork").Process(target=_serve, args=(listener,), daemon=True)
        process.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            process.terminate()
            process.join()
