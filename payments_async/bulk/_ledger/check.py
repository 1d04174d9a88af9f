"""Checks a batch chunk by chunk, in short transactions: chains, every row, sums, and a root over all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final

import attrs

from .._protocol.clocks import Timestamps
from .._protocol.outcomes import disagreements
from .._protocol.records import CheckReport, LedgerRow, RowFigures, added_up, row_figures_of
from . import hash_chain, run_figures
from .batches import BatchFacts, facts_of
from .chunks import BATCH_CHUNK, Batch, Chunk, Root, entry_of, of_batch, read_chunks, stored_values
from .hash_chain import GENESIS, ChainEntry
from .statements import PAGE, Rows
from .stored_rows import CheckFindings, UnreadableRecord, readable, row_digest, stored_row
from .transactions import ReadOnly, Snapshots

_ENTRIES: Final = 64


async def checked(database: Snapshots, batch_id: str, on_line: Callable[[str], object] = bool) -> CheckReport:
    """Check a whole batch; `on_line` gets a line of JSON for each chunk, in the order of their numbers.

    Raises LedgerError when the database cannot be read. Takes the memory of one page of rows.
    """
    found, root, counted, entries = CheckFindings(), Root(), list[RowFigures](), 0
    figures: tuple[str, ...] = ()
    first = await database.snapshot(lambda transaction: _whole(transaction, batch_id))
    found.add(*first.findings)
    if first.facts is not None:
        batch, entries = first.facts.batch, first.entries
        for number in first.numbers:
            result = await database.snapshot(_Check(batch, number, first.start).run)
            found.add(*(f"chunk {number}: {finding}" for finding in result.findings))
            entries += result.entries
            counted.append(result.figures)
            if result.chunk is not None:
                root.add(result.chunk)
                on_line(result.chunk.line)
        found.add(*_sums(first.facts, counted))
        figures = await run_figures.unreadable(database, batch.batch)
    rows = sum(_count(figures) for figures in counted)
    return CheckReport(rows, entries, root.hex, tuple(dict.fromkeys(found)), figures)


def _sums(facts: BatchFacts, counted: list[RowFigures]) -> Iterator[str]:
    rows = sum(_count(figures) for figures in counted)
    if rows != facts.header.rows:
        yield f"{facts.header.rows} rows were imported, {rows} are there"
    if len(counted) != facts.chunks:
        yield f"it was made of {facts.chunks} chunks, {len(counted)} are there"


def _count(figures: RowFigures) -> int:
    return sum(rows for rows, _ in figures.totals.values())


@attrs.define
class _Whole:
    """What the check found of the batch itself."""

    facts: BatchFacts | None
    findings: list[str]
    entries: int = 0
    start: bytes = GENESIS
    """The hash that the chunks' chains begin from."""
    numbers: list[int] = attrs.field(factory=list)
    """The numbers of its chunks."""


async def _whole(transaction: ReadOnly, batch_id: str) -> _Whole:
    (found,) = await transaction.read((transaction.sql.batch, (batch_id,)))
    if not found:
        return _Whole(None, ["the header is missing"])
    try:
        facts = facts_of(found)
    except UnreadableRecord as error:
        return _Whole(None, [str(error)])
    check = _Check(facts.batch, BATCH_CHUNK, GENESIS)
    result = await check.run(transaction)
    whole = _Whole(facts, result.findings, result.entries, check.first)
    if check.texts.get(facts.described_in) != facts.text:
        whole.findings.append("the header is not as it was written")
    batch = facts.batch.batch
    (numbers,) = await transaction.read(of_batch(batch, transaction.sql.chunk_names, batch, batch))
    whole.numbers = [number for (number,) in numbers if number != BATCH_CHUNK]
    return whole


@attrs.define
class _Result:
    """What the check found of one chunk."""

    chunk: Chunk | None = None
    entries: int = 0
    figures: RowFigures = attrs.field(factory=RowFigures)
    findings: CheckFindings = attrs.field(factory=CheckFindings)


