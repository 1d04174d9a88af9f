"""Checks that a ledger is as it was written: its last commit at each opening, all of it on request."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from aiosqlite import Connection

from ...protocol import totals as _totals
from ...protocol.outcomes import Outcome
from ...protocol.records import CheckReport, Header
from ...protocol.totals import Sums
from .. import hash_chain
from ..hash_chain import ChainEntry
from ..rows import Findings, UnreadableRecord, is_as_written, readable, row_digest, row_findings
from . import driver, journal, run_figures
from . import rows as _store
from .journal import LedgerState
from .lock import HighWater
from .rows import StoredRow

_SEGMENT: Final = 16


async def end(db: Connection, mark: HighWater | None) -> tuple[LedgerState, list[str]] | None:
    """Read the ledger's state after its last commit, and what is wrong with it; None before the import.

    Reads the same little whatever the ledger's size. Raises UnreadableRecord.
    """
    read = await journal.header(db)
    if read is None:
        return None
    header, described_in, (number, digest) = read
    last = await _last_entry(db)
    found = await _segment(db, header, last.number)
    if (last.number, last.hash) != (number, digest):
        found.append(f"the chain ends with entry {last.number}, not with the one that the header names")
    totals = await journal.totals(db)
    if sum(rows for rows, _ in totals.values()) != header.rows:
        found.append("the totals do not count as many rows as were imported")
    found += await _header_findings(db, header, described_in)
    found += await _mark_findings(db, header, last.number, mark)
    return LedgerState(header, last, totals), found or await _outline_findings(db, last)


def emptied(mark: HighWater) -> str:
    """The finding for a ledger that holds no batch although its lock file records one."""
    return (
        f"holds nothing, while its .lock says that entry {mark.entry} of batch {mark.batch_id} was committed"
    )


async def _last_entry(db: Connection) -> ChainEntry:
    found = await journal.entries(db, journal.LAST)
    if not found:
        raise UnreadableRecord("the chain is empty")
    return found[0]


async def _segment(db: Connection, header: Header, last: int) -> list[str]:
    start = max(1, last - _SEGMENT)
    entries = await journal.entries(db, journal.BETWEEN, start, last)
    if start == 1:
        return hash_chain.breaks(None, entries, header.binding.batch_id)
    return hash_chain.breaks(entries[0], entries[1:], header.binding.batch_id)


async def _header_findings(db: Connection, header: Header, described_in: int) -> list[str]:
    entries = await journal.entries(db, journal.BETWEEN, described_in, described_in)
    same = entries and entries[0].changes == journal.facts(header)
    return [] if same else ["the header is not as it was written"]


async def _outline_findings(db: Connection, entry: ChainEntry) -> list[str]:
    """Check that the rows that the last commit changed are as it left them. Returns what is wrong."""
    if entry.kind in ("import", "header"):
        return []
    outlines = {outline[0]: outline for outline in json.loads(entry.changes)}
    rows = await _store.numbered(db, outlines)
    return [
        f"row {number} is not as it was written"
        for number, outline in outlines.items()
        if number not in rows
        or hash_chain.outline(rows[number].row) != outline
        or not is_as_written(*rows[number])
    ]


async def _mark_findings(db: Connection, header: Header, last: int, mark: HighWater | None) -> list[str]:
    """Compare the ledger with the commit that its lock file records. Returns what is wrong."""
    if mark is None or mark.batch_id != header.binding.batch_id:
        return []
    if mark.entry > last:
        return [
            f"it ends with entry {last}, and entry {mark.entry} was committed: "
            "its -wal file was removed or cut short, or an older copy was put in its place"
        ]
    (same,) = await journal.entries(db, journal.BETWEEN, mark.entry, mark.entry) or (None,)
    if same is None or same.hash.hex() != mark.head:
        return [f"entry {mark.entry} of the chain is another than the one that was committed"]
    return []


async def everything(db: Connection, expected: LedgerState) -> CheckReport:
    """Check all of the ledger: the file's own structure, the chain, every row and every sum.

    Takes memory for one page of rows. Raises UnreadableRecord when not even the last commit can be read.
    """
    state, wrong = await end(db, None) or (None, [])
    if state != expected:
        raise UnreadableRecord("the end of the ledger is not what this run committed last")
    header, last = expected.header, expected.head
    found = Findings(wrong)
    found.add(*await driver.faults(db))
    entries = await _whole_chain(db, header.binding.batch_id, found)
    rows, sums, digest = await _all_rows(db, found)
    if digest != last.rows_digest:
        found.add("the rows do not add up to what the chain says of them")
    if rows != header.rows:
        found.add(f"{header.rows} rows were imported, {rows} are there")
    found.add(*_totals.disagreements(expected.totals, sums.totals))
    figures = await run_figures.unreadable(db)
    return CheckReport(rows, entries, last.hash.hex(), tuple(dict.fromkeys(found)), figures)


async def _whole_chain(db: Connection, batch_id: str, found: Findings) -> int:
    previous: ChainEntry | None = None
    count = 0
    while page := await journal.entries(db, journal.AFTER, previous.number if previous else 0):
        found.add(*hash_chain.breaks(previous, page, batch_id))
        previous = page[-1]
        count += len(page)
    return count


async def _all_rows(db: Connection, found: Findings) -> tuple[int, Sums[tuple[Outcome, str]], bytes]:
    sums, digest, count, last = Sums[tuple[Outcome, str]](), bytes(32), 0, -1
    while page := await _page(db, last):
        count += len(page)
        last = page[-1][0]
        for stored in _readable_rows(page, found):
            row = stored.row
            sums.add((row.outcome, row.currency), row.amount)
            digest = hash_chain.moved(digest, (), (row_digest(row),))
    return count, sums, digest


async def _page(db: Connection, after: int) -> list[Any]:
    with readable(f"a row after number {after}"):
        return await driver.run(db, _store.ALL, after)


def _readable_rows(page: Iterable[Any], found: Findings) -> Iterator[StoredRow]:
    for values in page:
        try:
            with readable(f"row {values[0]}"):
                stored = _store.stored(values)
                found.add(*row_findings(*stored))
        except UnreadableRecord as error:
            found.add(str(error))
        else:
            yield stored
