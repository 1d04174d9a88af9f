"""Checks a batch chunk by chunk, in short transactions: chains, every row, sums, and a root over all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

import attrs

from ...protocol import totals as _totals
from ...protocol.clocks import Timestamps
from ...protocol.records import CheckReport, LedgerRow
from .. import hash_chain
from ..hash_chain import GENESIS, ChainEntry
from ..rows import Findings, UnreadableRecord, readable, row_digest, row_findings
from . import batches, run_figures
from . import chunks as _chunks
from . import rows as _rows
from .batches import BatchFacts, facts_text
from .chunks import WHOLE, Batch, Chunk, Root
from .driver.database import Database, Transaction
from .driver.session import Rows
from .figures import RowFigures, added_up, figures_of

_PAGE: Final = 500
_ENTRIES: Final = 64
_READ_ENTRIES: Final = (
    "SELECT number, wall, monotonic, session, server, kind, changes, rows_digest, hash, lease "
    "FROM payments.entries WHERE batch = %s AND chunk = %s AND number > %s ORDER BY number LIMIT %s"
)
_NAMES: Final = (
    "SELECT chunk FROM payments.chunks WHERE batch = %s "
    "UNION SELECT chunk FROM payments.entries WHERE batch = %s ORDER BY chunk"
)
_COUNTS: Final = (
    "SELECT unsent, in_flight, in_doubt, created, refused, not_final FROM payments.chunks "
    "WHERE batch = %s AND chunk = %s"
)


async def checked(database: Database, batch_id: str, on_line: Callable[[str], object] = bool) -> CheckReport:
    """Check a whole batch; `on_line` gets a line of JSON for each chunk, in the order of their numbers.

    Raises LedgerError when the database cannot be read. Takes the memory of one page of rows.
    """
    found, root, counted, entries = Findings(), Root(), list[RowFigures](), 0
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


async def _whole(transaction: Transaction, batch_id: str) -> _Whole:
    (found,) = await transaction.read(batches.by_id(batch_id))
    try:
        facts = batches.facts_of(found[0]) if found else None
    except UnreadableRecord as error:
        return _Whole(None, [str(error)])
    if facts is None:
        return _Whole(None, ["the header is missing"])
    check = _Check(facts.batch, WHOLE, GENESIS)
    result = await check.run(transaction)
    whole = _Whole(facts, result.findings, result.entries, check.first)
    text = facts_text(facts.header, facts.batch, facts.chunks)
    if check.texts.get(facts.described_in) != text:
        whole.findings.append("the header is not as it was written")
    (numbers,) = await transaction.read((_NAMES, (facts.batch.batch, facts.batch.batch)))
    whole.numbers = [number for (number,) in numbers if number != WHOLE]
    return whole


@attrs.define
class _Result:
    """What the check found of one chunk."""

    chunk: Chunk | None = None
    entries: int = 0
    figures: RowFigures = attrs.field(factory=RowFigures)
    findings: Findings = attrs.field(factory=Findings)


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

    async def run(self, transaction: Transaction) -> _Result:
        """Check chain, rows and sums."""
        result = _Result()
        place = (self.batch.batch, self.number)
        found, counts = await transaction.read(
            _chunks.reading(self.batch.batch, "AND c.chunk = %s", self.number), (_COUNTS, place)
        )
        try:
            (chunk,) = _chunks.read(found)
        except (UnreadableRecord, ValueError):
            result.findings.add("it is missing, or cannot be read")
            return result
        result.chunk, last = chunk, await self._chain(transaction, chunk, result)
        if self.number != WHOLE:
            digest = await self._rows(transaction, result)
            result.findings.add(*self._differences(chunk, result.figures, last, digest, counts))
        return result

    async def _chain(self, transaction: Transaction, chunk: Chunk, result: _Result) -> ChainEntry | None:
        """Check the chain. Returns its last entry."""
        previous = None if self.number == WHOLE else _before(self.start)
        async for page in self._pages(transaction):
            for entry, lease in page:
                name = self.batch.chain(self.number, lease)
                result.findings.add(*hash_chain.breaks(previous, [entry], name))
                self.first = self.first if result.entries else entry.hash
                result.entries, previous = result.entries + 1, entry
                if self.number == WHOLE:
                    self.texts[entry.number] = entry.changes
        if previous is None or (previous.number, previous.hash) != (chunk.entries, chunk.head):
            result.findings.add(f"the chain does not end with entry {chunk.entries} as the chunk says")
        return previous

    async def _pages(self, transaction: Transaction) -> AsyncIterator[list[tuple[ChainEntry, bytes | None]]]:
        last, more = 0, True
        while more:
            values = (self.batch.batch, self.number, last, _ENTRIES)
            (found,) = await transaction.read((_READ_ENTRIES, values))
            yield [(_entry_of(entry), entry[9]) for entry in found]
            more = len(found) == _ENTRIES
            last = found[-1][0] if found else last

    async def _rows(self, transaction: Transaction, result: _Result) -> bytes:
        """Check each row, and count them. Returns the digest of all."""
        digest, last, more, size = bytes(32), 0, True, self.batch.chunk_size
        last, end = (self.number - 1) * size, self.number * size
        while more:
            page = _rows.reading(
                self.batch.batch, "s.number > %s AND s.number <= %s", [last, end], limit=_PAGE
            )
            (found,) = await transaction.read(page)
            rows = list(_readable_rows(found, result.findings))
            digest = hash_chain.moved(digest, (), map(row_digest, rows))
            result.figures = added_up((result.figures, figures_of(rows)))
            more = len(found) == _PAGE
            last = found[-1][0] if found else last
        return digest

    def _differences(
        self, chunk: Chunk, counted: RowFigures, last: ChainEntry | None, digest: bytes, counts: Rows
    ) -> Iterator[str]:
        """Compare what was counted with what is stored."""
        if last is None or not last.rows_digest == digest == chunk.digest:
            yield "the rows do not add up to what the chain says of them"
        yield from _totals.disagreements(chunk.figures.totals, counted.totals)
        wanted = _chunks.stored_values(attrs.evolve(chunk, figures=counted))
        if tuple(counts[0]) != wanted[3:9] or chunk.figures != counted:
            yield "its counts are not those of its rows"


def _before(start: bytes) -> ChainEntry:
    return ChainEntry(0, Timestamps(0.0, 0.0, ""), "", "", b"", start)


def _entry_of(values: tuple[Any, ...]) -> ChainEntry:
    number, wall, monotonic, session, server, kind, changes, rows_digest, digest, _ = values
    return ChainEntry(
        number, Timestamps(wall, monotonic, session, server), kind, changes, rows_digest, digest
    )


def _readable_rows(found: Rows, findings: Findings) -> Iterator[LedgerRow]:
    for values in found:
        try:
            with readable(f"row {values[0]}"):
                stored = _rows.stored_row(values)
                findings.add(*row_findings(stored.row, stored.rank, stored.digest))
        except UnreadableRecord as error:
            findings.add(str(error))
        else:
            yield stored.row
