"""Puts an input's rows into a ledger, and an edited input's changes: all of them or none."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import closing, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ...models.statuses import PayoutEnd
from .._protocol.outcomes import add_amount, as_text
from .._protocol.records import Binding, LedgerRow, NewRow
from .._protocol.row_state import RowState, Turn
from ..errors import BulkError, InputPaidElsewhere
from .database import Database
from .ledger import ROW_COLUMNS, Ledger, is_touched
from .tables import batches, now, payouts, rows, words
from .values import amount_of, imported, row_of, units_of

T = TypeVar("T")
_CHUNK: Final = 1_000
_BOUND: Final = ("batch_id", "environment", "base_url", "input_hash", "input_stat")
_PAGE: Final = 2_000
_MOST_LEDGERS: Final = 200  # files beside a ledger that are looked into
IS_OUTBOX: Final = (
    "is an outbox, to which rows are added by the app's own transactions; give the file another batch id"
)


async def import_rows(ledger: Ledger, binding: Binding, given: Callable[[], AsyncIterator[NewRow]]) -> bool:
    """Import all rows in one transaction. False where the batch is there already. Raises LedgerError.

    `given` begins a reading of them. What it raises is raised, and nothing is imported then.
    """

    async def work(connection: AsyncConnection) -> bool:
        mine = sa.select(batches.c.batch_id).where(batches.c.batch_id == binding.batch_id)
        if (await connection.execute(mine)).first() is not None:
            return False
        added = sa.select(rows.c.id).where(rows.c.batch_id == binding.batch_id).limit(1)
        if (await connection.execute(added)).first() is not None:
            raise BulkError(f"{ledger.database.label}, batch {binding.batch_id}: {IS_OUTBOX}")
        facts = {name: getattr(binding, name) for name in _BOUND}
        await connection.execute(batches.insert().values(**facts, created_at=now()))
        count, doubts, sums, chunk = 0, 0, dict[str, Decimal](), list[dict[str, Any]]()
        async for row in given():
            count += 1
            doubts += row.is_doubtful
            add_amount(sums, row.currency, row.amount)
            chunk.append(imported(row, binding.batch_id, binding.environment))
            if len(chunk) == _CHUNK:
                await connection.execute(rows.insert(), chunk)
                chunk = []
        if chunk:
            await connection.execute(rows.insert(), chunk)
        done = sa.update(batches).where(batches.c.batch_id == binding.batch_id)
        await connection.execute(done.values(imported_rows=count, imported_sums=_sums(sums), doubts=doubts))
        return True

    is_new = await ledger.database.write(work, is_long=True)
    ledger.batch_id = binding.batch_id
    await ledger.refresh()
    return is_new


async def open_outbox(ledger: Ledger, environment: str, base_url: str) -> None:
    """Make an outbox's line where it has none: its rows may have come before it. Raises LedgerError."""
    binding = Binding(ledger.batch_id, environment, base_url, "", "", "{}")

    async def work(connection: AsyncConnection) -> None:
        mine = sa.select(batches.c.batch_id).where(batches.c.batch_id == ledger.batch_id)
        if (await connection.execute(mine)).first() is None:
            facts = {name: getattr(binding, name) for name in _BOUND}
            await connection.execute(batches.insert().values(**facts, is_outbox=True, created_at=now()))

    await ledger.database.write(work)
    await ledger.refresh()


def _sums(sums: dict[str, Decimal]) -> str:
    return json.dumps({code: as_text(amount) for code, amount in sorted(sums.items())})


# The same input, elsewhere


async def paid_elsewhere(
    database: Database | None, path: str | None, binding: Binding
) -> InputPaidElsewhere | None:
    """The error about another batch of the same input, in this ledger or beside its file; None without one.

    `database` is None before there is one. A binding without an environment, as of a preview without a key,
    may be of any.
    """
    label = path or (database.label if database else "")
    if database is not None:
        same = sa.select(batches.c.batch_id).where(
            batches.c.input_hash == binding.input_hash,
            batches.c.environment == (binding.environment or batches.c.environment),
            batches.c.batch_id != binding.batch_id,
        )
        for other in await database.find(same.limit(1)):
            return InputPaidElsewhere(label, batch_id=other["batch_id"])
    for file, name in _beside(path, binding):
        return InputPaidElsewhere(label, batch_id=name, other=file)
    return None


