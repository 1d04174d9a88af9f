"""`recover`: what the list shows is believed, lost commands are given again, and the batch is opened."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import attrs

from payments_async.bulk._protocol import row_state, transitions
from payments_async.bulk._protocol.clocks import Timestamps, age, scan_start
from payments_async.bulk._protocol.machines import PROOF_AFTER, BatchState
from payments_async.bulk._protocol.matching import Match
from payments_async.bulk._protocol.row_state import RowState, after_loss

from ..ledger import Entry
from ..lookup import compare
from ..service import Payment
from ..worker import Worker
from .chunk_run import Reader
from .database import State
from .leased import as_row
from .line import Unreachable
from .process import ProcessClock, Site

if TYPE_CHECKING:
    from .commands import Operator

_LESS_KNOWN = (RowState.NEW, RowState.REJECTED, RowState.IN_FLIGHT, RowState.IN_DOUBT)
_OPEN = (RowState.IN_FLIGHT, RowState.IN_DOUBT)


def proof_due(lost: Timestamps, now: Timestamps, seen: Timestamps) -> float:
    """As the protocol has it, and in a process that waits since `seen`, also by a service without dates."""
    return max(0.0, PROOF_AFTER - age(lost, now, seen).at_least)


class Recovery:
    """One start of the command."""

    def __init__(self, site: Site, operator: Operator) -> None:
        self._site, self._operator = site, operator
        self._clock = ProcessClock(site.loop, f"recover at {site.loop.time()}")
        self._line = operator.line(self._clock)
        self._reader = Reader(site.world, site.service, self._clock, site.seed)

    async def attempt(self) -> bool:
        """Whether there is nothing left to do."""
        try:
            state = await self._line.run(self._site.loop, lambda: self._site.database.state)
            is_needed = state.batch is BatchState.SUSPECT
            wants_proof = self._operator.wants_proof and state.proven != state.losses
            if not (is_needed or wants_proof):
                return True
            lost, seen = state.lost or state.imported, self._clock.moment()
            if wants_proof or self._operator.missing(state):
                self._site.world.note("recovery waits for a proof")
                await asyncio.sleep(proof_due(lost, seen, seen) + 1.0)
            began, shown = self._clock.moment(), await self._reading(scan_start(state.imported))
            proven = state.proven if proof_due(lost, began, seen) else state.losses
            await self._line.run(self._site.loop, lambda: self._commit(state.losses, shown, proven))
        except Unreachable:
            pass
        return False

    async def _reading(self, since: float | None) -> dict[str, Payment]:
        """The whole list, however often it takes."""
        while True:
            page = await self._reader.page(since, None, None)
            if page is not None:
                return {payment.reference: payment for payment in page}
            await asyncio.sleep(5.0)

    # In the database

    def _commit(self, losses: int, shown: dict[str, Payment], proven: int) -> None:
        database = self._site.database
        if database.state.losses == losses:
            database.commit(self._recovered(database.state, losses, shown, proven))

    def _recovered(self, state: State, losses: int, shown: dict[str, Payment], proven: int) -> State:
        for row, entry in state.rows.items():
            state = state.with_row(row, self._learned(entry, state, shown))
        if state.batch is not BatchState.SUSPECT:
            return attrs.evolve(state, proven=proven)
        for row, entry in state.rows.items():
            state = state.with_row(row, self._perhaps_resent(entry, losses))
        state = self._operator.given_again(attrs.evolve(state, proven=proven))
        self._site.world.note("recovered")
        return attrs.evolve(state, batch=BatchState.OPEN)

    def _learned(self, entry: Entry, state: State, shown: dict[str, Payment]) -> Entry:
        """What the list says of a row and of its later payouts, whatever its ledger says."""
        before, entry = None, self._settled(entry, state, shown)
        while entry is not before and entry.known.state is RowState.CREATED:
            before, entry = entry, self._next_payout(entry, shown)
        return entry

    def _settled(self, entry: Entry, state: State, shown: dict[str, Payment]) -> Entry:
        known = entry.known
        payment = payout_of(self._reader, entry, shown)
        if payment is None or known.state not in _LESS_KNOWN:
            return entry
        in_flight = attrs.evolve(after_loss(known, max(1, state.losses)), state=RowState.IN_FLIGHT)
        match compare(self._reader, entry, payment):
            case Match.EQUAL:
                return self._claimed(entry, row_state.confirm(in_flight, payment.id))
            case Match.UNCLEAR:
                return entry
            case _:
                return self._claimed(entry, row_state.contradict(in_flight))

    def _next_payout(self, entry: Entry, shown: dict[str, Payment]) -> Entry:
        """The retry of a failed row was lost, and its payout is there."""
        if not self._site.service.has_finally_failed(entry.known.payout_id):
            return entry
        known = row_state.intend(row_state.retry(entry.known, finally_failed=True))
        after = attrs.evolve(entry, known=known)
        payment = payout_of(self._reader, after, shown)
        if payment is None or compare(self._reader, after, payment) is not Match.EQUAL:
            return entry
        self._site.world.note("a lost retry is made good from the list")
        return self._claimed(after, row_state.confirm(known, payment.id))

    def _claimed(self, entry: Entry, known: row_state.RowKnowledge) -> Entry:
        self._site.world.note(f"recovery: {known.state}")
        self._site.watch.committing(entry, known)
        return attrs.evolve(entry, known=known)

    def _perhaps_resent(self, entry: Entry, losses: int) -> Entry:
        """A row in doubt may have been sent until now."""
        if entry.known.state not in _OPEN:
            return entry
        after = transitions.perhaps_resent(as_row(entry, entry.known), losses, 0)
        if after is None:
            return entry
        return attrs.evolve(
            entry, known=after.known, intended=self._clock.moment(), intended_at=self._site.loop.time()
        )


def payout_of(reader: Worker, entry: Entry, shown: dict[str, Payment]) -> Payment | None:
    """The payout that the list shows under a row's reference."""
    return shown.get(reader.named(entry)[0])
