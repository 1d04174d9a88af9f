"""The operator of a batch in a database: cancels, corrects, retries failed rows, and recovers the ledger."""

from __future__ import annotations

import asyncio
import random
from decimal import Decimal
from typing import Literal

import attrs

from payments_async.bulk._protocol import row_state
from payments_async.bulk._protocol.row_state import IllegalTransition, RowState

from ..ledger import Entry
from ..plan import Body
from .database import State
from .line import Line, Unreachable
from .process import ProcessClock, Site
from .recovery import Recovery

CommandKind = Literal["cancel", "edit", "retry"]


@attrs.frozen
class Command:
    """What the operator asks of one row."""

    number: int
    kind: CommandKind
    row: str
    body: Body | None = None


class Operator:
    """Whoever owns the batch."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._chance = random.Random(f"{site.seed}:commands").random
        self._bodies = {body.row: body for body in site.world.plan.bodies}
        self._given: list[Command] = []
        """Commands that were answered with success, or not at all."""
        self._seeing_to: asyncio.Task[None] | None = None
        self._wants_proof = False

    # Commands

    async def give(self, number: int, kind: CommandKind, row: str) -> None:
        """Give a command."""
        body = self._edited(row) if kind == "edit" else None
        asked = Command(number, kind, row, body)
        loop = self._site.loop
        line = self.line(ProcessClock(loop, f"command {number}"))
        try:
            is_done = await line.run(loop, lambda: self._carried_out(asked))
        except Unreachable:
            self._site.world.note("a command without an answer")
        else:
            if not is_done:
                return
            if kind == "cancel":
                self._site.watch.cancelled.add(row)
        self._given.append(asked)
        if body is not None:
            self._bodies[row] = body

    def line(self, clock: ProcessClock) -> Line:
        """A connection of a command's own."""
        site = self._site
        return Line(site.database, site.fleet, self._chance, clock, site.world.note, self.see_to)

    def _edited(self, row: str) -> Body:
        old = self._bodies[row]
        return Body(row, old.amount + Decimal("0.01"), bad=self._chance() < 0.1)

    def _carried_out(self, asked: Command) -> bool:
        """In the database."""
        database = self._site.database
        if must_wait(database.state):
            self._site.world.note("a command waits for a reading of the list")
            self._wants_proof = True
            self.see_to()
            return False
        state, is_done = self._applied(database.state, asked)
        if is_done:
            database.commit(state)
        return is_done

    def _applied(self, state: State, asked: Command) -> tuple[State, bool]:
        known, entry = state.known(asked.row), state.rows[asked.row]
        try:
            after = self._after(attrs.evolve(entry, known=known), asked)
        except IllegalTransition:
            self._site.world.note(f"{asked.kind} refused")
            return state, False
        self._site.world.note(f"{asked.kind} done")
        entry_number = self._site.database.new_entry()
        state = state.with_row(asked.row, after).with_entry(state.chunk_of(asked.row), entry_number)
        return attrs.evolve(state, commands=state.commands | {asked.number}), True

    def _after(self, entry: Entry, asked: Command) -> Entry:
        known = entry.known
        if asked.kind == "cancel":
            return attrs.evolve(entry, known=row_state.cancel(known))
        if asked.kind == "edit":
            return attrs.evolve(entry, known=row_state.correct(known), body=asked.body, key_made=None)
        if known.state is RowState.REJECTED:
            return attrs.evolve(entry, known=row_state.correct(known), key_made=None)
        has_failed = self._site.service.has_finally_failed(known.payout_id)
        again = row_state.retry(known, finally_failed=has_failed)
        return attrs.evolve(entry, known=again, first_intent=None, key_made=None)

    # Recovery

    def see_to(self) -> None:
        """See to a ledger that may have lost commits, or to a proof that commands wait for."""
        if self._seeing_to is None:
            self._seeing_to = self._site.loop.start("operator", self._see_to())
            self._seeing_to.add_done_callback(lambda done: done.result())  # a breach ends the world

    async def _see_to(self) -> None:
        await asyncio.sleep(self._site.fleet.attention * self._chance())
        while not await Recovery(self._site, self).attempt():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(10.0)
        self._seeing_to, self._wants_proof = None, False

    def missing(self, state: State) -> list[Command]:
        """Commands that the ledger does not know."""
        return [asked for asked in self._given if asked.number not in state.commands]

    @property
    def wants_proof(self) -> bool:
        """Whether a command waits."""
        return self._wants_proof

    def given_again(self, state: State) -> State:
        """In the database: all that is missing, in order; what cannot be done is shown to the operator."""
        for asked in self.missing(state):
            state, is_done = self._applied(state, asked)
            self._site.world.note(f"{asked.kind} given again")
            if asked.kind == "cancel" and not is_done:
                self._site.watch.cancelled.discard(asked.row)
            state = attrs.evolve(state, commands=state.commands | {asked.number})
        return state


def must_wait(state: State) -> bool:
    """Whether commands wait: until a reading has shown all that lost requests have made."""
    return state.proven != state.losses