def _beside(path: str | None, binding: Binding) -> Iterator[tuple[str, str]]:
    """Ledgers in the same folder that have the input as another batch: file and batch id."""
    if path is None:
        return
    folder, own = Path(path).resolve().parent, os.path.realpath(path)
    files = [
        file for file in sorted(folder.glob("*.ledger")) if os.path.realpath(file) != own and file.is_file()
    ]
    wanted = (binding.input_hash, binding.environment, binding.batch_id)
    for file in files[:_MOST_LEDGERS]:
        with suppress(sqlite3.Error, OSError):
            address = f"{file.as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, uri=True, timeout=0.5)) as connection:
                found = connection.execute(_SAME_INPUT, wanted).fetchone()
            if found is not None:
                yield file.name, str(found[0])


_SAME_INPUT: Final = f"""
    SELECT batch_id FROM {batches.name}
    WHERE input_hash = ? AND environment = coalesce(nullif(?, ''), environment) AND batch_id <> ? LIMIT 1
"""


# Edits


class Edits:
    """The rows of a ledger within the transaction of an edit, which holds those that it has read."""

    def __init__(self, connection: AsyncConnection, ledger: Ledger, *, changes: bool) -> None:
        self._connection, self._batch_id = connection, ledger.batch_id
        mine = sa.select(*ROW_COLUMNS).where(rows.c.batch_id == self._batch_id)
        self._mine = mine.with_for_update() if changes else mine

    async def by_keys(self, keys: Sequence[str]) -> list[LedgerRow]:
        mine = self._mine.where(rows.c.row_key.in_(keys))
        return [row_of(each) for each in (await self._connection.execute(mine)).mappings()]

    async def rows(self) -> AsyncGenerator[LedgerRow, None]:
        after = 0
        while True:
            page = self._mine.where(rows.c.id > after)
            found = (await self._connection.execute(page.order_by(rows.c.id).limit(_PAGE))).mappings().all()
            for each in found:
                yield row_of(each)
            if len(found) < _PAGE:
                return
            after = found[-1]["id"]

    async def correct(self, changes: Sequence[tuple[LedgerRow, NewRow]]) -> None:
        """Give rows another content under the same reference: they are new again, with a key of their own."""
        await self._connection.execute(_CORRECT, [_correction(row, new) for row, new in changes])

    async def cancel(self, numbers: Sequence[int]) -> None:
        changed = sa.update(rows).where(rows.c.id.in_(numbers), *_UNSENT)
        await self._connection.execute(changed.values(_CANCELLED))

    async def rebind(self, binding: Binding, *, doubts: int, has_changed: bool) -> None:
        """Bind the batch to the edited input. If rows have changed, its total has to be confirmed anew."""
        sums = await self._sums()
        voided: dict[str, Any] = {"confirmed": None, "certificate": None} if has_changed else {}
        changed = sa.update(batches).where(batches.c.batch_id == self._batch_id)
        await self._connection.execute(
            changed.values(
                input_hash=binding.input_hash,
                input_stat=binding.input_stat,
                imported_sums=sums,
                doubts=doubts,
                **voided,
            )
        )

    async def _sums(self) -> str:
        sums = dict[str, Decimal]()
        async for row in self.rows():
            add_amount(sums, row.currency, row.amount)
        return _sums(sums)


_UNSENT: Final = (rows.c.state == RowState.NEW.value, rows.c.doubted.is_(False))
_CANCELLED: Final = {"state": RowState.CANCELLED.value, "turn": int(Turn.NOTHING)}
_ANEW: Final = {
    "state": RowState.NEW.value,
    "turn": int(Turn.POST),
    "due": 0.0,
    "takes": 0,
    "unsent": 0,
    "revision": rows.c.revision + 1,
    "key_since": None,
    "failure_code": None,
    "failure_message": None,
}
_CORRECTED: Final = ("units", "scale", "currency", "method", "body", "line")
_b = sa.bindparam
_CORRECT: Final = (
    sa.update(rows)
    .where(
        rows.c.id == _b("_id"),
        sa.or_(rows.c.state == RowState.NEW.value, rows.c.state == RowState.REJECTED.value),
        rows.c.doubted.is_(False),
    )
    .values({**{name: _b(f"_{name}") for name in _CORRECTED}, **_ANEW})
)


def _correction(row: LedgerRow, new: NewRow) -> dict[str, Any]:
    units, scale = units_of(new.amount)
    facts = attrs.asdict(new, recurse=False) | {"units": units, "scale": scale}
    return {"_id": row.id} | {f"_{name}": facts[name] for name in _CORRECTED}


async def edit(ledger: Ledger, work: Callable[[Edits], Awaitable[T]], *, changes: bool) -> T:
    """Let work change the rows in one transaction, or only read them; what it raises undoes all.

    It may be done twice, if the connection is lost. Raises LedgerError.
    """

    async def within(connection: AsyncConnection) -> T:
        return await work(Edits(connection, ledger, changes=changes))

    if not changes:
        return await ledger.database.read(within)
    done = await ledger.database.write(within, is_long=True)
    await ledger.refresh()
    return done


