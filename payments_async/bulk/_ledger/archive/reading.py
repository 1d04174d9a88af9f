"""Reads an archive, forward only, by the statements with which a ledger is checked."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import pyarrow.parquet

from ..._files import PARQUET_START
from ..._protocol.outcomes import counts_of, sums_of, sums_text
from ..._protocol.records import CheckReport, added_up
from ...ledger_errors import ArchiveDamaged, LedgerForeign, LedgerMissing, LedgerNewer, LedgerOlder
from ..batches import FORM, facts_of
from ..check import checked
from ..chunks import BATCH_CHUNK, chunk_of, read_chunks, stored_values
from ..sqlite.dialect import SQL
from ..statements import LAST_NUMBER, PAGE, Rows, Statement
from ..stored_rows import CheckFindings, UnreadableRecord, readable
from ..transactions import Purpose, ReadOnly, Snapshots
from . import form

_Numbered = Iterator[tuple[int, tuple[Any, ...]]]
"""Values with the numbers that they are in the order of."""
_BATCH: Final = 2_000
"""Rows that are made of columns at a time."""
_HIDDEN: Final = {"body": b"", "idempotency_key": "", "own_key": None}
"""What stands for account data that is not there; the keyed hash for the body's."""
_WRITE_ONE: Final = "give the file that `payments payouts archive LEDGER --to FILE` has written"
_NOT_READ: Final = "its pages cannot be read: they are damaged, or missing"


def check_archive(path: str | os.PathLike[str]) -> CheckReport:
    """Check an archive alone, without its ledger: every row, the chains, the root, figures and certificate.

    Blocks, for some 24 seconds of a million rows: `await asyncio.to_thread(check_archive, path)` does not.
    What is wrong is in `.findings`.

    Args:
        path: the file that `archive` has written.

    Raises:
        LedgerMissing: there is no such file.
        LedgerForeign: it is no archive.
        ArchiveDamaged: it is so damaged, or cut short, that it cannot be read.
        LedgerNewer: a newer version has written it; LedgerOlder: an older one.
        ImportError: Parquet's extra is not installed.
    """
    name = os.fspath(path)
    try:
        archive = ArchiveFile(name)
        checking = checked(archive, archive.batch_id)
        try:
            checking.send(None)
        except StopIteration as done:  # it never waits: what it reads is there
            report: CheckReport = done.value
        for finding in archive.remarks(report):
            report = report.with_finding(finding)
    except UnreadableRecord as error:
        problem = str(error)
    except (OSError, pyarrow.ArrowException):
        problem = _NOT_READ
    else:
        return report
    raise ArchiveDamaged(name, [problem])


