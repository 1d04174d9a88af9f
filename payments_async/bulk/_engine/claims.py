"""Chooses the next rows and records their intents: rows of earlier runs, waiting ones, new ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._ledger.ledger import Ledger
from .._protocol.clocks import age
from .._protocol.exit_codes import Stop
from .._protocol.outcomes import Outcome, Sums, count_rows
from .._protocol.records import Claim, LedgerRow, Resend, grouped
from .._protocol.row_state import UNFINISHED, RowState
from .._protocol.rows_in_doubt import Action, at_start
from .._protocol.stop_rules import StopRules, allows_any, stop_reason
from ..ledger_errors import NO_INTENT
from .doubt_queue import BackOff, UnresolvedRow
from .guarded_claims import GuardedClaims
from .recorder import Recorder
from .resolver import Resolver
from .sender import same_bytes
from .service import Service
from .stopping import Stopping


class RowClaims:
    """Claims the rows of one run, a group at a time; None when no row is left to be sent now."""

    def __init__(
        self,
        ledger: Ledger,
        service: Service,
        recorder: Recorder,
        stopping: Stopping,
        resolver: Resolver,
        backoff: BackOff,
        *,
        rules: StopRules,
        size: int,
        patience: float,
    ) -> None:
        """`size`: rows of a group. `patience`: seconds in which a guard has to have room for the next row."""
        self._ledger, self._service, self._recorder = ledger, service, recorder
        self._stopping, self._resolver, self._backoff = stopping, resolver, backoff
        self._rules, self._size = rules, size
        self._guarded = GuardedClaims(ledger, service, stopping, patience)
        self._earlier = grouped(ledger.unfinished(), size)
        self._due: Iterator[list[int]] = iter(())

    @property
    def waits_for(self) -> str | None:
        """Why new rows wait; None while they do not."""
        return self._guarded.waits_for

    async def aclose(self) -> None:
        """Stop reading rows of earlier runs."""
        await self._earlier.aclose()

    async def next(self) -> Claim | None:
        """Claim rows of earlier runs, then those whose back-off is over, then new ones."""
        if self._stopping.draining:
            return None
        if (rows := await anext(self._earlier, None)) is not None:
            return await self._again(rows)
        return await self.waiting() or await self._new()

    async def waiting(self) -> Claim | None:
        """Claim rows whose back-off is over."""
        if self._stopping.draining:
            return None
        numbers = next(self._due, None)
        if numbers is None:
            self._due = self._backoff.take(self._size)
            numbers = next(self._due, None)
        if numbers is None:
            return None
        await self._recorder.flush()
        rows = (await self._ledger.numbered(numbers)).values()
        return await self._again([row for row in rows if row.state in UNFINISHED])

    async def _again(self, rows: Sequence[LedgerRow]) -> Claim:
        """Record intents for the rows that may be posted again; leave the others to the list."""
        nothing = Claim((), self._service.moment())
        try:
            times = await self._ledger.intent_times(rows)
            resends = []
            for row in rows:
                made = age(times[row.number].key, self._service.moment(), self._service.started)
                if at_start(row.state, made, same_bytes=same_bytes(row)) is Action.SEND_AGAIN:
                    resends.append(Resend(row.number))
                else:
                    self._resolver.add(UnresolvedRow(row.number))
            return await self._ledger.resend(resends) if resends else nothing
        except NO_INTENT as error:
            self._stopping.drain(str(error))
            return nothing

    # New rows

    async def _new(self) -> Claim | None:
        # with no row left, neither room nor limits matter: the run ends by itself
        left = 0 if self._stopping.closed else count_rows(self._ledger.totals, Outcome.NOT_STARTED)
        limit = left and await self._allowed(self._size)
        if not limit:
            return None
        try:
            if (guard := self._service.guard) is not None:
                return await self._guarded.claim(guard, limit)
            claim = await self._ledger.claim(limit)
        except NO_INTENT as error:
            self._stopping.drain(str(error))
            return None
        return claim if claim.rows else None

    async def _allowed(self, limit: int) -> int:
        """Count the next rows that the stop rules allow."""
        rules = self._rules
        if rules == StopRules():
            return limit
        if rules.max_failure_rate is not None:
            # this rule counts the outcomes so far, the others the rows taken
            await self._recorder.flush()
        sums, number = Sums(self._ledger.totals), 0
        if allows_any(rules, sums.totals, limit):
            return limit
        async for row in self._ledger.rows(RowState.NEW):
            reason = stop_reason(rules, sums.totals, amount=row.amount, currency=row.currency)
            if reason is not None and not number:
                self._stopping.close(reason, Stop.RULE)
            if reason is not None or number == limit:
                break
            sums.remove((Outcome.NOT_STARTED, row.currency), row.amount)
            sums.add((Outcome.UNDER_WAY, row.currency), row.amount)
            number += 1
        return number