async def cancel_rest(ledger: Ledger, environment: str = "") -> int:
    """Cancel each row of which every send is proven to have made nothing. Raises LedgerError.

    `environment`: of an outbox, whose rows count.
    """
    is_ours = (rows.c.environment == environment,) if environment else ()
    mine = sa.update(rows).where(rows.c.batch_id == ledger.batch_id, *is_ours, *_UNSENT)
    return await ledger.database.change(mine.values(_CANCELLED))


async def same_again(ledger: Ledger, numbers: Sequence[int]) -> None:
    """Make rejected rows new again, by their ids: same reference and body, a key they never had."""
    is_rejected = rows.c.state == RowState.REJECTED.value, rows.c.doubted.is_(False)
    await ledger.database.change(sa.update(rows).where(rows.c.id.in_(numbers), *is_rejected).values(_ANEW))


async def last_row(ledger: Ledger, most_rows: int | None, most_amount: Decimal | None) -> int | None:
    """The id of the last row that may be taken: known beforehand, so that no processes race for it.

    None for all. Raises LedgerError.
    """
    if most_rows is None and most_amount is None:
        return None

    async def work(connection: AsyncConnection) -> int:
        mine = sa.select(rows.c.id, rows.c.units, rows.c.scale, rows.c.currency)
        in_order = mine.where(
            rows.c.batch_id == ledger.batch_id, rows.c.state != RowState.CANCELLED.value
        ).order_by(rows.c.id)
        last, count, sums = 0, 0, dict[str, Decimal]()
        async with connection.stream(in_order) as found:
            async for each in found:
                count += 1
                add_amount(sums, each.currency, amount_of(each.units, each.scale))
                if most_rows is not None and count > most_rows:
                    break
                if most_amount is not None and sums[each.currency] > most_amount:
                    break
                last = each.id
        return last

    return await ledger.database.read(work)


async def discard(ledger: Ledger) -> bool:
    """Delete a batch of which no row was ever sent or found. False for any other. Raises LedgerError."""

    async def work(connection: AsyncConnection) -> bool:
        if await is_touched(connection, ledger.batch_id):
            return False
        await connection.execute(sa.delete(rows).where(rows.c.batch_id == ledger.batch_id))
        await connection.execute(sa.delete(batches).where(batches.c.batch_id == ledger.batch_id))
        return True

    done = await ledger.database.write(work)
    await ledger.refresh()
    return done


async def forget(ledger: Ledger, before: float, *, dry_run: bool) -> int:
    """Delete the rows that are settled, and were decided before a moment, and their payouts and words.

    Of an outbox the rows that are final; of a batch all or none. Its line stays. Returns how many.
    """
    is_settled = sa.or_(
        rows.c.state.in_([RowState.REJECTED.value, RowState.CANCELLED.value]),
        sa.and_(
            rows.c.state == RowState.CREATED.value,
            rows.c.payout_end.in_([PayoutEnd.ARRIVED.value, PayoutEnd.FAILED.value]),
        ),
    )
    mine = rows.c.batch_id == ledger.batch_id
    is_old = sa.func.coalesce(rows.c.decided_at, 0.0) < before
    gone = (mine, is_settled, is_old)

    async def work(connection: AsyncConnection) -> int:
        count = (await connection.execute(sa.select(sa.func.count()).where(*gone))).scalar_one()
        every = (await connection.execute(sa.select(sa.func.count()).where(mine))).scalar_one()
        if dry_run or not count or (count < every and not ledger.known.is_outbox):
            return int(count) if count == every or ledger.known.is_outbox else 0
        ids = sa.select(rows.c.id).where(*gone)
        await connection.execute(sa.delete(words).where(words.c.row.in_(ids)))
        await connection.execute(sa.delete(payouts).where(payouts.c.row.in_(ids)))
        await connection.execute(sa.delete(rows).where(*gone))
        done = sa.update(batches).where(batches.c.batch_id == ledger.batch_id)
        if ledger.known.is_outbox:
            is_later = batches.c.forgotten_before < before
            await connection.execute(done.where(is_later).values(forgotten_before=before))
        else:
            await connection.execute(sa.delete(payouts).where(payouts.c.batch_id == ledger.batch_id))
            await connection.execute(done.values(forgotten_at=now()))
        return int(count)

    count = await ledger.database.write(work)
    await ledger.refresh()
    return count
