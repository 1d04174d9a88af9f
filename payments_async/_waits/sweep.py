"""Reads a list, newest page first, for all who look for records of it: waits and webhook deliveries.

Each client has one sweep of each list and event loop. Waits are served by its schedule, a delivery at once:
it is looked up in pages that are asked for after it came, because older ones may not show what it tells of.
Those who begin together share a run down the list, and every page serves all runs. The youngest run and the
oldest take turns: what goes far back does not hold up the newest page, nor a stream of new ones what is deep.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any, Final

import attrs

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
from ..models import Page, PaymentIntent, Payout
from . import schedule

PASSING: Final = (APIConnectionError, DeadlineExceeded, LimitReached, RateLimitedError, ServerError)
"""Errors that may pass: a wait goes on, with the next reading."""
PAGE_DEADLINE: Final = 15.0
"""Seconds for one page of a lookup, with its retries and its wait for the rate limit."""
BURST: Final = 50
"""Pages that lookups read at once, before their pages are `schedule.PER_PAGE` seconds apart."""
_MOST_AHEAD: Final = (
    3  # pages in a row that the youngest run may read, after older ones had the list to themselves
)
_NOT_AN_ID: Final = (
    "is the reference of a payout, not its id: payouts.find(reference) gives the payout to wait for"
)
Key = tuple[str, str]
"""What a record is known by: `id`, `reference` or `token`, and its text."""
_UNREAD: Final = ListPosition("wait")


@attrs.frozen
class Days:
    """The days of creation that are read, both included; None has no end."""

    since: date | None = None
    until: date | None = None

    def filters(self) -> dict[str, Any]:
        return {"created_on_or_after": self.since, "created_on_or_before": self.until}


@attrs.define(eq=False, repr=False)
class Wanted:
    """A record that somebody looks for. Made on the event loop of the sweep."""

    keys: Sequence[Key]  # the record has one of these
    ends: Callable[[Any], bool] | None = None
    """Returns whether the record, as just read, ends the wait; None when any reading does."""
    record_id: str | None = None
    """Only the record with this id is looked for; others have the same key."""
    days: Days = Days()
    most_pages: int | None = None
    """Pages after which nobody looks any further; `schedule.MAX_PAGES` when None."""
    is_lookup: bool = False
    """True if it is looked up at once, and given up at the end of that reading."""
    last: Any = None  # the record as last read, or as the caller knows it
    is_seen: bool = False  # True if the record was read since this wait began
    position: ListPosition = _UNREAD
    """How far the list was read for it; each run sets its own."""
    future: asyncio.Future[Any] = attrs.field(factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def is_over(self) -> bool:
        """True if it was found or given up."""
        return self.future.done()

    @property
    def is_unknown(self) -> bool:
        """True if only the record's id is known, as the caller wrote it."""
        return self.last is None and self.days.since is None

    def show(self, record: Any) -> bool:
        """Take a reading; returns whether the record has changed."""
        news: bool = self.last is None or record != self.last
        self.last, self.is_seen = record, True
        is_own = self.record_id in (None, record.id)
        if is_own and (self.ends is None or self.ends(record)):
            self.settle(record)
        return news

    def settle(self, record: Any) -> None:
        """End with the record, or with None: it was not found in time. What came first stands."""
        with suppress(asyncio.InvalidStateError):
            self.future.set_result(record)

    def fail(self, error: Exception) -> None:
        if not self.is_over:
            self.future.set_exception(error)


