"""Sends one row, under an intent that is on the disk, until its outcome is known or in doubt."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Final

from ..._attrs import maker
from ..._request.key_state import RetryBudget
from ...errors import ConfigurationError, GuardRefused, LimitStoreUnavailable
from .._ledger.ledger import Ledger
from .._protocol import row_state
from .._protocol.attempts import (
    STEPS,
    AttemptReply,
    Kind,
    RowAttempt,
    SendBlock,
    Step,
    after_attempt,
    kind_of,
    may_have_paid,
    send_block,
)
from .._protocol.clocks import INTENT_LIFETIME, ElapsedRange, Timestamps, age
from .._protocol.exit_codes import Stop
from .._protocol.identifiers import body_hash
from .._protocol.records import LedgerRow, Resend, RowOutcome
from .._protocol.responses import Posted, why_of
from .._protocol.rows_in_doubt import Action, at_start
from .._protocol.run_figures import ending_of
from ..ledger_errors import NO_INTENT
from .doubt_queue import BackOff, UnresolvedRow
from .earlier_payouts import EarlierPayouts, SendPermission
from .recorder import Recorder
from .resolver import Resolver
from .service import Service
from .stopping import Stopping

TRIES: Final = 4
"""Posts of a row before other rows go first."""
_LONG: Final = 10.0
"""Seconds: a failing post that took longer is the row's last before other rows go first."""
_MARGIN: Final = 30.0
"""Seconds before an intent expires in which no post is begun."""
_outcome: Final = maker(RowOutcome)
LEASE_LOST: Final = "this process may no longer send the rows of its chunk: its lease was lost or has expired"
_CLOCKS: Final = "this process's clock and the ledger's differ by minutes: set them right, then run again"
_EARLIER: Final = "an earlier payout of it lives, or is not on the list"
_OUTAGE: Final = 30.0
"""About how many seconds lie between the posts of a row while the whole service fails."""


def same_bytes(row: LedgerRow) -> bool:
    """True if the row's body is still the one that was recorded."""
    return body_hash(row.body) == row.body_hash


