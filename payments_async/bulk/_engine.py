"""One run over a ledger: rows of earlier runs, then new ones, then what is in doubt, to the last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from decimal import Decimal
from typing import Final

import attrs

from .._runtime import Timer
from ..errors import PaymentsError
from ._ages import age
from ._closing import Stop, StopRules, Tally, allows_any, stop_reason
from ._doubts import Doubt
from ._no_entry import FATAL, is_shut_out, why
from ._outcomes import Recorder
from ._records import Claim, LedgerRow, Resend
from ._resolver import Resolver
from ._rules import Action, at_start
from ._sending import Sender, same_bytes
from ._service import Service
from ._states import RowState
from ._stopping import Stopping
from ._totals import EXACT
from ._window import Claiming, work_off
from .ledger import Ledger
from .ledger_errors import LedgerFull, LedgerGone

_AHEAD: Final = 2
"""Intents on the disk for each row that can be under way."""


@attrs.frozen(kw_only=True)
class Pace:
    """How a run goes about it."""

    concurrency: int
    """Rows under way at a time."""
    rules: StopRules
    patience: float
    """Seconds to wait, once all else is done, for rows in doubt that only time can tell of."""
    drain: float
    """Seconds that rows under way are given after a stop."""


class Engine:
    """Runs once."""

    def __init__(
        self,
        ledger: Ledger,
        service: Service,
        pace: Pace,
        stopping: Stopping,
        on_commit: Callable[[], object],
    ) -> None:
        self._ledger, self._service, self._pace, self._stopping = ledger, service, pace, stopping
        self._recorder = Recorder(ledger, service.runtime)
        self._resolver = Resolver(ledger, service, self._recorder, stopping)
        self._sender = Sender(ledger, service, self._recorder, stopping, self._resolver.add)
        self._recorder.on_commit = on_commit
        self._recorder.on_failure = lambda error: stopping.halt(str(error))
        self._working: asyncio.Task[None] | None = None
        self._cutting: Timer | None = None
        self._is_cut = False

    async def run(self) -> None:
        """Until nothing is left to do, or the run is stopped; `stopping.reason` then says why.

        Raises OutcomesUnrecorded or another LedgerError when the ledger fails.
        """
        self._stopping.on_drain = self._begin_drain
        try:
            await self._greet()
            await self._resume()
            await self._look()
            await self._work(self._claim_new)
            await self._resolve()
        finally:
            if self._cutting is not None:
                self._cutting.cancel()
            await self._recorder.close()

    async def _greet(self) -> None:
        try:
            await self._service.greet()
        except PaymentsError as error:
            if is_shut_out(error):
                self._stopping.halt(why(error), Stop.NO_ENTRY)
            else:
                self._stopping.halt(str(error))

    def _begin_drain(self) -> None:
        self._cutting = self._service.runtime.call_later(self._pace.drain, self._cut)

    def _cut(self) -> None:
        """The time to drain is over: what is under way stays in flight, for the next run to find out."""
        self._is_cut = True
        self._stopping.halt("the time to drain was over")
        if self._working is not None:
            self._working.cancel()

    async def _work(self, claim: Claiming) -> None:
        if self._stopping.halted:
            return
        self._working = asyncio.ensure_future(work_off(claim, self._sender.send, self._pace.concurrency))
        try:
            await self._working
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._is_cut or (task is not None and task.cancelling()):
                raise

    # Rows of earlier runs

    async def _resume(self) -> None:
        async with aclosing(self._unfinished()) as groups:

            async def claim() -> Claim | None:
                group = None if self._stopping.draining else await anext(groups, None)
                return None if group is None else await self._again(group)

            await self._work(claim)

    async def _unfinished(self) -> AsyncGenerator[Sequence[LedgerRow], None]:
        group: list[LedgerRow] = []
        async for row in self._ledger.unfinished():
            group.append(row)
            if len(group) == _AHEAD * self._pace.concurrency:
                yield group
                group = []
        if group:
            yield group

    async def _again(self, rows: Sequence[LedgerRow]) -> Claim:
        """Intents for the rows that may be posted again at once; the others are left to the list."""
        moments = await self._ledger.moments(rows)
        resends = []
        for row in rows:
            made = age(moments[row.key_intent or 0], self._service.moment(), self._service.started)
            if at_start(row.state, made, same_bytes=same_bytes(row)) is Action.SEND_AGAIN:
                resends.append(Resend(row.number))
            else:
                self._resolver.add(Doubt(row.number))
        return await self._intend(resends) or Claim((), self._service.moment())

    async def _intend(self, resends: Sequence[Resend]) -> Claim | None:
        try:
            return await self._ledger.resend(resends) if resends else None
        except (LedgerFull, LedgerGone) as error:
            self._stopping.drain(str(error))
            return None

    # New rows

    async def _claim_new(self) -> Claim | None:
        # with no row left, nothing is asked for that needs room or a limit: the run then ends by itself
        left = 0 if self._stopping.closed else Tally.of(self._ledger.totals).count(RowState.NEW)
        limit = left and await self._allowed(_AHEAD * self._pace.concurrency)
        if not limit:
            return None
        try:
            claim = await self._ledger.claim(limit)
        except (LedgerFull, LedgerGone) as error:
            self._stopping.drain(str(error))
            return None
        return claim if claim.rows else None

    async def _allowed(self, limit: int) -> int:
        """How many of the next rows the stop rules let through."""
        rules = self._pace.rules
        if rules == StopRules():
            return limit
        if rules.max_failure_rate is not None:
            # this rule counts what was learned so far, the others what was taken
            await self._recorder.flush()
        tally, number = Tally.of(self._ledger.totals), 0
        if allows_any(rules, tally, limit):
            return limit
        async for row in self._ledger.rows(RowState.NEW):
            reason = stop_reason(rules, tally, amount=row.amount, currency=row.currency)
            if reason is not None and not number:
                self._stopping.close(reason, Stop.RULE)
            if reason is not None or number == limit:
                break
            tally, number = _taken(tally, row), number + 1
        return number

    # Rows in doubt

    async def _resolve(self) -> None:
        runtime = self._service.runtime
        until = runtime.monotonic() + self._pace.patience
        while (due := self._resolver.due) is not None and not self._stopping.draining:
            if due > until:
                await self._resolver.surface()
                return
            await self._stopping.rest(due - runtime.monotonic(), deep=False)
            await self._look()

    async def _look(self) -> None:
        """One look at the list for the rows that are due, and the next requests of those that need one."""
        if self._resolver.due is None or self._stopping.draining:
            return
        try:
            looked = await self._resolver.look()
        except FATAL as error:
            self._stopping.halt(why(error), Stop.NO_ENTRY)
            return
        async with aclosing(looked) as claims:

            async def claim() -> Claim | None:
                try:
                    return None if self._stopping.draining else await anext(claims, None)
                except (LedgerFull, LedgerGone) as error:
                    self._stopping.drain(str(error))
                    return None

            await self._work(claim)


def _taken(tally: Tally, row: LedgerRow) -> Tally:
    """The tally once a new row is in flight."""
    counts, sums = dict(tally.counts), dict(tally.sums)
    for state, sign in ((RowState.NEW, -1), (RowState.IN_FLIGHT, 1)):
        counts[state] = counts.get(state, 0) + sign
        place = (state, row.currency)
        sums[place] = EXACT.add(sums.get(place, Decimal(0)), row.amount.copy_sign(sign))
    return Tally(counts, sums)
