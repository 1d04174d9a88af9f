"""Takes rows that are due and sends them. What each answer proves is recorded in groups.

A row is sent once a take, within 45 of the 60 seconds for which it is this process's, by a clock that counts
suspension. So there are no two loops that retry one payout. That is asked again at the very last, behind the
rate limiter, of the transport itself: a process that slept with a row in hand sends nothing after it woke.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import attrs

from ..._assumptions import KEY_TRUSTED_FOR
from ...errors import ConfigurationError, GuardRefused, LimitStoreUnavailable
from .._ledger.ledger import SENT_WITHIN, Ledger
from .._protocol.answers import Kind, Word, looked_for, never_allowed, stop_of, unsent, why_of, word_of
from .._protocol.exit_codes import Stop
from .._protocol.outcomes import RowState
from .._protocol.records import LedgerRow
from ..errors import LedgerError
from .progress import Progress
from .service import KeyReplaced, Service
from .stopping import Stopping, too_many_failures

_AHEAD: Final = 2  # rows in hand for each that is sent at a time
_LEAST: Final = 1.0  # seconds that a row must have left to be sent
_GROUP: Final = 200
_GROUP_FOR: Final = 0.05  # seconds for which outcomes are gathered
_UNREACHED: Final = 30.0  # seconds of failures to connect after which a run ends


@attrs.frozen
class InHand:
    """A row that this process has taken, and until when it may be sent."""

    row: LedgerRow
    until: float  # by the clock that counts suspension
    at: float  # when it was taken, by the database's clock


class Sending:
    def __init__(
        self, ledger: Ledger, service: Service, stopping: Stopping, progress: Progress, width: int
    ) -> None:
        """`width`: rows that are sent at a time."""
        self._ledger, self._service, self._stopping = ledger, service, stopping
        self._progress, self._width = progress, width
        self._account = service.account
        self.needs_confirmation: bool = self._account.environment == "live" and not ledger.known.is_outbox
        """Whether nothing is sent before its total was confirmed."""
        self.trouble: list[str] = []  # what is wrong with rows that cannot be read
        self._queue: deque[InHand] = deque()
        self._wanted = asyncio.Event()
        self._words: list[Word] = []
        self._spoken = asyncio.Event()
        self._is_ending = self._is_over = False
        self._tasks: list[asyncio.Task[None]] = []
        self._recording: asyncio.Task[None]
        self._failing = 0
        self._failing_since = 0.0
        self._is_unreached = True
        self._decided = self._failed = 0
        self.busy: int = 0  # rows in hand whose outcome is not recorded
        self.paused: str | None = None  # why nothing is sent now; None while rows are
        self.no_room_until: float = 0.0
        """Until when a guard's sums have no room, by the clock that counts suspension."""
        self.room: str | None = None
        """Why there is no room in a guard's sums; None while there may be."""
        self.unreached: str | None = None  # why nothing gets out; None while the service answers
        self.took_new: bool = True
        """Whether a row that was taken last is not in doubt."""
        self.throttled: int = 0  # how many 429s this process was given

    def start(self) -> None:
        self._tasks = [asyncio.ensure_future(self._send_rows()) for _ in range(self._width)]
        self._recording = asyncio.ensure_future(self._record_words())

    # Taking

    @property
    def _room(self) -> int:
        """How many more rows may be taken. One at a time while the service fails: few are in doubt."""
        most = 1 if self._failing > self._width else _AHEAD * self._width
        return most - self.busy

    async def take(self) -> bool:
        """Take rows if there is room for a good many. False if none was due. Raises LedgerError."""
        room = self._room
        if room < self._width and self.busy:
            return True
        if self._failing:
            await self._stopping.rest(min(self._failing / 10.0, 5.0))
        asked = self._service.clock()
        if self.paused is not None or asked < self.no_room_until or self._stopping.draining:
            return False
        taken = await self._ledger.take(
            max(room, 1), self._account, needs_confirmation=self.needs_confirmation
        )
        # such a row is taken again each minute
        self.trouble += [each for each in taken.unreadable if each not in self.trouble]
        for row in taken.rows:
            within = min(SENT_WITHIN, taken.cleared_for.get(row.id, SENT_WITHIN))
            self._queue.append(InHand(row, asked + within, taken.at))
        self.busy += len(taken.rows)
        self.took_new = not all(row.doubted for row in taken.rows)
        self._progress.taken(taken.rows)
        self._wanted.set()
        return bool(taken.rows)

    async def wait(self, seconds: float) -> None:
        """Wait until an outcome was recorded, at most so long."""
        await self._stopping.rest(seconds, until_news=True)
        self._raise_failure()

    # Sending

    async def _send_rows(self) -> None:
        while True:
            while not self._queue:
                if self._is_ending:
                    return
                self._wanted.clear()
                await self._wanted.wait()
            hand = self._queue.popleft()
            try:
                word = await self._word(hand)
            except BaseException:  # it was sent perhaps: who looks at it next finds it in doubt
                self.busy -= 1
                raise
            self._words.append(word)
            self._spoken.set()

    async def _word(self, hand: InHand) -> Word:
        row, seconds = hand.row, hand.until - self._service.clock()
        if not self._may_send(hand) or seconds < _LEAST:
            return unsent(row)
        if row.doubted and row.key_since is not None and hand.at - row.key_since >= KEY_TRUSTED_FOR:
            return looked_for(row)
        try:
            posted = await self._service.send(
                row, self._ledger.known.binding, seconds, lambda: self._may_send(hand)
            )
        except GuardRefused as error:
            return self._without_room(row, error)
        except KeyReplaced as error:
            self._stopping.drain(str(error))
            return unsent(row)
        except (ConfigurationError, LimitStoreUnavailable) as error:
            self._stopping.drain(str(error), stop_of(error))
            return unsent(row)
        word = word_of(row, posted)
        self._note(word)
        return word

    def _may_send(self, hand: InHand) -> bool:
        """Asked at the very last, before the first byte leaves."""
        is_stopped = self._stopping.draining or self.paused is not None
        return not is_stopped and self._service.clock() < hand.until

    def _without_room(self, row: LedgerRow, error: GuardRefused) -> Word:
        """Give back a row that a guard refuses: until there is room, or for good by the guard's rules.

        A file was checked against the rules as it was loaded: they have changed since, and the run stops. An
        outbox's rows come unchecked: this one is rejected, and the others are paid.
        """
        if error.room_at is None and self._ledger.known.is_outbox:
            return never_allowed(row, str(error))
        if error.room_at is None:
            self._stopping.drain(f"row {row.number}: {error}", Stop.RULE)
            return unsent(row)
        seconds = max((error.room_at - self._service.runtime.now()).total_seconds(), 0.0)
        self.room = f"row {row.number}: {error}"
        self.no_room_until = self._service.clock() + seconds
        return unsent(row)

    def _note(self, word: Word) -> None:
        """Learn from an answer how the service is, and whether anything else can be sent."""
        self.room = self.unreached = None
        posted = word.posted
        if word.stop is not None and posted is not None:
            self._stopping.drain(why_of(posted.code, posted.message), word.stop)
        if word.kind is Kind.THROTTLED:
            self.throttled += 1
        elif word.is_failure:
            if not self._failing:
                self._failing_since, self._is_unreached = self._service.clock(), True
            self._failing += 1
            self._is_unreached &= word.kind is Kind.UNSENT
            failing_for = self._service.clock() - self._failing_since
            if self._is_unreached and posted is not None:
                self.unreached = f"the service cannot be reached ({posted.code})"
                if failing_for >= _UNREACHED:
                    self._stopping.drain(self.unreached)
        elif word.kind is not Kind.WITHHELD:
            self._failing = 0

    # Recording

    async def _record_words(self) -> None:
        while not (self._is_over and not self._words):
            await self._spoken.wait()
            if len(self._words) < _GROUP and self.busy > len(self._words):
                await self._service.runtime.sleep(_GROUP_FOR)
            self._spoken.clear()
            while self._words:
                group, self._words = self._words[:_GROUP], self._words[_GROUP:]
                await self._ledger.record(group)
                self.busy -= len(group)
                self._progress.spoken(group)
                await self._judge_failures(group)
            self._stopping.wake(news=True)

    async def _judge_failures(self, found: Sequence[Word]) -> None:
        self._decided += sum(word.state in (RowState.CREATED, RowState.REJECTED) for word in found)
        self._failed += sum(word.state is RowState.REJECTED for word in found)
        reason = too_many_failures(self._ledger.known.max_failure_rate, self._decided, self._failed)
        if reason is not None and self.paused is None:
            self.paused = reason
            await self._ledger.change(paused=reason)

    def _raise_failure(self) -> None:
        for task in (*self._tasks, self._recording):
            if task.done() and not task.cancelled() and (error := task.exception()):
                raise error

    # The end

    async def end(self, drain: float) -> None:
        """Give back what was not begun, and let what has left finish within so many seconds."""
        self._words += [unsent(each.row) for each in self._queue]
        self._queue.clear()
        if self._words:
            self._spoken.set()
        self._is_ending = True
        self._wanted.set()

        def cut_short() -> None:
            for task in self._tasks:
                if not task.done():
                    self._stopping.drain("the time to drain was over")
                    task.cancel()

        timer = self._service.runtime.call_later(drain, cut_short)
        try:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        finally:
            timer.cancel()
        await self._end_recording()
        self._raise_failure()

    async def cut(self) -> None:
        """End at once: what has left stays under way, for whoever looks next. What is known is recorded."""
        self._queue.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with suppress(LedgerError):
            await self._end_recording()

    async def _end_recording(self) -> None:
        self._is_over = True
        self._spoken.set()
        await self._recording
