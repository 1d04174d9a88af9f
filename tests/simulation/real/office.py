"""The operator at the real ledgers: edits, calls rows off, asks for failed ones again, copies and deletes."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import attrs

from payments_async._codec import encode
from payments_async.bulk._ledger.sqlite.ledger import SqliteLedger
from payments_async.bulk._protocol.clocks import Timestamps
from payments_async.bulk._protocol.identifiers import PROOF_KEY, Identity, body_hash
from payments_async.bulk._protocol.records import LedgerRow, NewRow, RowOutcome
from payments_async.bulk.ledger_errors import LedgerRefused
from payments_async.models.statuses import PayoutEnd
from tests.support.ledgers import call_off

from ..plan import Body, Plan, Run
from ..service import EPOCH, Service
from ..worker import BATCH
from . import wire
from .books import Book, Books
from .process import Item


class Office:
    """Acts between runs."""

    def __init__(
        self,
        plan: Plan,
        seed: object,
        folder: Path,
        books: Books,
        service: Service,
        note: Callable[[str], None],
    ) -> None:
        self._plan, self._chance = plan, random.Random(f"{seed}:operator")
        self._folder, self._books, self._service, self._note = folder, books, service, note
        self._file = {body.row: body for body in plan.bodies}
        self.disk = self.new_book()
        self.others: list[Book] = []
        """Deleted ledgers and those of other processes: what they say must be true all the same."""
        self._edited: str | None = None
        """The row that was edited in the file alone."""

    @property
    def items(self) -> list[Item]:
        """The input as it is now."""
        return [(row, wire.request_of(body)) for row, body in self._file.items()]

    def new_book(self) -> Book:
        """A ledger that is not there yet, in a folder of its own."""
        number = len(list(self._folder.iterdir())) + 1
        place = self._folder / str(number)
        place.mkdir()
        return self._books.add(Book(f"ledger {number}", str(place / "batch.ledger")))

    def second(self) -> Book:
        """For somebody who pays the same batch at the same time: a copy of the ledger, or a fresh one."""
        fresh = self.new_book()
        self.others.append(fresh)
        if self._chance.random() < 0.5 or not os.path.exists(self.disk.path):
            self._note("second process, fresh ledger")
            return fresh
        self._note("second process, copied ledger")
        copy = self._books.add(self.disk.copy_to(fresh.name, fresh.path))
        self.others[-1] = copy
        for end in ("", "-wal", "-journal", ".lock"):
            if os.path.exists(self.disk.path + end):
                shutil.copyfile(self.disk.path + end, copy.path + end)
                os.chmod(copy.path + end, 0o600)
        return copy

    async def prepare(self, run: Run, now: float) -> None:
        """What happens before a run. Raises LedgerError."""
        self._look_at_edit()
        if run.delete:
            self._note("ledger deleted")
            self.others.append(self.disk)
            self.disk = self.new_book()
        if not self.disk.rows:
            return
        edits = run.edit and not self._edits_file_alone()
        retries = run.retry and self._chance.random() < 0.3
        asked = ((edits, self._edit), (run.cancel, self._cancel), (retries, self._retry))
        if wishes := [wish for is_asked, wish in asked if is_asked]:
            moment = Timestamps(EPOCH + now, now, f"office {now}")
            async with await SqliteLedger.open(self.disk.path, clock=lambda: moment) as ledger:
                for wish in wishes:
                    await wish(ledger)

    @property
    def has_edited(self) -> bool:
        """Whether the program is to be told to accept an edit."""
        return self._edited is not None

    def _edits_file_alone(self) -> bool:
        """Edit a row of the file, half of the time, and leave it to the program to take that over."""
        if self._chance.random() < 0.5:
            return False
        row = self._edited = self._chance.choice(list(self._file))
        self._file[row] = self._edit_of(self._file[row])
        return True

    def _edit_of(self, before: Body) -> Body:
        return Body(before.row, before.amount + Decimal("0.01"), bad=self._chance.random() < 0.1)

    def _look_at_edit(self) -> None:
        """Take an edit of the file back that the ledger has not taken over."""
        row, self._edited = self._edited, None
        entry = None if row is None else self.disk.rows.get(row)
        if row is None or entry is None:
            return
        if entry.body.amount == self._file[row].amount:
            self._note("edit accepted")
        else:
            self._note("edit taken back")
            self._file[row] = Body(row, entry.body.amount, bad=entry.body.bad)

    async def _edit(self, ledger: SqliteLedger) -> None:
        """Correct a row, in the file too; one under way keeps its body there as well."""
        row = await self._any(ledger)
        body = self._edit_of(self._file[row.row_key])
        replaced = self._new_row(ledger, row, body, row.known.generation)
        try:
            await ledger.correct([replaced])
        except LedgerRefused:
            self._note("edit refused: row under way")
            if self._chance.random() < 0.5:
                self._file[row.row_key] = body  # and a ledger begun anew will have it
            return
        self._note("row corrected" if row.known.intents else "row edited before it was sent")
        self._file[row.row_key] = body

    async def _cancel(self, ledger: SqliteLedger) -> None:
        row = await self._any(ledger)
        try:
            await call_off(ledger, [row.number])
        except LedgerRefused:
            self._note("cancel refused")
        else:
            self._note("row cancelled")

    async def _retry(self, ledger: SqliteLedger) -> None:
        """Ask for new payouts in place of those that have failed, as the service has just said."""
        for row in [row async for row in ledger.rows()]:
            if self._service.has_finally_failed(row.known.payout_id):
                await ledger.record([RowOutcome(row.number, row.known, "failed", PayoutEnd.FAILED)])
                body = self._file[row.row_key]
                fresh = self._new_row(ledger, row, body, row.known.generation + 1)
                await ledger.next_generation([fresh])
                self._note("retried after final failure")

    async def _any(self, ledger: SqliteLedger) -> LedgerRow:
        rows = [row async for row in ledger.rows()]
        return self._chance.choice(rows)

    def _new_row(self, ledger: SqliteLedger, row: LedgerRow, body: Body, generation: int) -> NewRow:
        environment = ledger.header.binding.environment
        epoch, revision = row.known.epoch, row.known.revision + 1
        identity = Identity(environment, BATCH, row.row_key, generation, epoch, revision)
        request = attrs.evolve(wire.request_of(body), reference=identity.reference())
        content = encode.encode(request)
        if self._plan.proofs:
            proof = identity.proof(body_hash(content)).text
            content = encode.encode(attrs.evolve(request, metadata={PROOF_KEY: proof}))
        made = body_hash(content)
        return NewRow(
            number=row.number,
            line=row.line,
            row_key=row.row_key,
            reference=identity.reference(),
            amount=body.amount,
            currency="XOF",
            method="mtn_bj",
            body=content,
            body_hash=made,
            idempotency_key=identity.idempotency_key(made),
        )
