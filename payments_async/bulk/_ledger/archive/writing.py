"""Writes a batch to an archive, a page of rows at a time, each with a share of the entries."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from itertools import pairwise
from typing import Any, BinaryIO, Final

import attrs
import pyarrow.parquet

from .... import __version__
from ..._protocol.identifiers import keyed_hash
from ...errors import BulkError
from ..batches import BatchFacts
from ..chunks import BATCH_CHUNK, Chunk, Root, of_batch, read_chunks
from ..statements import LAST_NUMBER, PAGE, Rows
from ..stored_rows import readable
from ..tables import BATCHES
from ..transactions import LedgerDatabase
from . import form

_GROUP: Final = 10_000
"""Rows that are compressed, and kept in memory, at a time."""


async def write(
    database: LedgerDatabase,
    facts: BatchFacts,
    file: BinaryIO,
    *,
    accounts: bool,
    certificate: Mapping[str, Any] | None,
    kept: str | None,
) -> bool:
    """Write a batch to a file. Returns whether a certificate is in it.

    `kept`: a certificate's JSON text, which is left out if it is of another state of the batch. It reads no
    snapshot: whether a commit came between is seen when the file is checked. Raises LedgerError,
    UnreadableRecord, and BulkError for a `certificate` of another state of the batch.
    """
    sql = database.sql
    number, key = facts.batch.batch, facts.batch.hash_key
    (values,), own, chunks, entries = await database.read(
        (sql.batch, (facts.batch.batch_id,)),
        (sql.chunks_numbered, (number, [BATCH_CHUNK])),
        (sql.chunks, (number,)),
        of_batch(number, sql.entries_after, number, BATCH_CHUNK, 0, LAST_NUMBER),
    )
    root = Root()
    for chunk in read_chunks(chunks):
        root.add(chunk)
    certificate = _certificate_of(root.hex, certificate, kept)
    batch = dict(zip(BATCHES.columns, values, strict=True))
    if not accounts:
        batch["hash_key"] = b""
        for name in ("input_hash", "input_stat"):
            batch[name] = keyed_hash(key, batch[name])
        certificate = certificate and {**certificate, "input_hash": batch["input_hash"]}
    pages = _Pages(database, facts, form.schema(accounts=accounts))
    writer = pyarrow.parquet.ParquetWriter(
        file,
        pages.schema,
        compression="zstd",
        use_dictionary=list(form.FEW),
        write_page_checksum=True,
        write_statistics=False,  # no checksum covers them, and damaged ones let a query leave rows out
    )
    try:
        async with aclosing(pages.grouped(read_chunks(chunks))) as groups:
            async for group in groups:
                writer.write_table(group)
        header = {
            "format": form.FORMAT,
            "client_version": __version__,
            "accounts": accounts,
            "batch": batch,
            "root": root.hex,
            "chunks": [*own, *chunks],
            "entries": entries,
            "attempts": pages.attempts.hexdigest(),
            "certificate": certificate,
        }
        writer.add_key_value_metadata(form.header_text(header))
        writer.close()
    finally:
        writer.is_open = False  # else it closes itself when garbage-collected: its file is gone by then
    return certificate is not None


def _certificate_of(root: str, given: Mapping[str, Any] | None, kept: str | None) -> Mapping[str, Any] | None:
    """Choose the certificate of the batch as it is. Raises BulkError for a given one of another state."""
    if kept is not None:
        with readable("its certificate"):
            found: Mapping[str, Any] = json.loads(kept)
            return found if found["ledger"]["head"] == root else None
    if given is not None and given["ledger"]["head"] != root:
        raise BulkError(
            "the certificate is of another state of the batch; `payments payouts reconcile` writes a new one"
        )
    return given


@attrs.define
class _Pages:
    """The pages of a batch's rows."""

    database: LedgerDatabase
    facts: BatchFacts
    schema: Any
    attempts: Any = attrs.field(factory=hashlib.sha256)
    """Hashes all attempts, which no digest covers."""

    async def grouped(self, chunks: Iterable[Chunk]) -> AsyncGenerator[Any, None]:
        """The pages of chunks as tables, one to compress at a time."""
        group, rows = list[Any](), 0
        for chunk in chunks:
            async for page in self.of_chunk(chunk):
                group, rows = [*group, page], rows + page.num_rows
                if rows >= _GROUP:
                    yield pyarrow.Table.from_batches(group)
                    group, rows = [], 0
        yield pyarrow.Table.from_batches(group, self.schema)

    async def of_chunk(self, chunk: Chunk) -> AsyncIterator[Any]:
        """The pages of a chunk, as record batches, each with its share of the chain's entries."""
        sql, batch = self.database.sql, self.facts.batch
        rows = sum(number for number, _ in chunk.figures.totals.values())
        last, end = (chunk.number - 1) * batch.chunk_size, chunk.number * batch.chunk_size
        entry, done, more, place = 0, 0, True, (batch.batch, chunk.number)
        while more:
            reading = of_batch(batch.batch, sql.rows_after, last, end, PAGE)
            (found,) = await self.database.read(reading)
            more, done = len(found) == PAGE, done + len(found)
            if not found:
                return
            columns: dict[str, Sequence[Any]] = dict(zip(form.RECORD, zip(*found, strict=True), strict=True))
            numbers = columns["number"]
            wanted = {each for name in ("first_intent", "changed_in") for each in columns[name]} - {None}
            due = chunk.entries * done // rows if more and rows else LAST_NUMBER
            entries, moments, attempts = await self.database.read(
                of_batch(batch.batch, sql.entries_after, *place, entry, max(due - entry, 0)),
                of_batch(batch.batch, sql.moments, *place, sorted(wanted)),
                of_batch(batch.batch, sql.attempts, batch.batch, list(numbers)),
            )
            with readable("some row"):
                page = self._page(chunk, columns, entries, moments, dict(attempts))
            yield page
            last = max(numbers)
            entry = max((number for number, *_ in entries), default=entry)

    def _page(
        self,
        chunk: Chunk,
        columns: dict[str, Sequence[Any]],
        entries: Rows,
        moments: Rows,
        attempts: Mapping[int, str],
    ) -> Any:
        at = {number: form.moment(wall, server) for _, number, wall, _, _, server in moments}
        facts = zip(*(columns[name] for name in form.SHOWN_OF), strict=True)
        shown = zip(*(form.shown(each, at) for each in facts), strict=True)
        columns |= zip(form.SHOWN, shown, strict=True)
        columns |= {name: list(map(bool, columns[name])) for name in form.BOOLEANS}
        key, pairs = self.facts.batch.hash_key, (columns["body_hash"], columns["idempotency_key"])
        columns["account"] = [keyed_hash(key, *pair) for pair in zip(*pairs, strict=True)]
        columns["attempts"] = [attempts.get(number) for number in columns["number"]]
        for number, text in sorted(attempts.items()):
            self.attempts.update(form.attempts_line(number, text))
        named = [{"chunk": chunk.number, **dict(zip(form.ENTRY, each, strict=True))} for each in entries]
        rows = len(columns["number"])
        ends = [len(named) * place // rows for place in range(rows + 1)]
        columns["entries"] = [named[begin:end] for begin, end in pairwise(ends)]
        return pyarrow.RecordBatch.from_pydict(
            {name: columns[name] for name in self.schema.names}, schema=self.schema
        )
