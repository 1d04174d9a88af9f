"""One run of a batch: sends what is due, reads the list for what is in doubt, follows, certifies.

Any number of processes do this at once or one after another. What one leaves, another takes up.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final

import attrs

from ..._waits.schedule import PollSchedule
from ...errors import PaymentsError
from .._ledger import figures
from .._ledger.figures import Awaited, Next
from .._ledger.ledger import Ledger
from .._ledger.readings import ReadingLost
from .._protocol.answers import FATAL, refuses_access, stop_of, why
from .._protocol.exit_codes import Stop
from .._protocol.outcomes import Outcome
from ..errors import LedgerUnavailable
from ..report import Activity, BatchFigures, Ended
from .account import admit
from .listing import read_list
from .progress import Progress, repeated
from .sending import Sending
from .service import Service
from .stopping import Stopping

_FACTS_EVERY: Final = 5.0  # seconds between two looks at what an operator has decided
_PUT_BACK: Final = 60.0
"""Seconds by which the database's clock must fall behind this process's to have been put back."""
_SOON: Final = 0.5
_IDLE: Final = 0.3
_OUTBOX_EVERY: Final = 0.5
"""Seconds between two looks for what was committed to an outbox."""


_IN_DOUBT: Final = "rows have no clear answer yet: run again later"
_LIMIT: Final = "the batch's limit (--max-rows, --max-amount) allows no more rows"


@attrs.frozen(kw_only=True)
class RunSettings:
    concurrency: int = 192  # rows sent at a time
    patience: float = 3600.0
    """Seconds, once every other row is decided, for rows in doubt; and for room in a guard's sums."""
    drain: float = 30.0
    """Seconds in which rows that have left may finish after a stop."""
    for_seconds: float | None = None
    """The length of a turn; None to run until nothing is left."""
    follow: bool = False
    """Whether to wait for rows of an outbox that are still to come."""
    wait_final: float | None = None
    """Seconds for which created payouts are followed; None not to."""


