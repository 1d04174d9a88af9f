"""Created payouts followed until they are final: few walks of the list, however many rows there are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import date
from typing import Final

from ..._polling import schedule
from ..._polling.list_poller import PASSING
from ..._runtime import Runtime
from ...errors import PaymentsError
from ..engine.mirror import Bits, Mirror
from ..engine.payout_list import PayoutList
from ..engine.service import Service, day_of
from ..engine.stopping import Stopping
from ..ledger.ledger import Ledger
from ..protocol.clocks import Timestamps, walk_start
from ..protocol.records import Awaited, LedgerRow
from ..protocol.responses import FATAL, why
from ..protocol.row_state import RowState
from ..protocol.stop_rules import Stop

_TRIES: Final = 5
"""Failures in a row of one page, after which the walk is begun anew."""


class PollSchedule:
    """When the list is walked next: as for a single payout, never more often than every five seconds.

    The interval grows while nothing changes and with the pages that a walk takes, and is jittered
    (Limits, Polling guidance).
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._walked_at = float("-inf")
        self._pages = self._unchanged = 0

    def note_walk(self, pages: int, *, news: bool) -> None:
        """A walk has ended."""
        self._walked_at, self._pages = self._runtime.monotonic(), pages
        self._unchanged = 0 if news else self._unchanged + 1

    def rest(self, until: float) -> float | None:
        """Seconds to the next walk, which is to begin before `until`; None when it cannot.

        The last one comes early, where the floor allows, so that the time given is used.
        """
        now = self._runtime.monotonic()
        usual = schedule.interval(self._unchanged, self._pages, self._runtime.random())
        least = schedule.interval(0, self._pages, 0.0)
        if (earliest := max(now, self._walked_at + least)) > until:
            return None
        return max(earliest, min(self._walked_at + usual, until)) - now

    def breather(self, failures: int) -> float:
        """Seconds until a page that failed is asked for again."""
        return schedule.interval(failures, 0, self._runtime.random())


class Follower:
    """Mirrors the service's statuses into the ledger. What is final there is not asked about again."""

    def __init__(
        self,
        ledger: Ledger,
        service: Service,
        stopping: Stopping,
        rhythm: PollSchedule,
        on_commit: Callable[[], object],
        on_walk: Callable[[], Awaitable[object]],
    ) -> None:
        self._ledger, self._service, self._stopping = ledger, service, stopping
        self._rhythm, self._on_commit, self._on_walk = rhythm, on_commit, on_walk
        self._mirror = Mirror(ledger)
        self._everywhere = False
        self._trouble = ""

    async def follow(self, seconds: float) -> None:
        """Until all created payouts are final, the time is over, or `stopping` ends it; it says why.

        Raises LedgerError.
        """
        until = self._service.runtime.monotonic() + seconds
        while (awaited := await self._ledger.awaited()).rows and not self._stopping.draining:
            rest = self._rhythm.rest(until)
            if rest is None:
                told = f"the time was over: {_not_final(awaited.rows)}"
                self._stopping.close(f"{told}{self._trouble}")
                return
            await self._stopping.rest(rest, deep=False)
            if not self._stopping.draining:
                await self._walk(awaited, until)

    async def _walk(self, awaited: Awaited, until: float) -> None:
        """Read the list until each awaited payout was seen, or its end; a failed page is read again."""
        walk, seen, news, failures = PayoutList(self._service, self._filters(awaited)), Bits(), False, 0
        left = awaited.rows
        while left > 0 and not walk.is_over and failures < _TRIES and not self._stopping.draining:
            if (seconds := until - self._service.runtime.monotonic()) <= 0:
                break
            try:
                page = await walk.page(seconds)
            except FATAL as error:
                self._stopping.halt(why(error), Stop.NO_ENTRY)
            except PASSING as error:
                self._trouble, failures = f"; the latest reading failed ({error})", failures + 1
                await self._stopping.rest(min(self._rhythm.breather(failures), seconds), deep=False)
            except PaymentsError as error:
                self._trouble, failures = f"; the latest reading failed ({error})", _TRIES
                self._everywhere = True  # its filters may be what the service refuses
            else:
                self._trouble, failures = "", 0
                shown = await self._mirror.take(page)
                left -= sum(seen.add(each.row.number) for each in shown if _is_awaited(each.before))
                news = news or any(each.row is not each.before for each in shown)
                self._on_commit()
        if walk.is_over and left > 0 and walk.unread:
            self._trouble = f"; {walk.unread} payouts of the list could not be read"
        self._rhythm.note_walk(walk.pages, news=news)
        if news:
            await self._on_walk()
            self._on_commit()

    def _filters(self, awaited: Awaited) -> dict[str, str | date]:
        """The part of the list that surely holds the awaited payouts."""
        if awaited.since is None or self._everywhere:
            return {}
        start = walk_start(Timestamps(0.0, 0.0, "", awaited.since))
        return {} if start is None else {"created_on_or_after": day_of(start)}


def _not_final(rows: int) -> str:
    return "1 payout is not final yet" if rows == 1 else f"{rows} payouts are not final yet"


def _is_awaited(row: LedgerRow) -> bool:
    return row.state is RowState.CREATED and not row.final
