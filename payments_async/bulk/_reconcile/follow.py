"""Follows created payouts until they are final, with few scans of the list for any number of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..._polling.list_poller import PASSING
from ..._polling.schedule import PollSchedule, interval
from ...errors import PaymentsError
from .._engine.payout_list import PayoutList, listed_since
from .._engine.reading import ListReading
from .._engine.service import Service
from .._engine.stopping import Stopping
from .._ledger.ledger import Ledger
from .._protocol.records import Awaited, RowSet
from .._protocol.responses import FATAL, stop_of, why

_TRIES: Final = 5
"""Consecutive failures of one page after which the scan is restarted."""


class Follower:
    """Copies the service's statuses into the ledger. Payouts that are final there are not read again."""

    def __init__(
        self,
        ledger: Ledger,
        service: Service,
        stopping: Stopping,
        schedule: PollSchedule,
        on_commit: Callable[[], object],
    ) -> None:
        self._ledger, self._service, self._stopping = ledger, service, stopping
        self._schedule, self._on_commit = schedule, on_commit
        self._everywhere = False
        self._trouble = ""

    async def follow(self, seconds: float) -> None:
        """Follow until all created payouts are final, time is up, or `stopping` ends it, with its reason.

        Raises LedgerError.
        """
        until = self._service.runtime.monotonic() + seconds
        while (awaited := await self._ledger.awaited()).rows and not self._stopping.draining:
            rest = self._schedule.rest(self._service.runtime.monotonic(), until)
            if rest is None:
                told = f"the time was over: {_not_final(awaited.rows)}"
                self._stopping.close(f"{told}{self._trouble}")
                return
            await self._stopping.rest(rest, deep=False)
            if not self._stopping.draining:
                await self._walk(awaited, until)

    async def _walk(self, awaited: Awaited, until: float) -> None:
        """Read the list until each awaited payout was seen, or its end; a failed page is read again."""
        runtime = self._service.runtime
        filters = {} if self._everywhere else listed_since(awaited.since)
        walk, seen, news, failures = PayoutList(self._service, filters), RowSet(), False, 0
        reading = ListReading(self._ledger, self._service)
        left = awaited.rows
        while left > 0 and not walk.is_over and failures < _TRIES and not self._stopping.draining:
            if (seconds := until - runtime.monotonic()) <= 0:
                break
            try:
                page = await walk.page(seconds)
            except FATAL as error:
                self._stopping.halt(why(error), stop_of(error))
            except PASSING as error:
                self._trouble, failures = f"; the latest reading failed ({error})", failures + 1
                rest = min(interval(failures, 0, runtime.random()), seconds)
                await self._stopping.rest(rest, deep=False)
            except PaymentsError as error:
                self._trouble, failures = f"; the latest reading failed ({error})", _TRIES
                self._everywhere = True  # the service may refuse the filters
            else:
                self._trouble, failures = "", 0
                shown = await reading.take(page)
                left -= sum(seen.add(each.row.number) for each in shown if each.before.is_awaited)
                news = news or any(each.row is not each.before for each in shown)
                self._on_commit()
        if walk.is_over and left > 0 and walk.unread:
            self._trouble = f"; {walk.unread} payouts of the list could not be read"
        self._schedule.note(runtime.monotonic(), runtime.random(), pages=walk.pages, news=news)
        if news:
            await self._ledger.refresh()
            self._on_commit()


def _not_final(rows: int) -> str:
    return "1 payout is not final yet" if rows == 1 else f"{rows} payouts are not final yet"