class Sender:
    """Posts rows. Outcomes go to the recorder, rows in doubt to the back-off or the resolver."""

    def __init__(
        self,
        ledger: Ledger,
        service: Service,
        recorder: Recorder,
        stopping: Stopping,
        resolver: Resolver,
        backoff: BackOff,
    ) -> None:
        self._ledger, self._service = ledger, service
        self._recorder, self._stopping = recorder, stopping
        self._resolver, self._backoff = resolver, backoff
        self._earlier = EarlierPayouts(ledger, service, recorder, stopping)
        self._budget = RetryBudget()
        self.until: float = math.inf
        """Until then a row is posted while the whole service fails; on the runtime's monotonic clock."""

    async def send(self, row: LedgerRow, at: Timestamps) -> None:
        """Post the row, with an intent of the time `at`, until it is decided or the run is halted."""
        try:
            await self._send(row, at)
        finally:
            self._backoff.settled(row.number)

    async def _send(self, row: LedgerRow, at: Timestamps) -> None:
        tries, doubt = TRIES, row.known.was_doubtful
        is_first, is_fresh = row.known.intents <= 1, False
        while not self._stopping.halted:
            if row.known.generation and not await self._may_be_paid_again(row, unsent=not doubt):
                return
            age_of_intent = self._age(at).at_most + _MARGIN
            match send_block(
                durable=True, under_way=0, same_bytes=same_bytes(row), age_of_intent=age_of_intent
            ):
                case None:
                    pass
                case SendBlock.STALE if is_fresh:
                    self._stopping.drain(_CLOCKS)
                    return
                case SendBlock.STALE:
                    renewed = await self._renew(row, doubt=doubt)
                    if renewed is None:
                        return
                    (row, at), is_fresh = renewed, True
                    doubt = row.known.was_doubtful
                    continue
                case why:
                    text = f"row {row.number}: {why}; the ledger is damaged: see `payments payouts check`"
                    self._stopping.halt(text, Stop.RULE)  # every run would end like this one
                    return
            seconds, is_fresh = INTENT_LIFETIME + _MARGIN - age_of_intent, False
            if row.known.generation:
                seconds = min(seconds, self._earlier.seconds_left)
            posted = await self._post(row, seconds, doubt=doubt)
            if posted is None:
                return
            if posted.word:
                self._note(row, posted, is_first=is_first)
                is_first = False
            outage = self._is_outage(posted)
            if posted.counts and not outage:
                was_sent = posted.reply.verdict != "not_sent"
                tries = 0 if was_sent and posted.took >= _LONG else tries - 1
            doubt = doubt or may_have_paid(posted.reply.verdict)
            is_over = outage and self._service.runtime.monotonic() >= self.until
            step = after_attempt(posted.reply, doubt=doubt, tries_left=0 if is_over else tries)
            if step is Step.AGAIN and posted.counts:
                await self._back_off(_OUTAGE if outage else 0.5 * 2.0 ** (TRIES - tries))
            elif step not in (Step.AGAIN, Step.PAUSE):
                await self._conclude(row, posted, step)
                return

    async def _may_be_paid_again(self, row: LedgerRow, *, unsent: bool) -> bool:
        """Whether no earlier payout of the row lives. One that is in doubt for that is looked up."""
        permission = await self._earlier.permission(row, unsent=unsent)
        if permission is SendPermission.LOOK_UP and not self._stopping.halted:
            await self._give_up(row, UnresolvedRow(row.number), Posted(AttemptReply(), code=_EARLIER))
        return permission is SendPermission.SEND and not self._stopping.halted

    def _note(self, row: LedgerRow, posted: Posted, *, is_first: bool) -> None:
        """Count the answer. Attempts are kept of rows that are not created at once."""
        service, recorder, ending = self._service, self._ledger.recorder, ending_of(posted.reply)
        at = service.now()
        if recorder.add(at, ending, posted.took) or ending == "refused":
            limit = service.limit()
            recorder.limit(at, limit.limit / 60.0, limit.closed_for)
        if not (is_first and ending == "created"):
            replayed = posted.reply.replayed
            recorder.attempt(row.number, RowAttempt(at, posted.word, posted.took, replayed))

    def _age(self, then: Timestamps) -> ElapsedRange:
        return age(then, self._service.moment(), self._service.started)

    async def _post(self, row: LedgerRow, seconds: float, *, doubt: bool) -> Posted | None:
        try:
            return await self._service.post(row, seconds, self._ledger.may_send(row))
        except (ConfigurationError, LimitStoreUnavailable) as error:
            self._stopping.halt(str(error))
        except GuardRefused as error:  # what was reserved for it counts no longer
            if doubt:
                await self._give_up(row, UnresolvedRow(row.number))
            else:  # nothing was sent: it stays in flight as it is
                self._drain(f"row {row.number}: {error}", error.room_at)
        return None

    def _drain(self, reason: str, room_at: datetime | None) -> None:
        if room_at is None:  # by its rules it is never allowed
            self._stopping.drain(reason, Stop.RULE)
        else:
            now = self._service.runtime.now()
            self._stopping.drain_for_room(reason, (room_at - now).total_seconds())

    async def _renew(self, row: LedgerRow, *, doubt: bool) -> tuple[LedgerRow, Timestamps] | None:
        """Record a new intent in place of one that is too old; None when it cannot be recorded now.

        Nor when the row was decided meanwhile, by another process.
        """
        try:
            made = (await self._ledger.intent_times([row]))[row.number].key
            if at_start(row.state, self._age(made)) is Action.RESOLVE:
                await self._give_up(row, UnresolvedRow(row.number))
                return None
            claim = await self._ledger.resend([Resend(row.number, absent=not doubt)])
        except NO_INTENT as error:  # this row stays in flight, and the others are finished
            self._stopping.drain(str(error))
            return None
        return (claim.rows[0], claim.at) if claim.rows else None

    def _is_outage(self, posted: Posted) -> bool:
        """True if so many posts fail that this one should not count against its row.

        Its worker then waits instead of taking a new row, until the service recovers.
        """
        step = STEPS[kind_of(posted.reply)]
        if step is Step.AGAIN and posted.reply.verdict == "in_doubt":
            return not self._budget.spend(posted.code or "")
        if step is Step.CONFIRM:
            self._budget.earn()
        return False

    async def _back_off(self, seconds: float) -> None:
        jitter = 0.5 + self._service.runtime.random()
        await self._stopping.rest(jitter * seconds, deep=True)

    async def _conclude(self, row: LedgerRow, posted: Posted, step: Step) -> None:
        reply, known = posted.reply, row.known
        if step is Step.CONFIRM:
            made = row_state.confirm(known, reply.payout_id)
            facts = (posted.status, posted.end, posted.failure, posted.message)
            await self._recorder.put(_outcome(row.number, made, *facts, body_hash=row.body_hash))
        elif step is Step.REJECT:
            await self._recorder.put(_unsuccessful(row, row_state.refuse(known), posted))
        elif step is Step.LATER:
            await self._in_doubt(row, posted)
            self._backoff.add(row.number)
        elif step is Step.RESOLVE:
            refused_now = kind_of(reply) is Kind.REFUSED
            await self._give_up(
                row, UnresolvedRow(row.number, exists=reply.status == 409, refused=refused_now), posted
            )
        elif step is Step.HOLD:
            self._stopping.drain(f"the service cannot be reached ({posted.code})")
        elif step is Step.HALT_LEASE:
            self._stopping.halt(LEASE_LOST)
        else:
            stop = Stop.NO_ACCESS if step is Step.HALT_CREDENTIALS else Stop.NOT_THE_SERVICE
            self._stopping.halt(why_of(posted.code, posted.message), stop)

    async def _give_up(self, row: LedgerRow, doubt: UnresolvedRow, posted: Posted | None = None) -> None:
        """Leave the row to the back-off or the list."""
        await self._in_doubt(row, posted)
        self._resolver.add(doubt)

    async def _in_doubt(self, row: LedgerRow, posted: Posted | None) -> None:
        await self._recorder.put(_unsuccessful(row, row_state.doubt(row.known), posted))


def _unsuccessful(row: LedgerRow, known: row_state.RowKnowledge, posted: Posted | None) -> RowOutcome:
    """Make the outcome of a row that was refused, or whose post is in doubt."""
    code, message = (None, None) if posted is None else (posted.code, posted.message)
    return _outcome(row.number, known, failure_code=code, failure_message=message, body_hash=row.body_hash)