class Run:
    def __init__(
        self,
        ledger: Ledger,
        service: Service,
        settings: RunSettings,
        stopping: Stopping,
        on_progress: Callable[[BatchFigures], object] | None,
    ) -> None:
        self._ledger, self._service, self._settings, self._stopping = ledger, service, settings, stopping
        self.progress: Progress = Progress(ledger, service, on_progress)
        self._account = service.account
        self.sending: Sending = Sending(ledger, service, stopping, self.progress, settings.concurrency)
        self._until = math.inf if settings.for_seconds is None else service.clock() + settings.for_seconds
        self._schedule = PollSchedule()
        self._facts_at = self._ahead = -math.inf
        self._read_failed: str | None = None
        self._only_doubt_since: float | None = None
        self._has_looked = False
        """Whether the list was read once more before the run ends with rows in doubt."""
        self._beside: asyncio.Task[None] | None = None
        """A reading of the list while rows are sent: of an outbox that is followed."""

    async def run(self) -> Ended:
        """Work until nothing is left, a turn is over, or the run is stopped. Raises LedgerError."""
        try:
            self._service.bind()
            await admit(self._ledger, self._service)
        except PaymentsError as error:
            if not refuses_access(error):
                raise
            self._stopping.drain(why(error), stop_of(error))
        await self.progress.refresh()
        self.progress.tell()
        with repeated(self._service.runtime, self.progress.tell):
            return await self._run()

    async def _run(self) -> Ended:
        await self._ledger.repair_times()
        self.sending.start()
        try:
            await self._pay()
            if self._settings.wait_final is not None and not self._stopping.draining:
                await self._follow_to_the_end(self._settings.wait_final)
            await self.sending.end(self._settings.drain)
        except BaseException:
            await self.sending.cut()
            raise
        finally:
            if self._beside is not None:
                self._beside.cancel()
                await asyncio.gather(self._beside, return_exceptions=True)
        found = await self.progress.refresh()
        left = await figures.next_of(self._ledger, self._account.environment)
        if self._ledger.known.limit_reason and not left.posts and found.count(Outcome.NOT_STARTED):
            self._stopping.drain(_LIMIT, Stop.RULE)
        return Ended(
            found, self._stopping.reason, self._stopping.kind, self._next(left), self.sending.throttled
        )

    def _next(self, left: Next) -> float:
        seconds = [0.0] if left.ready else [] if left.due is None else [left.due]
        if left.looks or not seconds:
            seconds.append(self._schedule.due - self._service.runtime.monotonic())
        return max(min(seconds), 1.0)

    @property
    def _is_over(self) -> bool:
        return self._stopping.draining or self._service.clock() >= self._until

    # Sending

    async def _pay(self) -> None:
        while not self._is_over:
            await self._look_at_facts()
            await self.progress.refresh_if_due()
            if self._settings.follow:
                await self._read_beside()
            if await self.sending.take():
                if self.sending.took_new:
                    self._only_doubt_since, self._has_looked = None, False
                why = self.sending.unreached
                self.progress.doing(Activity(doing="waiting" if why else "paying", why=why))
                await self.sending.wait(_SOON)
            elif self.sending.busy:
                await self.sending.wait(_SOON)
            elif not await self._idle():
                return

    async def _look_at_facts(self) -> None:
        """Learn what an operator has decided, here or elsewhere."""
        if self._service.clock() < self._facts_at + _FACTS_EVERY:
            return
        self._facts_at = self._service.clock()
        await self._ledger.refresh()
        known = self._ledger.known
        self.sending.paused = known.paused
        ahead = known.now - self._service.clock()
        if ahead < self._ahead - _PUT_BACK:
            await self._ledger.repair_times()
        self._ahead = ahead
        read_at = self._service.runtime.monotonic() - (known.now - known.read_at)
        self._schedule.note_record(read_at, self._service.runtime.random())  # any process's
        self._ledger.require("key fingerprint", known.binding.key_fingerprint, self._account.key)

    async def _idle(self) -> bool:
        """Do what is left while nothing is to be sent now. False when the run has nothing left to do."""
        if self._settings.follow:
            if self._beside is None:
                room = self.sending.room
                self.progress.doing(Activity(doing="waiting" if room else "paying", why=room))
            await self._stopping.rest(_OUTBOX_EVERY)
            return True
        left = await figures.next_of(self._ledger, self._account.environment)
        known = self._ledger.known
        if not (left.posts or left.looks):
            if known.limit_reason is not None and self.progress.count(Outcome.NOT_STARTED):
                told = f"the limit is reached ({known.limit_reason}); it holds until a run sets a higher one"
                self._stopping.drain(told, Stop.RULE)
            return False
        if known.paused is not None:
            if left.looks or left.doubts:
                await self._read()
            self._stopping.drain(f"the batch is paused: {known.paused}", Stop.RULE)
            return False
        if known.is_confirmed is False and self.sending.needs_confirmation:
            self._stopping.drain("its total is not confirmed: `payments payouts confirm`", Stop.RULE)
            return False
        if self._has_no_patience(left):
            if (left.looks or left.waits or left.doubts) and not self._has_looked:
                self._has_looked = True
                await self._read()
                return True
            self._stopping.drain(self.sending.room or self._read_failed or _IN_DOUBT)
            return False
        if self._wants_list(left) and self._is_reading_due():
            await self._read()
        else:
            await self._rest(left)
        return True

    def _has_no_patience(self, left: Next) -> bool:
        now = self._service.clock()
        if self._only_doubt_since is None:
            self._only_doubt_since = now
        if self.sending.room is not None and self.sending.no_room_until - now > self._settings.patience:
            return True
        return now - self._only_doubt_since >= self._settings.patience

    async def _rest(self, left: Next) -> None:
        until = [_FACTS_EVERY]
        if self.sending.room is not None:
            until.append(self.sending.no_room_until - self._service.clock())
        elif left.due is not None:
            until.append(left.due)
        if left.looks or left.waits:
            until.append(self._schedule.due - self._service.runtime.monotonic())
        seconds = max(min(until), _IDLE)
        why = self.sending.room or self.sending.unreached
        if why is None and (left.posts or left.looks):
            why = "rows have no clear answer yet"
        self.progress.doing(Activity(doing="waiting", why=why, next_look=left.due))
        await self.sending.wait(seconds)

    # The list

    def _is_reading_due(self) -> bool:
        return self._service.runtime.monotonic() >= self._schedule.due

    def _wants_list(self, left: Next) -> bool:
        """Whether a row can go on by the list alone."""
        return left.looks or left.waits or (left.doubts and self.sending.room is not None)

    async def _read_beside(self) -> None:
        """Begin a reading if one is due: what was committed meanwhile does not wait for its pages."""
        if self._beside is not None and self._beside.done():
            self._beside.result()
            self._beside = None
        if self._beside is not None or not self._is_reading_due():
            return
        is_wanted = self._wants_list(await figures.next_of(self._ledger, self._account.environment))
        awaited = None if is_wanted else await figures.awaited(self._ledger)
        if awaited is not None and not awaited.count:
            runtime = self._service.runtime
            self._schedule.note_record(runtime.monotonic(), runtime.random())
            return
        self._beside = asyncio.ensure_future(self._read(awaited))

    async def _read(self, awaited: Awaited | None = None) -> None:
        """Read the list once, for what waits for it; with `awaited` only for how payouts end."""
        runtime = self._service.runtime
        self.progress.doing(Activity(doing="following" if awaited else "reading"))
        news, before = None, self._service.listed
        try:
            store = await read_list(
                self._ledger,
                self._service,
                awaited=awaited,
                shows_all=False,
                on_page=self.progress.tell,
                may_go_on=lambda: not self._is_over,
            )
            unread = store.auditor.unread
            self._read_failed = f"{unread} of the list's payouts could not be read" if unread else None
            news = store.has_news
        except ReadingLost:
            pass
        except FATAL as error:
            self._stopping.drain(why(error), stop_of(error))
        except PaymentsError as error:
            if isinstance(error, LedgerUnavailable):
                raise
            self._read_failed = f"the service's list cannot be read ({error})"
        finally:
            pages = (self._service.listed - before) // 100
            self._schedule.note(runtime.monotonic(), runtime.random(), pages=pages, news=news)
            self.progress.doing(Activity(doing="paying"))

    # Following

    async def _follow_to_the_end(self, seconds: float) -> None:
        """Read the list until all created payouts are final, or time is up."""
        runtime = self._service.runtime
        until = runtime.monotonic() + seconds
        while (left := await figures.awaited(self._ledger)).count and not self._is_over:
            await self._look_at_facts()
            rest = self._schedule.rest(runtime.monotonic(), until)
            if rest is None:
                told = "1 payout is" if left.count == 1 else f"{left.count} payouts are"
                trouble = f"; {self._read_failed}" if self._read_failed else ""
                self._stopping.drain(f"the time was over: {told} not final yet{trouble}")
                return
            self.progress.doing(Activity(doing="following", next_look=rest))
            await self._stopping.rest(rest)
            if not self._stopping.draining:
                await self._read(left)
                await self.progress.refresh()
                self.progress.tell()
