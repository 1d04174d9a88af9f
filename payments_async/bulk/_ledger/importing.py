"""Imports a batch: its rows are copied and then indexed, in one transaction."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Sequence
from contextlib import aclosing
from decimal import Decimal
from typing import Any, Final

import attrs

from ... import __version__
from .._protocol.clocks import Timestamps
from .._protocol.outcomes import EXACT, Outcome, RowTotals, by_currency, totals_text
from .._protocol.records import Binding, Duplicate, Header, NewRow, RowFigures, added_up, grouped
from ..ledger_errors import LedgerDuplicates
from . import hash_chain
from .batches import FORM, BatchFacts, amounts_text
from .chunks import BATCH_CHUNK, Batch, Chunk, ChunkWrite, insert_chunks, with_entry
from .statements import LAST_NUMBER
from .stored_rows import content, fresh_digest, fresh_state
from .transactions import Transaction

_SLICE: Final = 500
BLOCK: Final = 500
"""Rows whose sums are kept together until the chunks are made."""
_MOST_DUPLICATES: Final = 100
FIRST: Final = 1
"""The entry of the import, in each chain."""


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
    """The number it gets in the database."""
    path: str
    binding: Binding
    blocks: dict[int, _Block] = attrs.field(factory=dict)
    last: int = 0
    hash_key: bytes = attrs.field(default=b"", repr=False)
    """The key of the batch's keyed hashes, which the database has drawn."""

    async def load(self, transaction: Transaction, rows: AsyncIterable[NewRow], at: Timestamps) -> None:
        """Insert all rows, index them, begin the chains. Raises LedgerDuplicates and what `rows` raises."""
        sql = transaction.sql
        (((self.hash_key,),),) = await transaction.read((sql.hash_key, (self.batch,)))
        into = [copying.of_batch(self.batch) for copying in (sql.import_rows, sql.import_states)]
        async with aclosing(grouped(rows, _SLICE)) as groups:
            async for group in groups:
                counted = [(new, self._counted(new)) for new in group]
                named = sql.named
                contents = (content(new, 0, named(new.row_key), named(new.reference)) for new in group)
                states = (fresh_state(new.number, digest) for new, digest in counted)
                await transaction.copy(into[0], contents)
                await transaction.copy(into[1], states)
        await self._index(transaction)
        await self._finish(transaction, at)

    def _counted(self, new: NewRow) -> bytes:
        """Add a row to the sums. Returns its digest."""
        if not self.last < new.number <= LAST_NUMBER:
            raise ValueError(f"row numbers must rise, up to {LAST_NUMBER}: {new.number} follows {self.last}")
        self.last = new.number
        digest = fresh_digest(new, self.hash_key)
        number = (new.number - 1) // BLOCK
        block = self.blocks.get(number)
        if block is None:
            block = self.blocks[number] = _Block()
        block.add(new, digest)
        return digest

    async def _index(self, transaction: Transaction) -> None:
        sql = transaction.sql
        if await transaction.are_unique([index.format(batch=self.batch) for index in sql.unique_indexes]):
            transaction.write(*((index.format(batch=self.batch), ()) for index in sql.indexes))
            return
        keys, same_key = await self._shared(transaction, "row_key")
        references, same_reference = await self._shared(transaction, "reference")
        raise LedgerDuplicates(self.path, [*keys, *references], total=same_key + same_reference)

    async def _shared(self, transaction: Transaction, column: str) -> tuple[list[Duplicate], int]:
        """Find values that rows share. Returns the first, each with its first two rows, and their number."""
        count, first = (sql.format(batch=self.batch) for sql in transaction.sql.shared_names[column])
        ((total,),), few = await transaction.read((count, ()), (first, (_MOST_DUPLICATES,)))
        return [
            Duplicate(column, value, (before, number), (line_before, line))
            for value, number, line, before, line_before in few
        ], total

    def _chunk_size(self) -> int:
        """The rows of a chunk: here there is one, of all."""
        return LAST_NUMBER

    def _chunks(self) -> Iterable[int]:
        """The chunks that there are also without rows."""
        return (1,)

    def _granted_to(self, last: int) -> int:
        """The highest row number of a chunk that may be taken at once: here any."""
        return last

    async def _finish(self, transaction: Transaction, at: Timestamps) -> None:
        """Store the chunks, the first entry of each chain, and the batch's facts."""
        batch = Batch(self.batch, self.binding.batch_id, self._chunk_size(), self.hash_key)
        by_chunk: dict[int, list[_Block]] = {chunk: [] for chunk in self._chunks()}
        for block in self.blocks.values():
            by_chunk.setdefault(batch.chunk_of(block.first), []).append(block)
        chunks = [self._chunk(number, blocks) for number, blocks in by_chunk.items()]
        figures = added_up(chunk.figures for chunk in chunks)
        rows = sum(block.rows for block in self.blocks.values())
        header = Header(self.binding, at.wall, __version__, FORM, rows, by_currency(figures.totals))
        facts = BatchFacts(batch, header, len(chunks), FIRST)
        await insert_chunks(transaction, batch, _begun(facts, at, chunks))
        described = (header.created_at, rows, amounts_text(header), batch.chunk_size, len(chunks), self.batch)
        transaction.write((transaction.sql.describe, described))

    def _chunk(self, number: int, blocks: Sequence[_Block]) -> Chunk:
        """Make a chunk of its blocks, before its chain begins."""
        digest, last = (
            sum(block.digest for block in blocks).to_bytes(48),
            max((block.last for block in blocks), default=0),
        )
        return Chunk(
            number=number,
            first=min((block.first for block in blocks), default=1),
            last=last,
            granted_to=self._granted_to(last),
            lease=None,
            entries=0,
            head=hash_chain.GENESIS,
            digest=hash_chain.digest_after(bytes(32), (), [digest]),
            figures=added_up(RowFigures(block.totals) for block in blocks),
        )


def _begun(facts: BatchFacts, at: Timestamps, chunks: Sequence[Chunk]) -> tuple[ChunkWrite, ...]:
    """Begin the batch's chain, and from its first entry those of the chunks."""
    batch = facts.batch
    digest = hash_chain.digest_after(bytes(32), (), (chunk.digest for chunk in chunks))
    whole = Chunk(BATCH_CHUNK, 0, 0, 0, None, 0, hash_chain.GENESIS, digest, RowFigures())
    first = with_entry(batch, whole, "import", at, facts.text)
    started = (attrs.evolve(chunk, head=first.chunk.head) for chunk in chunks)
    return first, *(with_entry(batch, chunk, "import", at, _range_text(chunk)) for chunk in started)


def _range_text(chunk: Chunk) -> str:
    return f'{{"first":{chunk.first},"last":{chunk.last},"totals":{totals_text(chunk.figures.totals)}}}'


def provisional(batch: int, binding: Binding) -> tuple[Any, ...]:
    """The values of a batch that is about to be imported: `Statements.describe` sets the others."""
    return batch, *attrs.astuple(binding), __version__, FORM
