"""The list as a hostile service gives it: late, twice, in another order, or with a false word."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import attrs

from payments_async._http.types import HTTPRequest, HTTPResponse, Transport
from payments_async.sandbox import Sandbox
from tests.support.scripted import altered

ALIVE: Final = ("pending", "processing", "completed")
TURNS: Final[Mapping[str, tuple[bool, bool]]] = {
    "pending": (False, False),
    "completed": (True, False),
    "failed": (False, True),
    "cancelled": (False, True),
    "reversed": (True, True),
}
"""{status: whether it is shown with completed_at, and with failed_at}."""
FAITHFUL: Final = ("repeated", "shuffled")
"""Tricks that show each payout as it is."""
_ITEM = dict[str, Any]
_GREETING: Final = "1"
"""The page size of a request that asks for the service's time alone."""


@attrs.define
class HostileList:
    """A transport whose list is honest, in small pages, but for the readings that a trick is planned for."""

    transport: Transport
    service: Sandbox
    chance: random.Random
    requests: int = 0
    """Requests so far."""
    trick: str | None = None
    left: int = 0
    """Readings that the trick still spoils."""
    spared: int = 0
    """Readings before these, which are honest."""
    spoilt: int = 0
    """Readings that the trick has spoilt."""
    content: str | None = None
    """The payout that was shown once with other content than it has."""
    hidden: set[str] = attrs.field(factory=set)
    """Payouts that a reading to the list's end did not show under their references."""
    living: frozenset[str] = frozenset()
    """Payouts that live, as an honest reading has shown to the end."""
    past: list[dict[str, _ITEM]] = attrs.field(factory=list)
    """The list at some earlier moments."""
    _open: dict[str, list[list[_ITEM] | None]] = attrs.field(factory=dict)
    """{cursor of a reading: its pages}; None for a page that cannot be read."""

    def plan(self, trick: str | None) -> None:
        """Play this trick from now on: in one of the next readings, or as long as the list is late."""
        self.trick, self.spoilt, self.content, self.hidden = trick, 0, None, set()
        is_long = trick in (*FAITHFUL, "late")
        self.left, self.spared = (1_000, 0) if is_long else (1, self.chance.choice((0, 0, 0, 1, 2)))

    def remember(self) -> None:
        """Keep the list as it is now, for one that is late."""
        self.past = [*self.past[-3:], {each["id"]: each for each in self._items("")}]

    async def aclose(self) -> None:
        await self.transport.aclose()

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        self.requests += 1
        url = urlsplit(request.url)
        query = dict(parse_qsl(url.query))
        if request.method != "GET" or not url.path.endswith("/payouts") or query.get("per_page") == _GREETING:
            return await self.transport.send(request)
        if (cursor := query.get("cursor", "")).startswith("hostile."):
            request.sent = True
            return self._page(cursor)
        answer = await self.transport.send(request)
        if cursor or self.trick is None or not self.left or answer.status != 200:
            if not cursor and not self.left and "created_at[gte]" not in query:
                self.content = None  # the next reading of everything is honest again
            return answer
        if self.spared:
            self.spared -= 1
            return answer
        return self._begun(answer, url.query)

    def _begun(self, answer: HTTPResponse, query: str) -> HTTPResponse:
        self.left, self.spoilt = self.left - 1, self.spoilt + 1
        items = self._items(query)
        there = {(each["id"], each["reference"]) for each in items}
        pages = self._pages(items, self.chance.choice((1, 2, 3, 5)))
        if None not in pages:
            shown = {(each["id"], each["reference"]) for page in pages for each in page or ()}
            self.hidden |= {name for name, _ in there - shown}
        name = f"hostile.{self.requests}"
        self._open[name], self._answer = pages, answer
        return self._page(f"{name}.0")

    def _pages(self, items: list[_ITEM], size: int) -> list[list[_ITEM] | None]:
        match self.trick:
            case "repeated":
                return [items[max(start - 1, 0) : start + size] for start in _starts(items, size)]
            case "shuffled":
                self.chance.shuffle(items)
            case "late":
                items = list(self._late(items))
            case "one missing":
                if items:
                    del items[self.chance.randrange(len(items))]
            case "a false word":
                self._lie(items)
        pages: list[list[_ITEM] | None] = [items[start : start + size] for start in _starts(items, size)]
        if self.trick == "ends half way":
            pages[self.chance.randint(1, len(pages)) :] = [None]
        return pages

    def _page(self, cursor: str) -> HTTPResponse:
        name, _, place = cursor.rpartition(".")
        pages, number = self._open[name], int(place)
        items = pages[number]
        if items is None:
            return altered(self._answer, status=503, body=b'{"message": "not now"}')
        following = f"{name}.{number + 1}" if number + 1 < len(pages) else None
        body = json.loads(self._answer.body)
        body["data"] = items
        body["pagination"] |= {
            "count": len(items),
            "next_cursor": following,
            "next_page_url": None,
            "has_more_pages": following is not None,
        }
        return altered(self._answer, body=json.dumps(body).encode())

    _answer: HTTPResponse = attrs.field(init=False)

    def _items(self, query: str) -> list[_ITEM]:
        """All that the service has to show, newest first."""
        found, cursor = list[_ITEM](), ""
        headers = {"Authorization": f"Bearer {self.service.api_key}"}
        while True:
            answer = self.service.handle("GET", f"/v1/payouts?{query}{cursor}", headers)
            page = json.loads(answer.body)
            found += page["data"]
            if not page["pagination"]["has_more_pages"]:
                return found
            cursor = f"&cursor={page['pagination']['next_cursor']}"

    def _late(self, items: Sequence[_ITEM]) -> Iterator[_ITEM]:
        """The list of an earlier moment.

        It calls no payout failed that lives: who pays after one reading cannot know of what came after it.
        """
        before = self.chance.choice(self.past)
        for item in items:
            if (old := before.get(item["id"])) is not None:
                yield item if item["status"] in ALIVE and old["status"] not in ALIVE else old

    def _lie(self, items: Sequence[_ITEM]) -> None:
        """One payout has one other field.

        It is not called failed before an honest reading has shown that it lives: no second one can know.
        """
        if not items:
            return
        item = self.chance.choice(items)
        kind = self.chance.choice(("status", "status", "status", *_LIES))
        if kind != "status":
            _LIES[kind](item)
            self.content = item["id"]
            return
        may_fail = item["status"] not in ALIVE or item["id"] in self.living
        status = self.chance.choice([word for word in TURNS if may_fail or word in ALIVE])
        completed, failed = TURNS[status]
        item["status"] = status
        item["completed_at"] = item["created_at"] if completed else None
        item["failed_at"] = item["created_at"] if failed else None


def _starts(items: Sequence[_ITEM], size: int) -> range:
    return range(0, max(len(items), 1), size)


def _other_amount(item: _ITEM) -> None:
    item["amount"]["value"] = float(Decimal(str(item["amount"]["value"])) + 1)


def _other_currency(item: _ITEM) -> None:
    item["amount"]["currency"] = "XAF"


def _no_metadata(item: _ITEM) -> None:
    item["metadata"] = None


def _other_reference(item: _ITEM) -> None:
    item["reference"] = f"{item['reference']}-other"


_LIES: Final[Mapping[str, Callable[[_ITEM], None]]] = {
    "amount": _other_amount,
    "currency": _other_currency,
    "metadata": _no_metadata,
    "reference": _other_reference,
}
TRICKS: Final = (*FAITHFUL, "late", "one missing", "a false word", "a false word", "ends half way")
