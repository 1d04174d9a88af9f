"""How much memory does a waiting call take, and a list that is read to its end? Linux only."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Iterator

from benchmarks.answer_server import Requests, framed, serving
from benchmarks.figures import Figure
from benchmarks.wire import CURSOR, PAGE_ANSWER, PAYOUT_ANSWER
from benchmarks.worker import SERVER_CORE, hold, started

MANY = 1_000
ROWS = 200_000
_NUMBERS = itertools.count(1)
"""Of pages: no cursor may come twice."""


class _Holding(Requests):
    """Holds creations back, says when as many wait as `GET /v1/full/9` wants, has a list without end."""

    creations: list[asyncio.Transport]
    """Of all connections together."""
    wanted: tuple[int, asyncio.Transport] | None

    def asked(self, head: bytes, body: bytes) -> None:
        line = head.partition(b"\r\n")[0]
        if line.startswith(b"POST /v1/payouts"):
            self.creations.append(self.transport)
        elif line.startswith(b"GET /v1/full/"):
            _Holding.wanted = int(line.split()[1].rpartition(b"/")[2]), self.transport
        elif line.startswith(b"GET /v1/payouts"):
            self.transport.write(framed(PAGE_ANSWER.replace(CURSOR, b"c%d" % next(_NUMBERS))))
        else:
            for transport in self.creations:
                transport.write(framed(PAYOUT_ANSWER, "201 Created"))
            self.creations.clear()
            self.transport.write(framed(b"{}"))
        if self.wanted is not None and len(self.creations) >= self.wanted[0]:
            self.wanted[1].write(framed(b"{}"))
            _Holding.wanted = None


def _serve(listener: socket.socket) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(_Holding, sock=listener, backlog=2048)
        await server.serve_forever()

    _Holding.creations, _Holding.wanted = [], None
    hold(SERVER_CORE)
    asyncio.run(main())


def taken(kind: str, many: int) -> float:
    """Bytes, in a process that is started for it: what an earlier round left behind would count."""
    with serving(_serve, backlog=2048) as url, started("held_calls", kind, url) as worker:
        return worker.ask(many=many)["bytes"]


def run(rounds: int, share: float) -> Iterator[Figure]:
    """Calls under way, then rows read."""
    rounds = min(rounds, 3)
    for kind, name, goal in (("ours", "payments-sdk", 20.0), ("aiohttp", "aiohttp by hand", None)):
        values = [taken(kind, MANY) / MANY / 1024 for _ in range(rounds)]
        yield Figure.of(values, f"{name}: a call under way, of {MANY:,}, resident", "KiB", at_most=goal)
    rows = int(ROWS * share)
    values = [taken("list", rows) / 2**20 for _ in range(rounds)]
    yield Figure.of(values, f"growth over {rows:,} payouts read with iterate", "MiB", at_most=16.0)