class ArchiveFile(Snapshots, ReadOnly):
    """An archive, whose rows and entries can be read once, in their order."""

    sql = SQL

    def __init__(self, path: str) -> None:
        """Open it. Raises the errors of `check_archive`."""
        self._file = _opened(path)
        self._header = _header(path, self._file.metadata.metadata or {})
        accounts = self._header["accounts"]
        if not self._file.schema_arrow.equals(form.schema(accounts=accounts)):
            raise ArchiveDamaged(path, ["its columns are not those of an archive"])
        self._hidden: Mapping[str, Any] = {} if accounts else _HIDDEN
        self._rows = _Ahead(self._records())
        self._entries = _Ahead(self._linked())
        self._attempts = _Ahead(self._attempted())
        self._at: dict[int, int] = {}
        """{entry: its time}, of the chunk that was read last."""
        self._hash = hashlib.sha256()
        self._findings = CheckFindings()
        self._answers: dict[str, Callable[..., Rows]] = {
            SQL.batch: lambda _: [tuple(self._header["batch"].values())],
            SQL.chunk_names: lambda *_: [(number,) for number, *_ in self._header["chunks"]],
            SQL.chunks_numbered: self._chunks,
            SQL.chunk_counts: lambda _, number: [
                stored_values(chunk_of(*values)) for values in self._chunks(0, [number])
            ],
            SQL.entries_after: self._entries_after,
            SQL.rows_after: self._rows_after,
            SQL.attempts_after: self._attempts_after,
            SQL.buckets: lambda *_: [],
            SQL.times: lambda *_: [],
        }

    @property
    def batch_id(self) -> str:
        """The batch's name."""
        return str(self._header["batch"]["batch_id"])

    async def read(self, *statements: Statement, purpose: Purpose = Purpose.READ) -> list[Rows]:
        """Answer statements of a check. Raises UnreadableRecord, OSError or ArrowException."""
        with readable("the archive"):
            return [self._answers[sql](*values) for sql, values in statements]

    async def snapshot(self, work: Callable[[ReadOnly], Any]) -> Any:
        """Run `work`, which reads: a file does not change."""
        return await work(self)

    def remarks(self, report: CheckReport) -> Iterator[str]:
        """What is wrong beside what a check of a ledger finds. Raises UnreadableRecord."""
        yield from self._findings
        if self._rows.next is not None or self._entries.next is not None:
            yield "it has rows or entries that are of no chunk"
        if self._hash.hexdigest() != self._header["attempts"]:
            yield "the attempts are not as they were written"
        if report.head != self._header["root"]:
            yield "the root is not that of its chunks"
        with readable("the certificate"):
            yield from self._of_certificate(self._header["certificate"], report.head)

    def _of_certificate(self, certificate: Any, head: str) -> Iterator[str]:
        if certificate is None:
            return
        facts = facts_of([tuple(self._header["batch"].values())])
        totals = added_up(chunk.figures for chunk in read_chunks(self._header["chunks"])).totals
        extra, binding = facts.header.extra, facts.header.binding
        names = ("batch_id", "environment", "base_url", "key_fingerprint", "input_hash")
        if [certificate[name] for name in names] != [getattr(binding, name) for name in names]:
            yield "the certificate is of another batch"
        if certificate["ledger"]["head"] != head:
            yield "the certificate is not of this root"
        figures = counts_of(totals, extra), sums_text(sums_of(totals, extra))
        if (certificate["rows"], certificate["sums"]) != figures:
            yield "the certificate's rows or sums are not those of the archive"

    # Answers

    def _chunks(self, _: int, numbers: list[int]) -> Rows:
        return [(number, *values) for number, *values in self._header["chunks"] if number in numbers]

    def _entries_after(self, _batch: int, chunk: int, last: int, limit: int) -> Rows:
        if chunk == BATCH_CHUNK:
            return [tuple(each) for each in self._header["entries"]][last : last + limit]
        if not last:
            self._at.clear()
        found = self._entries.take(limit, chunk)
        for number, wall, _, _, server, *_ in found:
            self._at[number] = form.moment(wall, server)
        return found

    def _rows_after(self, last: int, end: int, limit: int) -> Rows:
        found = Rows()
        for row, said, facts in self._rows.take(limit, end):
            before, (last, *_) = last, row
            if last <= before:
                self._findings.add(f"row {last} is not in its place")
            with suppress(ValueError):  # then the row itself cannot be read
                if said != form.shown(facts, self._at):
                    self._findings.add(f"row {last} is not shown as it is recorded")
            found.append(row)
        return found

    def _attempts_after(self, _: int, last: int) -> Rows:
        found = self._attempts.take(PAGE, LAST_NUMBER)
        for number, text in found:
            self._hash.update(form.attempts_line(number, text))
        return found

    # The file's columns

    def _columns(self, *names: str) -> Iterator[dict[str, Any]]:
        for batch in self._file.iter_batches(_BATCH, columns=list(names)):
            yield {name: batch.column(name) for name in names}

    def _records(self) -> _Numbered:
        wanted = {*form.RECORD, *form.SHOWN} - self._hidden.keys()
        if self._hidden:
            wanted = {*wanted, "account"} - {"body_hash"}
        for columns in self._columns(*sorted(wanted)):
            lists = {name: _listed(column) for name, column in columns.items()}
            lists.setdefault("body_hash", lists.get("account", []))
            lists |= {name: [value] * len(lists["number"]) for name, value in self._hidden.items()}
            parts = (
                zip(*(lists[name] for name in names), strict=True)
                for names in (form.RECORD, form.SHOWN, form.SHOWN_OF)
            )
            yield from zip(lists["number"], zip(*parts, strict=True), strict=True)

    def _linked(self) -> _Numbered:
        for columns in self._columns("entries"):
            entries = columns["entries"].flatten()
            of_entry = zip(*(entries.field(name).to_pylist() for name in form.ENTRY), strict=True)
            yield from zip(entries.field("chunk").to_pylist(), of_entry, strict=True)

    def _attempted(self) -> _Numbered:
        for columns in self._columns("number", "attempts"):
            of_row = zip(*(column.to_pylist() for column in columns.values()), strict=True)
            yield from ((number, (number, text)) for number, text in of_row if text is not None)


def _listed(column: Any) -> list[Any]:
    """The values of a column; times as microseconds since 1970."""
    is_time = pyarrow.types.is_timestamp(column.type)
    found: list[Any] = (column.cast(pyarrow.int64()) if is_time else column).to_pylist()
    return found


class _Ahead:
    """Values that can be taken once, in their order, as far as their numbers allow."""

    def __init__(self, values: _Numbered) -> None:
        self._values = values
        self.next = next(values, None)
        """The next one with its number; None after the last."""

    def take(self, limit: int, end: int) -> Rows:
        """Take so many, up to the first with a higher number."""
        found = Rows()
        while len(found) < limit and self.next is not None:
            number, value = self.next
            if number > end:
                break
            found.append(value)
            self.next = next(self._values, None)
        return found


def _opened(path: str) -> Any:
    """Open a Parquet file. Raises LedgerMissing, LedgerForeign or ArchiveDamaged."""
    try:
        with open(path, "rb") as file:
            is_parquet = file.read(len(PARQUET_START)) == PARQUET_START
    except FileNotFoundError:
        raise LedgerMissing(path, "there is no such file", remedy=_WRITE_ONE) from None
    except OSError as error:
        raise LedgerForeign(path, f"cannot be read ({error.strerror})", remedy=_WRITE_ONE) from None
    if not is_parquet:
        raise LedgerForeign(path, "is no Parquet file", remedy=_WRITE_ONE)
    try:
        return pyarrow.parquet.ParquetFile(path, pre_buffer=False, page_checksum_verification=True)
    except (OSError, pyarrow.ArrowException):
        raise ArchiveDamaged(path, ["it was cut short, or its end is damaged"]) from None


def _header(path: str, footer: Mapping[bytes, bytes]) -> dict[str, Any]:
    """Read the header. Raises LedgerForeign, LedgerNewer, LedgerOlder, ArchiveDamaged or UnreadableRecord."""
    text = footer.get(form.HEADER)
    if text is None:
        raise LedgerForeign(path, "is Parquet, and no archive of a batch", remedy=_WRITE_ONE)
    with readable("its header"):
        header = form.read_header(text)
        for found, known in ((header["format"], form.FORMAT), (header["batch"]["schema"], FORM)):
            if found != known:
                raise (LedgerNewer if found > known else LedgerOlder)(path, found=found, known=known)
    if footer.get(form.HEADER_HASH) != form.header_hash(text):
        raise ArchiveDamaged(path, ["its header is not as it was written"])
    return header
