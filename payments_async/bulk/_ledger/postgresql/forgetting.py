"""Forgets closed batches: drops their tables, and keeps sums, root, certificate and hashes of references.

A batch is settled if its last certificate says so, and nothing has changed since. One transaction forgets a
batch. It locks all chunks first, so it waits for commits, and those that come later find no batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from ..._protocol.machines import BatchState
from ..._protocol.outcomes import Outcome, counts_of, totals_text
from ..._protocol.records import RowFigures, added_up
from ...ledger_errors import LedgerDamaged, LedgerNewer, LedgerOlder
from ..chunks import Batch, Root, of_batch, read_chunks
from ..operators import ClosedBatch
from ..stored_rows import readable, undamaged
from ..tables import FIGURES
from ..transactions import Transaction
from .batches import SharedFacts, by_id, facts_of
from .database import Database
from .dialect import HERE, KEYED, locking_all, name_hash
from .schema import RIGHTS, dropping

_HASH: Final = f"substr({KEYED}, 1, 12)"
"""What is kept of a reference: the keyed hash of its plain hash."""
_CLOSED: Final = (
    "SELECT b.batch, b.batch_id, b.chunk_size, b.hash_key FROM payments.batches b WHERE b.state = 'closed' "
    "AND (b.closed::jsonb ->> 'at')::float8 <= extract(epoch FROM clock_timestamp()) - %s "
    "ORDER BY b.created_at"
)
_ENDING: Final = (
    f"SELECT b.certificate, {HERE}, extract(epoch FROM clock_timestamp())::float8, own.size, own.droppable, "
    "EXISTS (SELECT FROM payments.chunks c WHERE c.batch = b.batch AND c.expires > clock_timestamp()) "
    "FROM payments.batches b, LATERAL ("
    "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::int8 AS size, "
    "coalesce(bool_and(pg_has_role(c.relowner, 'USAGE') OR pg_has_role(n.nspowner, 'USAGE')), true) "
    "AS droppable FROM unnest(%b::text[]) AS kind "
    "JOIN pg_class c ON c.oid = to_regclass('payments.' || kind || '_{batch:016x}') "
    "JOIN pg_namespace n ON n.oid = c.relnamespace) own WHERE b.batch = %s"
)
# under the key that the batch had, digests of rows in an archive would confirm a guessed account
_REKEY: Final = "UPDATE payments.batches SET hash_key = sha256(hash_key) WHERE batch = %s"
_REFERENCES: Final = (
    "INSERT INTO payments.forgotten_references (batch, first, hashes) "
    "SELECT %s, (array_agg(hash ORDER BY hash))[1], string_agg(hash, ''::bytea ORDER BY hash) FROM ("
    "SELECT hash, (row_number() OVER (ORDER BY hash) - 1) / 150 AS part FROM ("  # a part is stored in line
    f"SELECT {_HASH.format('r.unique_reference')} AS hash FROM payments.rows_{{batch:016x}} r "
    "JOIN payments.batches b ON b.batch = %s WHERE r.unique_reference IS NOT NULL) hashed) parted "
    "GROUP BY part"
)
_KEEP: Final = (
    "UPDATE payments.batches b SET state = 'forgotten', reason = NULL, forgotten = %s, certificate = %s, "
    f"input_stat = '{{}}', input_hash = encode({KEYED.format('convert_to(b.input_hash, $$UTF8$$)')}, 'hex') "
    "WHERE b.batch = %s"
)
_IS_FORGOTTEN: Final = "SELECT 1 FROM payments.batches WHERE batch = %s AND state = 'forgotten'"
_BY_REFERENCE: Final = (
    f"SELECT b.batch_id FROM payments.batches b, LATERAL (SELECT {_HASH.format('%s')} AS hash) wanted, "
    "LATERAL (SELECT f.hashes FROM payments.forgotten_references f WHERE f.batch = b.batch "
    "AND f.first <= wanted.hash ORDER BY f.first DESC LIMIT 1) part "
    "WHERE b.state = 'forgotten' AND EXISTS (SELECT FROM generate_series(1, length(part.hashes), 12) AS at "
    "WHERE substr(part.hashes, at, 12) = wanted.hash)"
)


@attrs.frozen
class _Ending:
    """What decides whether a batch may be forgotten, as of one moment."""

    facts: SharedFacts
    figures: RowFigures
    root: str
    """The hash over its chunks now."""
    certificate: Mapping[str, Any] | None
    is_here: bool
    """False if its last commit went to another server."""
    is_leased: bool
    at: float
    size: int
    """Bytes of its tables on disk."""
    is_droppable: bool
    """False if its tables are another user's."""

    @property
    def counts(self) -> dict[str, int]:
        """{word of `GROUPS` and of `ExtraPayout`: its rows, or payouts}."""
        return counts_of(self.figures.totals, self.facts.header.extra)

    @property
    def unsettled(self) -> str | None:
        """Why it is not settled; None when it is."""
        if self.certificate is None:
            return "no reading of the service's list is recorded"
        if left := self.figures.count(Outcome.NOT_FINAL):
            return f"{left:,} of its payouts are not final"
        if (self.certificate["ledger"]["head"], self.certificate["rows"]) != (self.root, self.counts):
            return "it has changed since its certificate"
        if not self.certificate["settled"]:
            return "its certificate is not clean"
        return None

    def kept(self, *, unsettled: bool) -> str | None:
        """Why it is kept; None when it may be forgotten."""
        if self.facts.state is not BatchState.CLOSED:
            return f"it is {self.facts.state}"
        if self.is_leased:
            return "a worker has a lease of it"
        if not self.is_here:
            return "its server is another since its last commit"
        if not self.is_droppable:
            return "its tables are another user's: forget it as the user that imported it"
        return None if unsettled else self.unsettled

    @property
    def text(self) -> str:
        """What is kept of it, as JSON text."""
        figures = self.figures
        facts = {"at": self.at, "root": self.root, "generation": figures.generation}
        return json.dumps({**facts, "totals": json.loads(totals_text(figures.totals))})

    @property
    def kept_certificate(self) -> str | None:
        """Its certificate without the plain hash of its input, from which an account could be guessed."""
        if self.certificate is None:
            return None
        return json.dumps({name: each for name, each in self.certificate.items() if name != "input_hash"})


