"""Checks at each opening that the end of a ledger is as it was written, whatever the ledger's size."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from ..._protocol.records import added_up
from .. import hash_chain
from ..batches import BatchFacts, facts_of
from ..check import read_entries
from ..chunks import BATCH_CHUNK, Chunk, read_chunks
from ..hash_chain import ChainEntry
from ..stored_rows import row_digest, stored_rows
from ..transactions import Transaction
from .dialect import LAST_ENTRIES, THE_BATCH
from .lock import HighWater

BATCH: Final = 1
"""The number of the batch in its file."""
ROWS: Final = 1
"""The number of the chunk with its rows."""
_SEGMENT: Final = 16


@attrs.frozen
class LedgerEnd:
    """A ledger after its last commit."""

    facts: BatchFacts
    chunks: Sequence[Chunk]
    findings: Sequence[str] = ()
    """What is wrong with it."""


async def ending(transaction: Transaction, mark: HighWater | None) -> LedgerEnd | None:
    """Read a ledger's end, and what is wrong with it; None before the import. Raises UnreadableRecord."""
    (found,) = await transaction.read((THE_BATCH, ()))
    if not found:
        return None
    facts = facts_of(found)
    reading = transaction.sql.chunks_numbered, (BATCH, [BATCH_CHUNK, ROWS])
    chunks = read_chunks((await transaction.read(reading))[0])
    findings, last = list(_count(facts, chunks)), list[ChainEntry]()
    for chunk in chunks:
        last = await _entries(transaction, chunk.number, chunk.entries - _SEGMENT)
        findings += _breaks(facts, chunk, last)
        findings += await _mark(transaction, facts, chunk, mark)
    findings += await _header(transaction, facts)
    return LedgerEnd(facts, chunks, findings or await _outlines(transaction, facts, last[-1]))


def _count(facts: BatchFacts, chunks: Sequence[Chunk]) -> Iterator[str]:
    totals = added_up(chunk.figures for chunk in chunks).totals
    if [chunk.number for chunk in chunks] != [BATCH_CHUNK, ROWS]:
        yield "one of its chains is missing"
    if sum(rows for rows, _ in totals.values()) != facts.header.rows:
        yield "the totals do not count as many rows as were imported"


async def _entries(transaction: Transaction, chunk: int, after: int) -> list[ChainEntry]:
    (found,) = await transaction.read((LAST_ENTRIES, (chunk, after)))
    return [entry for entry, _ in read_entries(found)]


def _breaks(facts: BatchFacts, chunk: Chunk, entries: Sequence[ChainEntry]) -> list[str]:
    """Check the last entries of a chain."""
    if not entries:
        return ["the chain is empty"]
    first, *rest = entries
    found = hash_chain.breaks(first, rest, facts.batch.chain(chunk.number, None))
    last = entries[-1]
    if (last.number, last.hash, last.rows_digest) != (chunk.entries, chunk.head, chunk.digest):
        found.append(f"the chain ends with entry {last.number}, not with the one that the chunk names")
    return found


async def _header(transaction: Transaction, facts: BatchFacts) -> list[str]:
    entries = await _entries(transaction, BATCH_CHUNK, facts.described_in - 1)
    same = entries and (entries[0].number, entries[0].changes) == (facts.described_in, facts.text)
    return [] if same else ["the header is not as it was written"]


async def _outlines(transaction: Transaction, facts: BatchFacts, entry: ChainEntry) -> list[str]:
    """Check that the rows that the last commit changed are as it left them. Returns what is wrong."""
    if entry.kind == "import":
        return []
    outlines = {number: [number, *known] for number, *known in json.loads(entry.changes)}
    (found,) = await transaction.read((transaction.sql.rows_numbered, (list(outlines),)))
    sound = [
        each.row.number
        for each in stored_rows(found)
        if hash_chain.outline(each.row) == outlines[each.row.number]
        and not each.findings(row_digest(each.row, facts.batch.hash_key))
    ]
    return [f"row {number} is not as it was written" for number in outlines if number not in sound]


async def _mark(
    transaction: Transaction, facts: BatchFacts, chunk: Chunk, mark: HighWater | None
) -> list[str]:
    """Compare a chain with the commit that the lock file records. Returns what is wrong."""
    if mark is None or mark.batch_id != facts.header.binding.batch_id:
        return []
    ends = {number: (entry, head) for number, entry, head in mark.ends}
    noted, head = ends.get(chunk.number, (0, ""))
    if noted > chunk.entries:
        return [
            f"it ends with entry {chunk.entries}, and entry {noted} was committed: "
            "its -wal file was removed or cut short, or an older copy was put in its place"
        ]
    entries = await _entries(transaction, chunk.number, noted - 1) if noted else []
    if noted and (not entries or entries[0].hash.hex() != head):
        return [f"entry {noted} of the chain is another than the one that was committed"]
    return []