class _Run:
    """One reading down the list, for those who began together."""

    def __init__(self, list_name: str, wanted: Sequence[Wanted], days: Days, began: float) -> None:
        self.days, self.began = days, began
        self.is_lookup = wanted[0].is_lookup
        self.position = ListPosition(list_name)
        self.has_news = False  # True if a record had changed
        self._most = wanted[0].most_pages or schedule.MAX_PAGES
        self._left: dict[Key, list[Wanted]] = {}
        """Those whose record was not on the pages read so far, by each of its keys."""
        self._misnamed: list[Wanted] = []  # those whose id is a payout's reference
        for each in wanted:
            each.position = self.position
            for key in each.keys:
                self._left.setdefault(key, []).append(each)

    def take(self, page: Page[Any]) -> None:
        """Pass a page's records to those who look for them, whichever run has read the page."""
        for record in page.items:
            for key in keys_of(record):
                for each in self._left.get(key, ()):
                    if not each.is_over:
                        self.has_news = each.show(record) or self.has_news
                if not self.is_lookup:
                    self._left.pop(key, None)
            if isinstance(record, Payout):
                self._misnamed += self._left.get(("id", record.reference or ""), ())

    @property
    def goes_on(self) -> bool:
        """True if somebody's record is missing, and a page follows on which it may be."""
        position = self.position
        is_wanted = position.pages < self._most and any(self._missing())
        return is_wanted and not position.is_over and position.problem is None

    def _missing(self) -> Iterator[Wanted]:
        """Those whose record was not seen; one with several keys comes more than once."""
        for all_of_key in self._left.values():
            yield from (each for each in all_of_key if not each.is_over)

    def end(self) -> SearchIncomplete | None:
        """Settle lookups, and waits for what is no id; returns why the run may have missed a record."""
        if self.is_lookup:
            for each in self._missing():
                each.settle(None)
            return None
        if self.position.is_over:
            for each in self._misnamed:
                if each.is_unknown:
                    each.fail(InvalidRequest({"payout_id": [_NOT_AN_ID]}, operation="wait"))
        if self.position.is_over or not any(self._missing()):
            return None
        if self.position.problem is None:
            return self.position.incomplete(f"the record is not on the newest {self.position.pages:,} pages")
        return self.position.incomplete(f"the list cannot be read to its end: {self.position.problem}")

    def fail(self, error: Exception) -> None:
        """End those whose record was not seen with an error."""
        for each in self._missing():
            each.fail(error)


