"""Reads a list, newest page first, until every awaited record was seen."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
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
"""Errors that may pass: the next reading is made all the same."""
_NOT_AN_ID = "is the reference of a payout, not its id: payouts.find(reference) gives the payout to wait for"


class _Wanted:
    """The records that one reading has to find."""

    def __init__(self, subscriptions: Collection[Subscription]) -> None:
        self.left: dict[str, list[Subscription]] = {}
        """Subscriptions whose record was not on the pages read so far, by the record's id."""
        for subscription in subscriptions:
            self.left.setdefault(subscription.id, []).append(subscription)
        self.news = False
        """True if a record had changed."""
        self._references: set[str] = set()

    def find_in(self, page: Page[Any]) -> None:
        """Pass the page's records to their subscriptions."""
        for record in page:
            for subscription in self.left.pop(record.id, ()):
                self.news = subscription.show(record) or self.news
            if isinstance(record, Payout) and record.reference in self.left:
                self._references.add(record.reference)

    def refuse_references(self) -> None:
        """At the list's end, fail the waits whose id turned out to be a payout's reference."""
        for text in self._references & self.left.keys():
            for subscription in self.left[text]:
                if subscription.is_unknown:
                    subscription.fail(InvalidRequest({"payout_id": [_NOT_AN_ID]}, operation="wait"))


class ListPoller:
    """Reads one list for the waits of one client and event loop, and for all others of the key.

    While it has waits of its own it takes turns with the key's other pollers: one reads at a time, every five
    seconds at most (`readings`, `schedule`).
    """

    def __init__(self, pipeline: Pipeline, records: RecordList[Any], shared: ListReadings) -> None:
        self._runtime = pipeline.runtime
        self._name = records.operation.name
        self._list = ListReader(pipeline, records)
        self._shared = shared
        self._reader = object()  # identifies this poller without keeping it alive
        self._own: set[Subscription] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def problem(self) -> Exception | None:
        """The error of the latest reading, or the reason why it did not reach the list's end."""
        return self._shared.problem

    def join(self, subscription: Subscription, *, just_read: bool = False, unchanged: bool = False) -> None:
        """Pass every reading of its record to a subscription, until `leave`.

        Args:
            subscription: made on the running event loop.
            just_read: the record was just read singly, so the list can wait.
            unchanged: that record had not changed, and the wait is not new: keep the longer interval.
        """
        now, chance = self._runtime.monotonic(), self._runtime.random()
        self._own.add(subscription)
        self._shared.join(subscription, now, chance, just_read=just_read, unchanged=unchanged)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def leave(self, subscription: Subscription) -> None:
        """End a subscription."""
        self._own.discard(subscription)
        self._shared.leave(subscription)
        if not self._own and self._task is not None:
            with suppress(RuntimeError):  # the loop was closed, and its waits are being collected
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
                news, shared.problem = False, error
            except Exception as error:  # a wait must end with its poller
                self._task = None
                self._fail(error, self._own)
                return
            finally:
                since = runtime.monotonic()
                shared.end(self._reader, since, runtime.random(), news=news)

    async def _read(self) -> bool:
        """Read until every awaited record was seen, or to the list's end; returns whether any changed."""
        subscriptions, began = self._shared.subscriptions(), self._runtime.monotonic()
        wanted, filters, position = _Wanted(subscriptions), _filters(subscriptions), ListPosition(self._name)
        while wanted.left and _leads_on(position):
            await self._rest(schedule.page_due(began, position.pages), position.pages)
            page = await self._list.page(filters, position.cursor)
            position.advance(page)
            self._shared.had_page(position.pages, self._runtime.monotonic())
            wanted.find_in(page)
        if position.is_over:
            wanted.refuse_references()
        self._shared.problem = problem = _problem(wanted, position)
        if problem is not None and position.is_repeated:
            self._fail(problem, chain.from_iterable(wanted.left.values()))
        return wanted.news

    async def _rest(self, due: float, pages: int) -> None:
        """Sleep until `due`, and report meanwhile that this reader is alive."""
        while (rest := due - self._runtime.monotonic()) > 0:
            await self._runtime.sleep(min(rest, schedule.FLOOR))
            self._shared.had_page(pages, self._runtime.monotonic())

    def _fail(self, error: Exception, subscriptions: Iterable[Subscription]) -> None:
        """End this client's own waits among the subscriptions with an error; others have other readers."""
        for subscription in self._own.intersection(subscriptions):
            subscription.fail(error)


def _leads_on(position: ListPosition) -> bool:
    """Return whether the reading continues with the next page."""
    return not position.is_over and position.problem is None and position.pages < schedule.MAX_PAGES


def _problem(wanted: _Wanted, position: ListPosition) -> SearchIncomplete | None:
    """The reason why a reading may have missed a record; None when it cannot have."""
    if position.is_over or not wanted.left:
        return None
    if position.problem is None:
        return position.incomplete(f"the record is not on the newest {position.pages:,} pages")
    return position.incomplete(f"the list cannot be read to its end: {position.problem}")


def _filters(subscriptions: Collection[Subscription]) -> dict[str, Any]:
    """The list's filters: back to the day of the oldest record, when all of them are known."""
    days = [day for subscription in subscriptions if (day := _day(subscription.created_at))]
    return {"created_on_or_after": min(days)} if days and len(days) == len(subscriptions) else {}


def _day(moment: datetime | None) -> date | None:
    """The day in UTC; None for a moment that has none, as the year 1 east of Greenwich."""
    try:
        return moment.astimezone(UTC).date() if moment else None
    except OverflowError:
        return None
