"""The first transaction on a ledger: creates its tables, or checks that the old ones may be used."""

from __future__ import annotations

from sqlalchemy import inspect
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.schema import CreateTable

from ...ledger_errors import LedgerDamaged, LedgerNewer
from . import check as _check
from . import driver, journal
from .journal import LedgerState
from .lock import HighWater
from .schema import HEADER, SCHEMA, TABLES


async def opened(
    db: AsyncConnection, path: str, mark: HighWater | None, *, check: bool = True
) -> LedgerState | None:
    """Read the ledger's state after its last commit. Without a batch, create its tables and return None.

    `check`: have SQLite check the file's structure first. Raises LedgerNewer or LedgerDamaged.
    """
    if check and (faults := await driver.faults(db, quick=True)):
        raise LedgerDamaged(path, faults)
    if not await db.run_sync(lambda sync: inspect(sync).has_table(HEADER.name)):
        _refuse_emptied(path, mark)
        await driver.mark(db)
        for table in TABLES:  # without indexes: they are made after the rows
            await db.execute(CreateTable(table))
        return None
    form = await journal.schema(db)
    if form is not None and form > SCHEMA:
        raise LedgerNewer(path, found=form, known=SCHEMA)
    ended = await _check.end(db, mark)
    if ended is None:
        if await journal.entries(db, limit=1):
            raise LedgerDamaged(path, ["the header is missing"])
        _refuse_emptied(path, mark)
        return None
    state, findings = ended
    if findings:
        raise LedgerDamaged(path, findings)
    return state


def _refuse_emptied(path: str, mark: HighWater | None) -> None:
    if mark is not None:
        raise LedgerDamaged(path, [_check.emptied(mark)])