class ListSweep:
    """Reads one list for one client, on one event loop, as long as somebody looks for a record of it."""

    def __init__(self, pipeline: Pipeline, records: RecordList[Any]) -> None:
        self._runtime = pipeline.runtime
        self._name = records.operation.name
        self._list = ListReader(pipeline, records)
        self._schedule = schedule.PollSchedule()
        self._waits: set[Wanted] = set()
        self._lookups: set[Wanted] = set()
        self._new: list[Wanted] = []  # lookups that have no run yet
        self._task: asyncio.Task[None] | None = None
        self._nap: asyncio.Future[None] | None = None
        self._paid_until = float("-inf")
        """Time until which the intervals of all lookups' pages read so far last."""
        self.problem: Exception | None = None
        """The error of the latest reading for waits, or why it did not reach the list's end."""
        self.page_at = float("-inf")  # time at which a page last came

    async def find(self, wanted: Wanted, until: float) -> Any:
        """The record, or None if it was not found by then, monotonic seconds. Raises a reading's error.

        A lookup also gets None at the end of its reading.
        """
        timer = self._runtime.call_later(
            max(until - self._runtime.monotonic(), 0.0), lambda: wanted.settle(None)
        )
        (self._lookups if wanted.is_lookup else self._waits).add(wanted)
        if wanted.is_lookup:
            self._new.append(wanted)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        self._wake()
        try:
            return await wanted.future
        finally:
            timer.cancel()
            self._leave(wanted)

    def expect(self, *, just_read: bool, unchanged: bool) -> None:
        """Fit the schedule to a wait that begins.

        Args:
            just_read: its record was just read singly, so the list can wait.
            unchanged: that record had not changed, and the wait is not new: keep the longer interval.
        """
        if not self._waits:
            self.problem = None
            if just_read:
                self._schedule.note_record(self._runtime.monotonic(), self._runtime.random())
        if not unchanged:
            self._schedule.begin_anew()

    def _leave(self, wanted: Wanted) -> None:
        self._waits.discard(wanted)
        self._lookups.discard(wanted)
        if not self._waits and not self._lookups and self._task is not None:
            with suppress(RuntimeError):  # the loop was closed, and its waits are being collected
                self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        """Read whenever a wait is due or a lookup has come, until nobody looks for a record (`_leave`)."""
        while True:
            rest = self._schedule.due - self._runtime.monotonic() if self._waits else schedule.CEILING
            if rest > 0 and not self._new:
                await self._sleep(rest)
                continue
            try:
                await self._read(for_waits=rest <= 0)
            except Exception as error:  # whoever looks for a record must not outlive its sweep
                self._task = None
                for each in [*self._waits, *self._lookups]:
                    each.fail(error)
                return

    async def _read(self, *, for_waits: bool) -> None:
        """Read until every record was seen, or to the list's end, also for lookups that come meanwhile."""
        runs: list[_Run] = []
        if for_waits:
            now, waits = self._runtime.monotonic(), list(self._waits)
            runs.append(_Run(self._name, waits, _common_days(waits), now))
        try:
            await self._read_all(runs)
        except asyncio.CancelledError:
            for run in runs:
                if not run.is_lookup:
                    self._note(run, news=None)
            raise

    async def _read_all(self, runs: list[_Run]) -> None:
        ahead = 0  # pages that older runs have had more than the youngest, of the latest few
        while True:
            runs += self._new_runs()
            for run in [run for run in runs if not run.goes_on]:
                runs.remove(run)
                self._end(run)
            if not runs:
                return
            now = self._runtime.monotonic()
            in_order = reversed(runs) if ahead else iter(runs)
            run = min(in_order, key=lambda run: max(self._due(run), now))  # the first of several
            if (rest := self._due(run) - now) > 0:
                await self._sleep(rest)
                continue
            ahead = max(ahead - 1, 0) if run is runs[-1] and len(runs) > 1 else min(ahead + 1, _MOST_AHEAD)
            await self._read_page(run, runs)

    def _new_runs(self) -> Iterator[_Run]:
        by_days: dict[tuple[Days, int | None], list[Wanted]] = {}
        for each in self._new:
            by_days.setdefault((each.days, each.most_pages), []).append(each)
        self._new = []
        now = self._runtime.monotonic()
        return (_Run(self._name, wanted, days, now) for (days, _), wanted in by_days.items())

    def _due(self, run: _Run) -> float:
        """Time at which a run may ask for its next page: of each kind 1 % of the read limit."""
        if run.is_lookup:
            return self._paid_until - BURST * schedule.PER_PAGE
        return schedule.page_due(run.began, run.position.pages)

    async def _read_page(self, run: _Run, runs: list[_Run]) -> None:
        arguments = run.days.filters()
        if run.is_lookup:
            self._paid_until = max(self._paid_until, self._runtime.monotonic()) + schedule.PER_PAGE
            arguments["deadline"] = PAGE_DEADLINE
        try:
            page = await self._list.page(arguments, run.position.cursor)
        except Exception as error:
            runs.remove(run)
            self._end_failed(run, error)
            return
        self.page_at = self._runtime.monotonic()
        run.position.advance(page)
        for each in runs:
            each.take(page)

    def _end(self, run: _Run) -> None:
        problem = run.end()
        if run.is_lookup:
            return
        self.problem = problem
        if problem is not None and run.position.is_repeated:
            run.fail(problem)
        self._note(run, news=run.has_news)

    def _end_failed(self, run: _Run, error: Exception) -> None:
        """End a run whose page could not be read: its lookups, and its waits if the error will not pass."""
        if not run.is_lookup:
            self.problem = error
            self._note(run, news=False)
        if run.is_lookup:
            run.fail(error)
        elif not isinstance(error, PASSING):
            for each in list(self._waits):
                each.fail(error)

    def _note(self, run: _Run, *, news: bool | None) -> None:
        pages = min(run.position.pages, schedule.PAGES_AT_ONCE)  # the run itself paused for the others
        self._schedule.note(self._runtime.monotonic(), self._runtime.random(), pages=pages, news=news)

    async def _sleep(self, seconds: float) -> None:
        """Rest; whoever begins to look for a record ends it."""
        self._nap = asyncio.get_running_loop().create_future()
        timer = self._runtime.call_later(seconds, self._wake)
        try:
            await self._nap
        finally:
            timer.cancel()
            self._nap = None

    def _wake(self) -> None:
        if self._nap is not None and not self._nap.done():
            self._nap.set_result(None)


def keys_of(record: Payout | PaymentIntent) -> Iterable[Key]:
    """What a record of a list is known by.

    A payout's reference is unique in the project. A payment is known by its webhook URL, or by `reference` in
    its metadata where the service leaves the URL out.
    """
    yield "id", record.id
    token = (record.webhook_url or "").rpartition("/")[2]
    if isinstance(record, Payout):
        own = record.reference
    else:
        own = None if token else (record.metadata or {}).get("reference")
    yield ("token", token) if own is None else ("reference", str(own))


def day_of(moment: datetime | None) -> date | None:
    """The day in UTC; None for a moment that has none, as the year 1 east of Greenwich."""
    try:
        return moment.astimezone(UTC).date() if moment else None
    except OverflowError:
        return None


def _common_days(wanted: Iterable[Wanted]) -> Days:
    """Back to the day of the oldest record, when all of them are known."""
    since = [each.days.since for each in wanted]
    known = [day for day in since if day is not None]
    return Days(min(known)) if known and len(known) == len(since) else Days()
