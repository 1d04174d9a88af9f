"""Whoever runs the program: edits files, deletes ledgers, calls rows off, asks for failed ones again."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal

import attrs

from payments_async.bulk._protocol import row_state
from payments_async.bulk._protocol.identifiers import Identity
from payments_async.bulk._protocol.row_state import IllegalTransition, RowState

from .ledger import Disk, Entry
from .plan import Body, Plan, Run
from .service import Payment, Service
from .worker import BATCH


class Operator:
    """Acts between runs, on the ledger at rest."""

    def __init__(
        self, plan: Plan, chance: random.Random, service: Service, note: Callable[[str], None]
    ) -> None:
        self._chance, self._service, self._note = chance, service, note
        self._plan = plan
        self._file = {body.row: body for body in plan.bodies}
        self.disk = Disk("ledger 1", self._imported())
        self.others: list[Disk] = []
        """Deleted ledgers and copies: what they say must be true all the same."""

    def _imported(self) -> dict[str, Entry]:
        return {row: Entry(body) for row, body in self._file.items()}

    def second(self) -> Disk:
        """A copy of the ledger, for somebody who pays the same batch at the same time."""
        self._note("second process, copied ledger")
        self.others.append(self.disk.copy(f"copy {len(self.others) + 1}"))
        return self.others[-1]

    def prepare(self, run: Run) -> None:
        """What happens before a run."""
        if run.edit:
            self._edit(self._chance.choice(list(self._file)))
        if run.delete:
            self._note("ledger deleted")
            self.others.append(self.disk)
            self.disk = Disk(f"ledger {len(self.others) + 1}", self._imported())
        if run.cancel:
            self._cancel(self._chance.choice(list(self._file)))
        if run.retry:
            for row in self._file:
                self._retry(row)

    def _edit(self, row: str) -> None:
        """Correct a row in the file, and tell the program to go on with it."""
        body = self._file[row] = self._edit_of(row)
        entry = self.disk.rows[row]
        try:
            known = row_state.correct(entry.known)
        except IllegalTransition:
            self._note("edit refused: row under way")
            return
        self._note("row corrected" if entry.known.intents else "row edited before it was sent")
        self.disk.rows[row] = attrs.evolve(entry, body=body, known=known)

    def _edit_of(self, row: str) -> Body:
        """Another body, or the one that the row began with."""
        (begun,) = (body for body in self._plan.bodies if body.row == row)
        if self._file[row] != begun and self._chance.random() < 0.7:
            self._note("edited back")
            return begun
        amount = self._file[row].amount + Decimal("0.01")
        return Body(row, amount, bad=self._chance.random() < 0.1)

    def _cancel(self, row: str) -> None:
        entry = self.disk.rows[row]
        try:
            known = row_state.cancel(entry.known)
        except IllegalTransition:
            self._note("cancel refused")
            return
        self._note("row cancelled")
        self.disk.rows[row] = attrs.evolve(entry, known=known)

    def _retry(self, row: str) -> None:
        entry = self.disk.rows[row]
        if entry.known.state is RowState.REJECTED and self._chance.random() < 0.5:
            self._note("rejected row asked for again")
            self.disk.rows[row] = attrs.evolve(entry, known=row_state.correct(entry.known))
            return
        failed = self._service.has_finally_failed(entry.known.payout_id)
        try:
            known = row_state.retry(entry.known, finally_failed=failed)
        except IllegalTransition:
            return
        self._note("retried after final failure")
        self.disk.rows[row] = attrs.evolve(entry, known=known)


def place_foreign(plan: Plan, service: Service, note: Callable[[str], None]) -> None:
    """Somebody else has made a payout under a row's reference."""
    foreign = plan.foreign
    if foreign is None:
        return
    note("foreign payout")
    body = plan.bodies[foreign.row]
    payment = Payment(
        id="po_foreign",
        reference=Identity("live", BATCH, body.row).reference(),
        amount=Decimal(7) if foreign.kind == "other amount" else body.amount,
        currency=foreign.currency,
        proof="2.of-a-later-release" if foreign.kind == "unreadable proof" else None,
        body=None,
        origin=None,
        created=-foreign.age,
        visible=-foreign.age,
        final=0.0,
        failed=False,
    )
    service.enter(payment)
