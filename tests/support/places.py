"""Ledgers of both kinds from one test body: in a file, and in a database with leases of all its rows.

A test takes the `path` fixture of `tests/bulk/ledger/` under `BOTH`, or the `place` or `batch` fixture of
`tests/bulk/` under `EITHER`: it runs with a file and with a database.
"""

from __future__ import annotations

import os
import re
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

from payments_async._runtime import SYSTEM
from payments_async.bulk._ledger.ledger import Ledger
from payments_async.bulk._ledger.opening import open_file, open_shared
from payments_async.bulk._ledger.postgresql.leased_chunks import LeasedChunks
from payments_async.bulk._ledger.postgresql.leases import Lease, Work, give_back
from payments_async.bulk._ledger.postgresql.ledger import PostgresLedger
from payments_async.bulk._ledger.postgresql.worker_registry import Worker
from payments_async.bulk._protocol.outcomes import counts_of, sums_of
from payments_async.bulk._protocol.records import RowOutcome
from payments_async.bulk._protocol.row_state import doubt
from payments_async.bulk._protocol.stop_rules import Account, StopRules
from tests.support.databases import grant, run
from tests.support.ledgers import BINDING, Clock, call_off, created, imported, new_rows, rejected, tampering

Place = Path | str
EITHER: Final = pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)
BOTH: Final = pytest.mark.parametrize("path", ["sqlite", "postgresql"], indirect=True)
_ACCOUNT: Final = Account(BINDING.environment, BINDING.base_url, BINDING.key_fingerprint)
WORKER: Final = Worker(bytes(16), "host", 1, "0", 1, _ACCOUNT)


async def opened(
    place: Place, clock: Clock | None = None, *, create: bool = False, batch_id: str = BINDING.batch_id
) -> Ledger:
    """The ledger at a place: a file, or a batch of a database, with leases of its rows."""
    options: Any = {"clock": clock or Clock(), "create": create}
    if isinstance(place, Path):
        return await open_file(os.fspath(place), **options)
    ledger = await open_shared(place, batch_id=batch_id, runtime=SYSTEM, **options)
    assert isinstance(ledger, PostgresLedger)
    return ledger if ledger.is_empty else await AllChunks.of(ledger)


async def looked_at(place: Place) -> Ledger:
    """The ledger at a place, to be read and edited: no row of a database is leased."""
    if isinstance(place, Path):
        return await open_file(os.fspath(place), clock=Clock("later"))
    return await open_shared(place, batch_id=BINDING.batch_id, clock=Clock("later"), runtime=SYSTEM)


def tampered(place: Place, *statements: str) -> None:
    """Change the tables of a closed ledger by another hand, with statements as a file takes them."""
    if isinstance(place, Path):
        with tampering(place) as tables:
            for statement in statements:
                tables.execute(statement)
        return
    ((number,),) = run(place, "SELECT batch FROM payments.batches")
    for statement in statements:
        of_batch = re.sub(r"\b(UPDATE|FROM) (rows|row_states)\b", rf"\1 payments.\2_{number:016x}", statement)
        run(place, re.sub(r"\b(UPDATE|FROM) (?!payments\.)", r"\1 payments.", of_batch))


async def begun(place: Place, count: int = 5, clock: Clock | None = None) -> Ledger:
    """The ledger at a place, with so many new rows; those of a database are planned, and leased."""
    clock = clock or Clock()
    async with await opened(place, clock, create=True) as ledger:
        await imported(ledger, new_rows(count))
        await planned(ledger)
    return await opened(place, clock)


async def worked_on(place: Place, rows: int = 30) -> None:
    """A closed ledger with rows in most states and a chain of many entries."""
    async with await begun(place, rows) as ledger:
        for _ in range(9):
            one, two = (await ledger.claim(2)).rows
            await ledger.record([created(one, service_status="pending"), rejected(two, failure_code="422")])
        (row,) = (await ledger.claim(1)).rows
        await ledger.record([RowOutcome(row.number, doubt(row.known))])
        await call_off(ledger, [rows])


async def planned(ledger: Ledger) -> None:
    """Let the rows of a batch be leased, where that is needed."""
    if isinstance(ledger, PostgresLedger):
        await ledger.plan(StopRules())
        await ledger.refresh()


class AllChunks(LeasedChunks):
    """The chunks of a batch. Closing it gives back the leases and closes the database."""

    @classmethod
    async def of(cls, ledger: PostgresLedger) -> PostgresLedger:
        """Lease all chunks with rows to send or in doubt; the ledger itself when there is none."""
        leases, batch = list[Lease](), ledger.facts.batch.batch
        for kind in (Work.SEND, Work.LOOK):
            while granted := await grant(ledger.database, WORKER, kind=kind, batch=batch):
                leases += granted
        return await cls.under(ledger.database, leases, clock=ledger._clock) if leases else ledger

    async def close(self) -> None:
        await give_back(self.database, WORKER, self._leases.values())
        await self.database.close()


async def chain_of(ledger: Ledger) -> tuple[int, str]:
    """How many entries the ledger's chains have, and a hash over all of them."""
    report = await ledger.check()
    return report.entries, report.head


def total_of(ledger: Ledger, word: str, currency: str = "XOF") -> tuple[int, Decimal]:
    """The number and the sum of the rows that a word of `BatchFigures.counts` counts, all of one currency."""
    mine = {place: total for place, total in ledger.totals.items() if place[1] == currency}
    return counts_of(mine)[word], sums_of(mine)[currency][word]
