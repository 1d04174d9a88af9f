"""The fastest service that can be paid at and audited, and the input of the bulk benchmarks.

It knows creations, the list of payouts and `GET /account`; no limits, keys or life. It keeps the bodies in
memory, 0.7 kB a payout, and shows a payout as it was asked for.
"""

from __future__ import annotations

import asyncio
import csv
import json
import socket
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs
from urllib.request import urlopen

import msgspec

from benchmarks.answer_server import Requests, framed, run, serving
from benchmarks.wire import KEY, PAYOUT_ANSWER

# The input: each row is a function of its number

_COLUMNS = (
    *("reference", "amount", "currency", "method", "description"),
    *("instrument.phone_number", "instrument.country", "instrument.account_name", "metadata.depot"),
)


def _money(number: int) -> tuple[str, Decimal]:
    """Currency and amount of a row: every fourth is in whole francs, the others have hundredths."""
    if number % 4 == 0:
        return "XOF", Decimal(500 + number * 7 % 90_000)
    return "GHS", Decimal(100 + number * 37 % 900_000) / 100


def write_input(path: Path, rows: int) -> None:
    """A payout file of so many rows."""
    with path.open("w", newline="", encoding="utf-8") as file:
        written = csv.writer(file)
        written.writerow(_COLUMNS)
        for number in range(1, rows + 1):
            (currency, amount), phone = _money(number), f"+23324{number * 7 % 900_000:07d}"
            what = "mtn_momo_gh", f"Weekly rider settlement, row {number}"
            written.writerow(
                (f"bench-{number:09d}", amount, currency, *what, phone, "GH", "Ama Mensah", "accra-central")
            )


def sums(rows: int) -> dict[str, str]:
    """The sum of the amounts of so many rows by currency."""
    return _added(_money(number) for number in range(1, rows + 1))


def _added(amounts: Iterator[tuple[str, Decimal]]) -> dict[str, str]:
    found: dict[str, Decimal] = {}
    for currency, amount in amounts:
        found[currency] = found.get(currency, Decimal(0)) + amount
    return {currency: f"{amount.normalize():f}" for currency, amount in sorted(found.items())}


# The service

_PAYOUT: dict[str, Any] = json.loads(PAYOUT_ANSWER)["data"]
"""A payout with every field of the interface, from which each is made."""


class Books:
    """What was created, in the order it was."""

    def __init__(self) -> None:
        self._bodies: list[bytes] = []
        self._moments = array("d")
        self._references: set[str] = set()
        self._refused = 0

    def create(self, body: bytes) -> tuple[str, object]:
        """Status and answer of POST /payouts."""
        reference = msgspec.json.decode(body)["reference"]
        if reference in self._references:
            self._refused += 1
            return "409 Conflict", {"message": "A payout with this reference exists."}
        self._references.add(reference)
        self._bodies.append(body)
        self._moments.append(time.time())
        return "201 Created", {"message": "Payout created.", "data": self._shown(len(self._bodies))}

    def page(self, query: str) -> object:
        """Answer of GET /payouts: newest first, the cursor is the place of the first payout not yet shown."""
        asked = parse_qs(query)
        size = int(asked.get("per_page", ["10"])[0])
        first = int(asked["cursor"][0]) if "cursor" in asked else len(self._bodies)
        places = range(first, max(0, first - size), -1)
        cursor = str(first - size) if first > size else None
        pagination = {"count": len(places), "next_cursor": cursor, "has_more_pages": cursor is not None}
        return {"data": [*map(self._shown, places)], "pagination": pagination}

    def _shown(self, place: int) -> dict[str, Any]:
        asked = msgspec.json.decode(self._bodies[place - 1])
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._moments[place - 1]))
        money = {**_PAYOUT["amount"], "value": asked["amount"], "currency": asked["currency"]}
        phone = {"phone_number": asked["instrument"]["phone_number"]}
        return {
            **_PAYOUT,
            **dict.fromkeys(("amount", "settlement_amount", "fee_amount"), money),
            **dict.fromkeys(("created_at", "initiated_at"), at),
            "id": f"po_{place:012}",
            "method": {**_PAYOUT["method"], "value": asked["method"]},
            "reference": asked["reference"],
            "instrument": {**_PAYOUT["instrument"], **phone},
            "metadata": asked["metadata"],
        }

    def account(self) -> dict[str, Any]:
        """What was paid, how fast, and how often a row was to be paid twice."""
        asked = map(msgspec.json.decode, self._bodies)
        moments = self._moments
        most = first = 0
        for last, at in enumerate(moments):  # the busiest minute, wherever it begins
            while at - moments[first] >= 60.0:
                first += 1
            most = max(most, last + 1 - first)
        return {
            "payouts": len(self._bodies),
            "refused": self._refused,
            "sums": _added((each["currency"], Decimal(str(each["amount"]))) for each in asked),
            "seconds": moments[-1] - moments[0] if moments else 0.0,
            "busiest_minute": most,
        }


class _Line(Requests):
    def __init__(self, books: Books) -> None:
        super().__init__()
        self._books = books

    def asked(self, head: bytes, body: bytes) -> None:
        method, target, _ = head.split(b" ", 2)
        path, _, query = target.decode().partition("?")
        if method == b"POST":
            status, answer = self._books.create(body)
        else:
            books, status = self._books, "200 OK"
            answer = books.page(query) if path.endswith("/payouts") else books.account()
        text = msgspec.json.encode(answer)
        self.transport.write(framed(text, status, (f"Date: {formatdate(usegmt=True)}",)))


def _serve(listener: socket.socket) -> None:
    async def main() -> None:
        books = Books()
        server = await asyncio.get_running_loop().create_server(lambda: _Line(books), sock=listener)
        await server.serve_forever()

    run(main())


class Service:
    """A running service."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.variables = {"PAYMENTS_BASE_URL": url, "PAYMENTS_API_KEY": KEY}
        """What a program needs that pays at it."""

    def account(self, rows: int) -> dict[str, Any]:
        """Its account, which must have paid so many rows once each, to the cent."""
        with urlopen(f"{self._url}/account") as answer:
            found: dict[str, Any] = json.load(answer)
        paid = found["payouts"], found["refused"], found["sums"]
        assert paid == (rows, 0, sums(rows)), f"paid wrongly: {paid}"
        return found


@contextmanager
def open_service() -> Iterator[Service]:
    """Context of a service in a process of its own."""
    with serving(_serve) as url:
        yield Service(url)
