"""Imports a batch: tables of its own, filled by binary COPY and indexed afterwards, in one transaction."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from contextlib import aclosing
from decimal import Decimal
from typing import Any, Final

import attrs
from psycopg.errors import UniqueViolation

from .... import __version__
from ...ledger_errors import BatchExists, InputPaidElsewhere, LedgerDuplicates
from ...protocol.clocks import Timestamps
from ...protocol.leases import BatchState
from ...protocol.outcomes import Outcome
from ...protocol.records import Binding, Duplicate, Header, NewRow, RowTotals, grouped
from ...protocol.stop_rules import StopRules
from ...protocol.totals import EXACT, by_currency
from .. import hash_chain
from ..rows import fresh_digest
from . import chunks as _chunks
from . import rows as _rows
from .batches import amounts_text, facts_text, rules_text
from .chunks import WHOLE, Batch, Chunk, Entered
from .driver.database import Transaction
from .driver.session import NOW, Statement
from .figures import RowFigures, added_up
from .schema import PROTOCOL, batch_indexes, batch_tables, rows_table, states_table

_SLICE: Final = 2000
_MOST_DUPLICATES: Final = 100
_FIRST: Final = 1


@attrs.define
class _Block:
    """Sums over the rows of five hundred numbers."""

    rows: int = 0
    first: int = 0
    last: int = 0
    digest: int = 0
    amounts: dict[str, tuple[int, Decimal]] = attrs.field(factory=dict)
    """{currency: (rows, sum)}."""

    def add(self, new: NewRow, digest: bytes) -> None:
        """Add a row."""
        self.first = self.first or new.number
        self.last = new.number
        self.rows += 1
        self.digest += int.from_bytes(digest)
        rows, amount = self.amounts.get(new.currency, (0, _ZERO))
        self.amounts[new.currency] = (rows + 1, EXACT.add(amount, new.amount))

    @property
    def totals(self) -> RowTotals:
        """The sums, as those of rows that are not started."""
        return {(Outcome.NOT_STARTED, currency): total for currency, total in self.amounts.items()}


_ZERO: Final = Decimal(0)


@attrs.define
class Loading:
    """The import of one batch."""

    batch: int
    """The number it gets in the database: a random one."""
    path: str
    binding: Binding
    paid_elsewhere: frozenset[str]
    """Other batches that may have the same input: the operator pays it again on purpose."""
    blocks: dict[int, _Block] = attrs.field(factory=dict)
    last: int = 0

    async def load(self, transaction: Transaction, rows: AsyncIterable[NewRow], at: Timestamps) -> Header:
        """Insert all rows, index them and begin the chains.

        Raises BatchExists, InputPaidElsewhere, LedgerDuplicates and what `rows` raises.
        """
        wall = await self._take(transaction)
        for statement in batch_tables(self.batch):
            transaction.write((statement, ()))
        async with aclosing(grouped(rows, _SLICE)) as groups:
            async for group in groups:
                await self._insert(transaction, group)
        await self._index(transaction)
        return await self._finish(transaction, attrs.evolve(at, wall=wall))

    async def _take(self, transaction: Transaction) -> float:
        """Take the batch's name, and return the database's time. Waits for another planner of the batch."""
        _, same = await transaction.read(one_input(self.binding), same_input(self.binding))
        for (batch_id,) in same:
            if batch_id not in self.paid_elsewhere:
                raise InputPaidElsewhere(self.path, batch_id=batch_id)
        taken, ((wall,),) = await transaction.read(self._taking(), NOW)
        if not taken:
            raise BatchExists(self.path)
        return float(wall)

    def _taking(self) -> Statement:
        binding = attrs.asdict(self.binding)
        values: dict[str, Any] = {
            **binding,
            "batch": self.batch,
            "keys": [self.binding.key_fingerprint],
            "created_at": 0.0,
            "client_version": __version__,
            "schema": PROTOCOL,
            "rows": 0,
            "totals": "{}",
            "chunk_size": 0,
            "chunks": 0,
            "described_in": _FIRST,
            "state": BatchState.IMPORTED.value,
            "rules": rules_text(StopRules()),
        }
        places = ", ".join("%s" for _ in values)
        into = f"INSERT INTO payments.batches ({', '.join(values)})"
        return f"{into} VALUES ({places}) ON CONFLICT DO NOTHING RETURNING 1", tuple(values.values())

    async def _insert(self, transaction: Transaction, group: Sequence[NewRow]) -> None:
        contents, states = list[tuple[Any, ...]](), list[tuple[Any, ...]]()
        for new in group:
            digest = self._counted(new)
            contents.append(_rows.content(new, 0, _rows.name_hash(new.reference)))
            states.append(_rows.fresh_state(new.number, digest))
        into_rows, into_states = (
            _rows.copying(table(self.batch), frozen=True) for table in (rows_table, states_table)
        )
        await transaction.copy(into_rows, _rows.CONTENT_TYPES, contents)
        await transaction.copy(into_states, _rows.STATE_TYPES, states)

    def _counted(self, new: NewRow) -> bytes:
        """Add a row to the sums. Returns its digest."""
        if new.number <= self.last:
            raise ValueError(f"row numbers must rise: {new.number} follows {self.last}")
        self.last = new.number
        digest = fresh_digest(new)
        number = (new.number - 1) // _chunks.BLOCK
        block = self.blocks.get(number)
        if block is None:
            block = self.blocks[number] = _Block()
        block.add(new, digest)
        return digest

    async def _index(self, transaction: Transaction) -> None:
        unique, rest = batch_indexes(self.batch)[:2], batch_indexes(self.batch)[2:]
        transaction.write(("SAVEPOINT indexes", ()))
        try:
            await transaction.read(*((statement, ()) for statement in unique))
        except UniqueViolation:
            pass
        else:
            analyses = (f"ANALYZE {table(self.batch)}" for table in (rows_table, states_table))
            for statement in (*rest, *analyses):
                transaction.write((statement, ()))
            return
        await transaction.read(("ROLLBACK TO SAVEPOINT indexes", ()))
        keys, same_key = await self._shared(transaction, "row_key")
        references, same_reference = await self._shared(transaction, "reference")
        raise LedgerDuplicates(self.path, [*keys, *references], total=same_key + same_reference)

    async def _shared(self, transaction: Transaction, column: str) -> tuple[list[Duplicate], int]:
        """Find values that rows share. Returns the first, each with its first two rows, and their number."""
        ranked = (
            f"SELECT {column} AS value, number, line, lag(number) OVER same AS before, "
            "lag(line) OVER same AS line_before, row_number() OVER same AS rank "
            f"FROM {rows_table(self.batch)} WINDOW same AS (PARTITION BY {column} ORDER BY number)"
        )
        ((total,),), few = await transaction.read(
            (f"SELECT count(*) FROM ({ranked}) ranked WHERE rank = 2", ()),
            (f"SELECT * FROM ({ranked}) ranked WHERE rank = 2 ORDER BY before LIMIT %s", (_MOST_DUPLICATES,)),
        )
        return [
            Duplicate(column, value, (before, number), (line_before, line))
            for value, number, line, before, line_before, _ in few
        ], total

    async def _finish(self, transaction: Transaction, at: Timestamps) -> Header:
        """Store the chunks, the first entry of each chain, and the batch's facts."""
        size = _chunks.chunk_size(self.last)
        batch = Batch(self.batch, self.binding.batch_id, size)
        chunks = [_chunk(number, blocks) for number, blocks in self._by_chunk(batch).items()]
        figures = added_up(chunk.figures for chunk in chunks)
        rows = sum(block.rows for block in self.blocks.values())
        header = Header(self.binding, at.wall, __version__, PROTOCOL, rows, by_currency(figures.totals))
        await _chunks.insert(transaction, batch, _begun(batch, header, at, chunks))
        transaction.write(_describing(header, batch, len(chunks)))
        (grantees,) = await transaction.read(_GRANTEES)
        for (role,) in grantees:
            for table in (rows_table, states_table):
                transaction.write((f"GRANT SELECT, INSERT, UPDATE ON {table(self.batch)} TO {role}", ()))
        return header

    def _by_chunk(self, batch: Batch) -> dict[int, list[_Block]]:
        found: dict[int, list[_Block]] = {}
        for block in self.blocks.values():
            found.setdefault(batch.chunk_of(block.first), []).append(block)
        return found


