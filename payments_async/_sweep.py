"""One walk of a list for everybody who waits on it, however many they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import attrs

from . import _calls, _gaps, _polling
from ._operations import Operation
from ._pipeline import Pipeline
from .errors import (
    APIConnectionError,
    DeadlineExceeded,
    LimitReached,
    RateLimitedError,
    SearchIncomplete,
    ServerError,
    UnprocessableError,
)
from .models import Page

PASSING = (APIConnectionError, DeadlineExceeded, LimitReached, RateLimitedError, ServerError)
"""Failures of a reading that the next one may not have."""


@attrs.define(eq=False, repr=False)
class Watch:
    """One caller waiting for one record."""

    id: str
    created_at: datetime | None
    ends: Callable[[Any], bool]
    """Whether the record, as just read, ends the wait."""
    future: asyncio.Future[Any]
    last: Any = None
    """The record as last read."""
    seen: bool = False
    """Whether it was read since the watch began."""

    def give_up(self) -> None:
        """The time is over: the future's result is None."""
        if not self.future.done():
            self.future.set_result(None)

    def show(self, record: Any) -> bool:
        """Take a reading; whether it is news."""
        news: bool = record != self.last
        self.last, self.seen = record, True
        if not self.future.done() and self.ends(record):
            self.future.set_result(record)
        return news


class Sweep:
    """Walks one list, newest first, as long as somebody waits: every five seconds at most (`_polling`)."""

    def __init__(self, pipeline: Pipeline, operation: Operation[Any], names: Mapping[str, str]) -> None:
        self._pipeline = pipeline
        self._operation = operation
        self._names = names
        self._watches: set[Watch] = set()
        self._task: asyncio.Task[None] | None = None
        self.trouble: Exception | None = None
        """Why the latest walk came to nothing, or not to the list's end."""
        self._swept_at = float("-inf")
        self._pages = 0
        self._unchanged = 0
        self._size: int | None = _gaps.PAGE_SIZE[-1]

    def join(self, watch: Watch, *, just_read: bool = False, unchanged: bool = False) -> None:
        """Show this watch every reading of its record until it leaves.

        `just_read`: its record was read by itself a moment ago, the list can wait. `unchanged`: and was
        what it had been before, so that this is no new wait.
        """
        self._watches.add(watch)
        if not unchanged:
            self._unchanged = 0
        if self._task is None:
            if just_read:
                self._swept_at = self._pipeline.runtime.monotonic()
            self._task = asyncio.get_running_loop().create_task(self._run())

    def leave(self, watch: Watch) -> None:
        """Nobody waits for it any more."""
        self._watches.discard(watch)
        if not self._watches and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        runtime = self._pipeline.runtime
        while True:
            rest = _polling.interval(self._unchanged, self._pages, runtime.random())
            if (delay := self._swept_at + rest - runtime.monotonic()) > 0:
                await runtime.sleep(delay)
            try:
                news = await self._walk()
                self._unchanged = 0 if news else self._unchanged + 1
            except PASSING as error:
                self._unchanged += 1
                self.trouble = error
            except Exception as error:  # whatever it is, nobody may wait for a sweep that has ended
                self._task = None
                self._fail(error)
                return
            finally:
                self._swept_at = runtime.monotonic()

    async def _walk(self) -> bool:
        """Read pages until everybody's record was seen, or the list's end; whether any had changed."""
        wanted: dict[str, list[Watch]] = {}
        for watch in self._watches:
            wanted.setdefault(watch.id, []).append(watch)
        query, news, trouble = self._query(), False, None
        self._pages = 0
        while wanted and self._pages < _polling.MAX_PAGES:
            page = await self._page(query)
            self._pages += 1
            for record in page:
                for watch in wanted.pop(record.id, ()):
                    news = watch.show(record) or news
            if page.next_cursor is None:
                if wanted and not page.is_last:
                    told = f"the list cannot be read to its end: {_gaps.NO_END}"
                    trouble = SearchIncomplete(told, pages=self._pages, cursor=None)
                break
            query["cursor"] = page.next_cursor
        self.trouble = trouble
        return news

    async def _page(self, query: dict[str, str]) -> Page[Any]:
        """One page, of the usual size once the service has refused larger ones (gap D)."""
        try:
            page: Page[Any] = await self._pipeline.run(_calls.reading(self._operation, {}, query=query))
            return page
        except UnprocessableError as error:
            if self._size is None or not _calls.refuses_page_size(error):
                raise
        self._size = None
        del query[self._names["page_size"]]
        return await self._page(query)

    def _query(self) -> dict[str, str]:
        """The list's filters: back to the day of the oldest record, when everybody knows theirs."""
        days = [watch.created_at.astimezone(UTC).date() for watch in self._watches if watch.created_at]
        complete = len(days) == len(self._watches)
        filters = {"page_size": self._size, "created_on_or_after": min(days) if complete and days else None}
        return _calls.filters(self._names, filters)[0]

    def _fail(self, error: Exception) -> None:
        for watch in self._watches:
            if not watch.future.done():
                watch.future.set_exception(error)
