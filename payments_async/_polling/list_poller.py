"""Reads one list for all waits of one client on one event loop.

It runs while one of them goes on. In its turn it reads pages, newest first, until every awaited record was
seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from itertools import chain
from typing import Any

from .._request.pages import ListPosition, ListReader, RecordList
from .._request.pipeline import Pipeline
from ..errors import (
    APIConnectionError,
    DeadlineExceeded,
    InvalidRequest,
    LimitReached,
    RateLimitedError,
    SearchIncomplete,
    ServerError,
)
from ..models import Page, Payout
from . import schedule
from .readings import ListReadings, Subscription

PASSING = (APIConnectionError, DeadlineExceeded, LimitReached, RateLimitedError, ServerError)
"""Failures of a reading that the next one may not have."""


_NOT_AN_ID = "is the reference of a payout, not its id: payouts.find(reference) gives the payout to wait for"


class _Wanted:
    """The records that one walk looks for."""

    def __init__(self, watches: Collection[Subscription]) -> None:
        self.left: dict[str, list[Subscription]] = {}
        """Who watches for what was not met yet, by id."""
        for watch in watches:
            self.left.setdefault(watch.id, []).append(watch)
        self.news = False
        """Whether a record had changed."""
        self._references: set[str] = set()

    def subscriptions(self) -> Iterator[Subscription]:
        """Those whose records were not met yet."""
        return chain.from_iterable(self.left.values())

    def meet(self, page: Page[Any]) -> None:
        """Show the page's records to those who watch for them."""
        for record in page:
            for watch in self.left.pop(record.id, ()):
                self.news = watch.show(record) or self.news
            if isinstance(record, Payout) and record.reference in self.left:
                self._references.add(record.reference)

    def refuse_references(self) -> None:
        """The list was read to its end: end the waits for what is a payout's reference, and no id."""
        for text in self._references & self.left.keys():
            for watch in self.left[text]:
                if watch.is_unknown:
                    watch.fail(InvalidRequest({"payout_id": [_NOT_AN_ID]}, operation="wait"))


class ListPoller:
    """Reads one list, newest first, for the waits of one client and event loop and for all others of the key.

    As long as one of its own waits goes on it takes turns with the key's other sweeps: one reads at a time,
    every five seconds at most (`readings`, `schedule`).
    """

    def __init__(self, pipeline: Pipeline, records: RecordList[Any], shared: ListReadings) -> None:
        self._runtime = pipeline.runtime
        self._name = records.operation.name
        self._list = ListReader(pipeline, records)
        self._shared = shared
        self._reader = object()  # stands for this poller where nothing may keep it alive
        self._own: set[Subscription] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def trouble(self) -> Exception | None:
        """Why the latest walk came to nothing, or not to the list's end."""
        return self._shared.trouble

    def join(self, watch: Subscription, *, just_read: bool = False, unchanged: bool = False) -> None:
        """Show this watch every reading of its record until it leaves.

        `just_read`: its record was read by itself a moment ago, the list can wait. `unchanged`: and was
        what it had been before, so that this is no new wait.
        """
        now, chance = self._runtime.monotonic(), self._runtime.random()
        self._own.add(watch)
        self._shared.join(watch, now, chance, just_read=just_read, unchanged=unchanged)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def leave(self, watch: Subscription) -> None:
        """The watch is over."""
        self._own.discard(watch)
        self._shared.leave(watch)
        if not self._own and self._task is not None:
            with suppress(RuntimeError):  # the loop was closed, and the wait is found forgotten
                self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        runtime, shared = self._runtime, self._shared
        since = runtime.monotonic()
        while True:
            while rest := shared.begin(self._reader, len(self._own), since, runtime.monotonic()):
                await runtime.sleep(min(rest, schedule.FLOOR))
            news: bool | None = None
            try:
                news = await self._read()
            except PASSING as error:
                news, shared.trouble = False, error
            except Exception as error:  # whatever it is, nobody may wait for a sweep that has ended
                self._task = None
                self._fail(error, self._own)
                return
            finally:
                since = runtime.monotonic()
                shared.end(self._reader, since, runtime.random(), news=news)

    async def _read(self) -> bool:
        """Read pages until every awaited record was seen, or the list's end; whether any had changed."""
        subscriptions, began = self._shared.watches(), self._runtime.monotonic()
        wanted, filters, position = _Wanted(subscriptions), _filters(subscriptions), ListPosition(self._name)
        while wanted.left and _leads_on(position):
            await self._rest(schedule.page_due(began, position.pages), position.pages)
            page = await self._list.page(filters, position.cursor)
            position.advance(page)
            self._shared.had_page(position.pages, self._runtime.monotonic())
            wanted.meet(page)
        if position.is_over:
            wanted.refuse_references()
        self._shared.trouble = trouble = _trouble(wanted, position)
        if trouble is not None and position.is_repeated:
            self._fail(trouble, set(wanted.subscriptions()))
        return wanted.news

    async def _rest(self, due: float, pages: int) -> None:
        """Sleep until then, and show meanwhile that this reader is alive."""
        while (rest := due - self._runtime.monotonic()) > 0:
            await self._runtime.sleep(min(rest, schedule.FLOOR))
            self._shared.had_page(pages, self._runtime.monotonic())

    def _fail(self, error: Exception, subscriptions: Collection[Subscription]) -> None:
        """End this client's own waits among these. The others have readers of their own."""
        for subscription in self._own.intersection(subscriptions):
            subscription.fail(error)


def _leads_on(position: ListPosition) -> bool:
    """Whether one reading goes on to the next page."""
    return not position.is_over and position.problem is None and position.pages < schedule.MAX_PAGES


def _trouble(wanted: _Wanted, position: ListPosition) -> SearchIncomplete | None:
    """Why a reading may have missed a record."""
    if position.is_over or not wanted.left:
        return None
    if position.problem is None:
        return position.incomplete(f"the record is not on the newest {position.pages:,} pages")
    return position.incomplete(f"the list cannot be read to its end: {position.problem}")


def _filters(subscriptions: Collection[Subscription]) -> dict[str, Any]:
    """The list's filters: back to the day of the oldest record, when all of them are known."""
    days = [day for each in subscriptions if (day := _day(each.created_at))]
    return {"created_on_or_after": min(days)} if days and len(days) == len(subscriptions) else {}


def _day(moment: datetime | None) -> date | None:
    """The day in UTC; None for a moment that has none, as the year 1 east of Greenwich."""
    try:
        return moment.astimezone(UTC).date() if moment else None
    except OverflowError:
        return None
