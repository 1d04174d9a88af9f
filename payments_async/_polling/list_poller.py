"""Reads one list for all waits of one client on one event loop.

It runs while one of them goes on. In its turn it reads pages, newest first, until every awaited record was
seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any

from .. import _assumptions
from .._request import prepare
from .._request.pipeline import Pipeline
from ..errors import (
    APIConnectionError,
    DeadlineExceeded,
    InvalidRequest,
    LimitReached,
    RateLimitedError,
    SearchIncomplete,
    ServerError,
    UnprocessableError,
)
from ..models import Page, Payout
from ..params.operations import Operation
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

    def __init__(
        self, pipeline: Pipeline, operation: Operation[Any], names: Mapping[str, str], shared: ListReadings
    ) -> None:
        self._pipeline = pipeline
        self._operation = operation
        self._names = names
        self._shared = shared
        self._reader = object()  # stands for this sweep where nothing may keep it alive
        self._own: set[Subscription] = set()
        self._task: asyncio.Task[None] | None = None
        self._size: int | None = _assumptions.PAGE_SIZE[-1]

    @property
    def trouble(self) -> Exception | None:
        """Why the latest walk came to nothing, or not to the list's end."""
        return self._shared.trouble

    def join(self, watch: Subscription, *, just_read: bool = False, unchanged: bool = False) -> None:
        """Show this watch every reading of its record until it leaves.

        `just_read`: its record was read by itself a moment ago, the list can wait. `unchanged`: and was
        what it had been before, so that this is no new wait.
        """
        runtime = self._pipeline.runtime
        now, chance = runtime.monotonic(), runtime.random()
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
        runtime, shared = self._pipeline.runtime, self._shared
        since = runtime.monotonic()
        while True:
            while rest := shared.begin(self._reader, len(self._own), since, runtime.monotonic()):
                await runtime.sleep(min(rest, schedule.FLOOR))
            news: bool | None = None
            try:
                news = await self._walk()
            except PASSING as error:
                news, shared.trouble = False, error
            except Exception as error:  # whatever it is, nobody may wait for a sweep that has ended
                self._task = None
                for watch in list(self._own):
                    watch.fail(error)
                return
            finally:
                since = runtime.monotonic()
                shared.end(self._reader, since, runtime.random(), news=news)

    async def _walk(self) -> bool:
        """Read pages until everybody's record was seen, or the list's end; whether any had changed."""
        watches = self._shared.watches()
        wanted, query, pages, trouble = _Wanted(watches), self._query(watches), 0, None
        cursors: set[str] = set()
        while wanted.left and pages < schedule.MAX_PAGES:
            page = await self._page(query)
            pages += 1
            self._shared.had_page(pages, self._pipeline.runtime.monotonic())
            wanted.meet(page)
            if page.is_last:
                wanted.refuse_references()
            cursor = page.next_cursor
            if cursor is None or cursor in cursors:
                if wanted.left and not page.is_last:
                    trouble = _without_end(pages, cursor)
                break
            cursors.add(cursor)
            query["cursor"] = cursor
        self._shared.trouble = trouble
        return wanted.news

    async def _page(self, query: dict[str, str]) -> Page[Any]:
        """One page, of the usual size once the service has refused larger ones (gap D)."""
        try:
            page: Page[Any] = await self._pipeline.run(prepare.reading(self._operation, {}, query=query))
            return page
        except UnprocessableError as error:
            if self._size is None or not prepare.refuses_page_size(error):
                raise
        self._size = None
        del query[self._names["page_size"]]
        return await self._page(query)

    def _query(self, watches: Collection[Subscription]) -> dict[str, str]:
        """The list's filters: back to the day of the oldest record, when everybody knows theirs."""
        days = [day for watch in watches if (day := _day(watch.created_at))]
        complete = len(days) == len(watches)
        filters = {"page_size": self._size, "created_on_or_after": min(days) if complete and days else None}
        return prepare.filters(self._names, filters)[0]


def _day(moment: datetime | None) -> date | None:
    """The day in UTC; None for a moment that has none, as the year 1 east of Greenwich."""
    try:
        return moment.astimezone(UTC).date() if moment else None
    except OverflowError:
        return None


def _without_end(pages: int, cursor: str | None) -> SearchIncomplete:
    why = _assumptions.NO_END if cursor is None else "the service gave the same cursor twice"
    return SearchIncomplete(f"the list cannot be read to its end: {why}", pages=pages, cursor=None)