async def closed(database: Database, seconds: float) -> list[Batch]:
    """List the batches that were closed so many seconds ago, or earlier. Raises LedgerError."""
    (found,) = await database.read((_CLOSED, (seconds,)))
    return [Batch(*values) for values in found]


async def forget(database: Database, batch: Batch, *, unsettled: bool, dry_run: bool) -> ClosedBatch:
    """Forget a closed batch, unless something speaks against it. Raises LedgerError.

    `unsettled`: also one that is not settled. `dry_run`: only find out.
    """
    path = f"{database.label}, batch {batch.batch_id}"

    async def work(transaction: Transaction) -> ClosedBatch:
        found = await _ending(transaction, batch, lock=not dry_run)
        kept = found.kept(unsettled=unsettled)
        if kept is None and not dry_run:
            number = batch.batch
            transaction.write(
                (_REKEY, (number,)),  # before the hashes, which are made under the new key
                of_batch(number, _REFERENCES, number, number),
                (_KEEP, (found.text, found.kept_certificate, number)),
            )
            for name in (*FIGURES, "chunks"):
                transaction.write((f"DELETE FROM payments.{name} WHERE batch = %s", (number,)))
            transaction.write((dropping(number), ()))
        rows = found.facts.header.rows
        return ClosedBatch(batch.batch_id, rows, found.counts, found.size, found.facts.closed_at, kept)

    async def committed(transaction: Transaction) -> bool:
        transaction.write(locking_all(batch.batch))
        return bool((await transaction.read((_IS_FORGOTTEN, (batch.batch,))))[0])

    try:
        with undamaged(path):
            if dry_run:
                return await database.snapshot(work)
            return await database.once(work, committed, may_repeat=lambda: True)
    except (LedgerDamaged, LedgerNewer, LedgerOlder) as error:  # it hides no other batch
        return ClosedBatch(batch.batch_id, 0, counts_of({}), 0, 0.0, error.problem)


async def _ending(transaction: Transaction, batch: Batch, *, lock: bool) -> _Ending:
    if lock:
        transaction.write(locking_all(batch.batch))
        await transaction.read()  # what follows sees what it waited for
    chunks = (transaction.sql.chunks, (batch.batch,))
    ending = of_batch(batch.batch, _ENDING, [*RIGHTS], batch.batch)
    (facts,), ((text, is_here, at, size, is_droppable, is_leased),), found = await transaction.read(
        by_id(batch.batch_id), ending, chunks
    )
    root, figures = Root(), list[RowFigures]()
    for chunk in read_chunks(found):
        root.add(chunk)
        figures.append(chunk.figures)
    with readable("its certificate"):
        certificate = None if text is None else dict(json.loads(text))
    marks = (is_here, is_leased, at, size, is_droppable)
    return _Ending(facts_of(facts), added_up(figures), root.hex, certificate, *marks)


async def by_reference(database: Database, reference: str) -> str | None:
    """Find the forgotten batch that had a payout of this reference. Raises LedgerError."""
    (found,) = await database.read((_BY_REFERENCE, (name_hash(reference),)))
    return next((batch_id for (batch_id,) in found), None)
