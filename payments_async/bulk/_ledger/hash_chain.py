"""The hash chain: every commit adds an entry, and each entry stands for all that came before it.

    entry n   =  SHA-256(entry n-1, batch, n, moment, kind, what changed, digest of all rows)
    all rows  =  sum of the rows' own SHA-256 digests, modulo 2**256

A commit updates the sum and reads only the rows that it changes. Still every byte of every row counts in the
sum. A ledger that was damaged, edited or cut short no longer adds up. The chain needs no secret, so a ledger
can be rewritten with a new chain. That shows when its head is compared with a copy, in a certificate or in
the lock.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from ...models.statuses import PayoutEnd
from .._protocol.clocks import Timestamps
from .._protocol.records import LedgerRow, StatusChange

GENESIS: Final = bytes(32)
"""The hash before the first entry."""
_MODULUS: Final = 1 << 256
as_json: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
"""Encodes what is hashed as JSON text."""


@attrs.frozen
class ChainEntry:
    """One entry of the chain: the record of one commit."""

    number: int
    """From 1, without gaps."""
    at: Timestamps
    kind: str
    """`import`, `header`; or of rows: `claim`, `resend`, `record`, `correct`, `retry`, `cancel`."""
    changes: str
    """JSON text: the facts of a header, or an outline of each changed row after the commit."""
    rows_digest: bytes
    """Digest of all rows after the commit."""
    hash: bytes
    """Hash of this entry and the one before."""


def digest_after(digest: bytes, removed: Iterable[bytes], added: Iterable[bytes]) -> bytes:
    """Update the digest of all rows: some rows' digests were replaced by others."""
    total = int.from_bytes(digest)
    total += sum(map(int.from_bytes, added)) - sum(map(int.from_bytes, removed))
    return (total % _MODULUS).to_bytes(32)


def outline(row: LedgerRow) -> list[Any]:
    """The outline of a row in an entry: number, state, generation, epoch, payout id, the payout's status.

    After a status that the payout's timestamps contradict comes `unclear`. So each status that was recorded
    is kept with its time, when a later one replaces it (`status_changes`).
    """
    known = row.known
    words = [row.number, known.state, known.generation, known.epoch, known.payout_id]
    if row.payout_end is PayoutEnd.UNCLEAR:
        return [*words, row.service_status, PayoutEnd.UNCLEAR.value]
    return words if row.service_status is None else [*words, row.service_status]


def outlines(rows: Iterable[LedgerRow]) -> str:
    """The outlines, as JSON text, of the rows that an entry changed."""
    return as_json([outline(row) for row in rows])


def outlining(number: int) -> str:
    """A pattern of SQL's LIKE, which fits every entry that outlines this row, and none without outlines."""
    return f'[%[{number},"%'


def status_changes(number: int, entries: Iterable[tuple[float, float | None, str]]) -> list[StatusChange]:
    """The statuses of a row's payouts by entries that outline it: their times, the service's, what changed.

    Outlines of other rows are passed over. Raises one of the errors of `readable`.
    """
    found, before = list[StatusChange](), None
    for wall, server, changes in entries:
        for of_row, _, _, _, payout_id, *words in json.loads(changes):
            said = payout_id, *words
            if of_row == number and words and said != before:
                at = float(wall), None if server is None else float(server)
                found.append(StatusChange(words[0], payout_id, *at, contradicts=len(words) > 1))
                before = said
    return found


def linked(
    previous: ChainEntry | None, batch_id: str, at: Timestamps, kind: str, changes: str, rows_digest: bytes
) -> ChainEntry:
    """Make the entry that follows `previous`, or the first entry when it is None."""
    before, number = (previous.hash, previous.number + 1) if previous else (GENESIS, 1)
    server = None if at.server is None else float(at.server)
    moment = (float(at.wall), float(at.monotonic), at.session, server)
    text = as_json((before.hex(), batch_id, number, moment, kind, changes, rows_digest.hex()))
    return ChainEntry(number, at, kind, changes, rows_digest, hashlib.sha256(text.encode()).digest())


def breaks(previous: ChainEntry | None, entries: Sequence[ChainEntry], batch_id: str) -> list[str]:
    """Find where a run of entries does not follow from `previous` (None: the beginning of the chain)."""
    found = []
    for entry in entries:
        wanted = linked(previous, batch_id, entry.at, entry.kind, entry.changes, entry.rows_digest)
        if entry.number != wanted.number:
            found.append(f"entry {wanted.number} of the chain is missing")
        elif entry.hash != wanted.hash:
            found.append(f"entry {entry.number} of the chain is not as it was written")
        previous = entry
    return found
