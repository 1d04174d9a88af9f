"""The fastest service that can be paid at and audited: `python -m benchmarks.bulk_stub FILE`.

Creations and the list of payouts only, without limits, keys or life. It knows by one bit which row was paid,
keeps the bodies in FILE and one offset each in memory, and shows a payout as it was asked for. Like
bulk_sandbox it prints its address, and its account when a line comes.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from array import array
from collections import Counter
from decimal import Decimal
from email.utils import formatdate
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs

import msgspec

from benchmarks.bodies import PAYOUT_ANSWER
from benchmarks.bulk_rows import number_of
from benchmarks.bulk_watch import memory

_MARKS = ("id", "amount", "currency", "method", "reference", "phone", "metadata")


class _Instrument(msgspec.Struct):
    phone_number: str


class _Asked(msgspec.Struct):
    """A creation's body: what a payout shows of it, amounts and metadata byte by byte."""

    amount: msgspec.Raw
    currency: str
    method: str
    reference: str
    instrument: _Instrument
    metadata: msgspec.Raw


_read = msgspec.json.Decoder(_Asked).decode


def _pattern() -> bytes:
    """A payout with every field of the interface, to be filled in with `%`."""
    payout = json.loads(PAYOUT_ANSWER)["data"]
    money = {"value": "<amount>", "formatted": None, "short": None, "currency": "<currency>"}
    payout |= {"id": "<id>", "amount": money, "settlement_amount": money, "fee_amount": money}
    payout |= {"reference": "<reference>", "metadata": "<metadata>"}
    payout["method"]["value"] = "<method>"
    payout["instrument"]["phone_number"] = "<phone>"
    text = json.dumps(payout).replace("%", "%%")
    for bare in ("amount", "metadata"):
        text = text.replace(f'"<{bare}>"', f"<{bare}>")
    for name in _MARKS:
        text = text.replace(f"<{name}>", f"%({name})b")
    return text.encode()


_PATTERN = _pattern()


class Stub:
    """What was created, in the order it was."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b", buffering=1 << 20)
        self._ends = array("Q", [0])
        self._paid = bytearray()
        self.counts: Counter[str] = Counter()
        self.sums: dict[str, Decimal] = {}

    def create(self, body: bytes) -> tuple[int, bytes]:
        """Status and answer of POST /payouts."""
        asked = _read(body)
        if not self._mark(number_of(asked.reference)):
            self.counts["duplicates"] += 1
            return 409, b'{"message":"A payout with this reference exists."}'
        self._file.write(body)
        self._ends.append(self._ends[-1] + len(body))
        self.counts["payouts"] += 1
        amount = Decimal(bytes(asked.amount).decode())
        self.sums[asked.currency] = self.sums.get(asked.currency, Decimal(0)) + amount
        return 201, b'{"message":"Payout created.","data":%b}' % _shown(len(self._ends) - 1, asked)

    def page(self, query: str) -> bytes:
        """Answer of GET /payouts: newest first, the cursor is the place of the first payout not yet shown."""
        asked = parse_qs(query)
        size = int(asked.get("per_page", ["10"])[0])
        first = int(asked["cursor"][0]) if "cursor" in asked else len(self._ends) - 1
        places = range(first, max(0, first - size), -1)
        cursor = str(first - size) if first > size else None
        pagination = {"count": len(places), "next_cursor": cursor, "has_more_pages": cursor is not None}
        self.counts["pages"] += 1
        payouts = b",".join(_shown(place, _read(body)) for place, body in self._bodies(places))
        return b'{"data":[%b],"pagination":%b}' % (payouts, json.dumps(pagination).encode())

    def _bodies(self, places: range) -> list[tuple[int, bytes]]:
        self._file.flush()
        ends, descriptor = self._ends, self._file.fileno()
        return [
            (place, os.pread(descriptor, ends[place] - ends[place - 1], ends[place - 1])) for place in places
        ]

    def _mark(self, number: int) -> bool:
        """Whether the row was not paid before; now it is."""
        place, bit = number >> 3, 1 << (number & 7)
        if place >= len(self._paid):
            self._paid.extend(bytes(place + 4096 - len(self._paid)))
        new = not self._paid[place] & bit
        self._paid[place] |= bit
        return new

    def account(self) -> dict[str, object]:
        """What was paid, and how often a row was to be paid twice."""
        return {
            "payouts": sum(byte.bit_count() for byte in self._paid),
            "duplicates": self.counts["duplicates"],
            "pages": self.counts["pages"],
            "sums": {currency: str(amount) for currency, amount in sorted(self.sums.items())},
            "memory": memory(os.getpid()),
        }


def _shown(place: int, asked: _Asked) -> bytes:
    return _PATTERN % {
        b"id": b"po_%012d" % place,
        b"amount": bytes(asked.amount),
        b"currency": asked.currency.encode(),
        b"method": asked.method.encode(),
        b"reference": asked.reference.encode(),
        b"phone": asked.instrument.phone_number.encode(),
        b"metadata": bytes(asked.metadata),
    }


class Line(asyncio.Protocol):
    """One connection: requests with a Content-Length or without a body, one after the other."""

    def __init__(self, stub: Stub) -> None:
        self._stub, self._pending = stub, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one without being a subclass

    def data_received(self, data: bytes) -> None:
        """Answer every whole request."""
        self._pending += data
        while (head := self._pending.find(b"\r\n\r\n")) >= 0:
            _, found, rest = self._pending[:head].lower().partition(b"content-length: ")
            whole = head + 4 + (int(rest.split(b"\r\n", 1)[0]) if found else 0)
            if len(self._pending) < whole:
                return
            status, body = self._answer(self._pending[:head], self._pending[head + 4 : whole])
            self._pending = self._pending[whole:]
            self._transport.write(_HEAD % (status, formatdate(usegmt=True).encode(), len(body)) + body)

    def _answer(self, head: bytes, body: bytes) -> tuple[int, bytes]:
        method, target, _ = head.split(b" ", 2)
        path, _, query = target.decode().partition("?")
        if method == b"POST" and path.endswith("/payouts"):
            return self._stub.create(body)
        if method == b"GET" and path.endswith("/payouts"):
            return 200, self._stub.page(query)
        return 404, b'{"message":"There is nothing here."}'


_HEAD = b"HTTP/1.1 %d Answered\r\nContent-Type: application/json\r\nDate: %b\r\nContent-Length: %d\r\n\r\n"


async def serve(path: Path) -> None:
    """Serve until a line comes on the standard input."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    stub = Stub(path)
    server = await loop.create_server(lambda: Line(stub), "127.0.0.1", 0, backlog=1024)
    port = server.sockets[0].getsockname()[1]
    address = {"base_url": f"http://127.0.0.1:{port}/v1", "api_key": "sk_sandbox_benchmark"}
    print(json.dumps(address), flush=True)
    loop.add_reader(sys.stdin.fileno(), told.set)
    await told.wait()
    print(json.dumps(stub.account()), flush=True)


def main() -> None:
    """Serve on uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(Path(sys.argv[1])))
    else:
        uvloop.run(serve(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