def _chunk(number: int, blocks: Sequence[_Block]) -> Chunk:
    """Make a chunk of its blocks, before its chain begins."""
    figures = added_up(RowFigures(block.totals) for block in blocks)
    digest = sum(block.digest for block in blocks).to_bytes(48)
    return Chunk(
        number=number,
        first=min(block.first for block in blocks),
        last=max(block.last for block in blocks),
        granted_to=0,
        lease=None,
        entries=0,
        head=hash_chain.GENESIS,
        digest=hash_chain.moved(bytes(32), (), [digest]),
        figures=figures,
    )


def _begun(batch: Batch, header: Header, at: Timestamps, chunks: Sequence[Chunk]) -> tuple[Entered, ...]:
    """Begin the batch's chain, and from its first entry those of the chunks."""
    digest = hash_chain.moved(bytes(32), (), (chunk.digest for chunk in chunks))
    whole = Chunk(WHOLE, 0, 0, 0, None, 0, hash_chain.GENESIS, digest, RowFigures())
    text = facts_text(header, batch, len(chunks))
    first = _chunks.entered(batch, whole, "import", at, text)
    started = (attrs.evolve(chunk, head=first.chunk.head) for chunk in chunks)
    return first, *(_chunks.entered(batch, chunk, "import", at, _range_text(chunk)) for chunk in started)


def _range_text(chunk: Chunk) -> str:
    return f'{{"first":{chunk.first},"last":{chunk.last},"totals":{chunk.figures.totals_text}}}'


# to those who work on chunks, and so on rows: a role that only reads chunks sees no row
_GRANTEES: Final[Statement] = (
    "SELECT DISTINCT quote_ident(r.rolname) FROM pg_class c, aclexplode(c.relacl) a "
    "JOIN pg_roles r ON r.oid = a.grantee WHERE c.oid = 'payments.chunks'::regclass "
    "AND a.privilege_type = 'UPDATE' AND r.rolname <> current_user",
    (),
)


def one_input(binding: Binding) -> Statement:
    """Make the statement that lets one process at a time import an input."""
    return "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"payments {binding.input_hash}",)


def same_input(binding: Binding) -> Statement:
    """Make a statement that finds other batches with the same input; `""` for any environment."""
    return (
        "SELECT batch_id FROM payments.batches WHERE input_hash = %s AND batch_id <> %s "
        "AND (environment = %s OR %s = '') ORDER BY created_at",
        (binding.input_hash, binding.batch_id, binding.environment, binding.environment),
    )


def _describing(header: Header, batch: Batch, chunks: int) -> Statement:
    return (
        "UPDATE payments.batches SET created_at = %s, rows = %s, totals = %s, chunk_size = %s, chunks = %s "
        "WHERE batch = %s",
        (header.created_at, header.rows, amounts_text(header), batch.chunk_size, chunks, batch.batch),
    )