@attrs.define
class _Check:
    """The check of one chunk."""

    batch: Batch
    number: int
    start: bytes
    """The hash that its chain begins from."""
    first: bytes = GENESIS
    """The hash of its first entry."""
    texts: dict[int, str] = attrs.field(factory=dict)
    """{entry: its facts}, of entries about the batch itself."""

    async def run(self, transaction: ReadOnly) -> _Result:
        """Check chain, rows and sums."""
        result = _Result()
        place = (self.batch.batch, self.number)
        sql = transaction.sql
        found, counts = await transaction.read(
            (sql.chunks_numbered, (self.batch.batch, [self.number])), (sql.chunk_counts, place)
        )
        try:
            (chunk,) = read_chunks(found)
        except (UnreadableRecord, ValueError):
            result.findings.add("it is missing, or cannot be read")
            return result
        result.chunk, last = chunk, await self._chain(transaction, chunk, result)
        if self.number != BATCH_CHUNK:
            digest = await self._rows(transaction, result)
            result.findings.add(*self._differences(chunk, result.figures, last, digest, counts))
        return result

    async def _chain(self, transaction: ReadOnly, chunk: Chunk, result: _Result) -> ChainEntry | None:
        """Check the chain. Returns its last entry."""
        previous = None if self.number == BATCH_CHUNK else _before(self.start)
        async for page in self._pages(transaction):
            for entry, lease in page:
                name = self.batch.chain(self.number, lease)
                result.findings.add(*hash_chain.breaks(previous, [entry], name))
                self.first = self.first if result.entries else entry.hash
                result.entries, previous = result.entries + 1, entry
                if self.number == BATCH_CHUNK:
                    self.texts[entry.number] = entry.changes
        if previous is None or (previous.number, previous.hash) != (chunk.entries, chunk.head):
            result.findings.add(f"the chain does not end with entry {chunk.entries} as the chunk says")
        return previous

    async def _pages(self, transaction: ReadOnly) -> AsyncIterator[list[tuple[ChainEntry, bytes | None]]]:
        last, more = 0, True
        while more:
            values = (self.batch.batch, self.number, last, _ENTRIES)
            reading = of_batch(self.batch.batch, transaction.sql.entries_after, *values)
            (found,) = await transaction.read(reading)
            page = read_entries(found)
            yield page
            more = len(found) == _ENTRIES
            last = page[-1][0].number if page else last

    async def _rows(self, transaction: ReadOnly, result: _Result) -> bytes:
        """Check each row, and count them. Returns the digest of all."""
        digest, last, more, size = bytes(32), 0, True, self.batch.chunk_size
        last, end = (self.number - 1) * size, self.number * size
        while more:
            reading = of_batch(self.batch.batch, transaction.sql.rows_after, last, end, PAGE)
            (found,) = await transaction.read(reading)
            rows = list(_readable_rows(found, self.batch.hash_key, result.findings))
            digest = hash_chain.digest_after(digest, (), (of_row for _, of_row in rows))
            result.figures = added_up((result.figures, row_figures_of(row for row, _ in rows)))
            more = len(found) == PAGE
            last = max((number for number, *_ in found), default=last)
        return digest

    def _differences(
        self, chunk: Chunk, counted: RowFigures, last: ChainEntry | None, digest: bytes, counts: Rows
    ) -> Iterator[str]:
        """Compare what was counted with what is stored."""
        if last is None or not last.rows_digest == digest == chunk.digest:
            yield "the rows do not add up to what the chain says of them"
        yield from disagreements(chunk.figures.totals, counted.totals)
        *wanted, _ = stored_values(attrs.evolve(chunk, figures=counted))
        stored = [numbers for *numbers, _ in counts]  # the sums were compared: 7.50 is 7.5
        if stored != [wanted]:
            yield "its counts are not those of its rows"


def _before(start: bytes) -> ChainEntry:
    return ChainEntry(0, Timestamps(0.0, 0.0, ""), "", "", b"", start)


def read_entries(found: Rows) -> list[tuple[ChainEntry, bytes | None]]:
    """Make entries, and the leases they were made with, of what a statement has read."""
    with readable("the chain"):
        return [entry_of(*values) for values in found]


def _readable_rows(found: Rows, key: bytes, findings: CheckFindings) -> Iterator[tuple[LedgerRow, bytes]]:
    """Rows with their digests."""
    for number, *values in found:
        try:
            with readable(f"row {number}"):
                stored = stored_row((number, *values))
                digest = row_digest(stored.row, key)
                findings.add(*stored.findings(digest, has_body=bool(key)))
        except UnreadableRecord as error:
            findings.add(str(error))
        else:
            yield stored.row, digest
