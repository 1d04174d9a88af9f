"""Exports a ledger's rows to a file: reads a page at a time, and puts the file in place when it is whole."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Set
from contextlib import aclosing, suppress
from decimal import Decimal
from pathlib import Path
from typing import Final

import attrs

from ..._files import AtomicFile
from .._files import refuse_existing, refuse_ledger_files
from .._ledger import views
from .._ledger.figures import figures
from .._ledger.ledger import Ledger
from .._loading.load import same_file, stat_of
from .._protocol.outcomes import Outcome, add_rows, brief, outcomes_of
from .._protocol.records import grouped
from ..errors import BulkError, SourceUnreadable
from ..sources import open_source
from .formats import FORMATS, CsvFormat, ExportFormat, JsonLinesFormat, Summary
from .row_records import ACCOUNT_COLUMNS, FACTS, record, time_text

_PAGE: Final = 4000
_MOST_NAMES: Final = 200
"""Metadata names that get columns of their own; more of them share one column."""


@attrs.frozen
class ExportReport:
    """The report of an export."""

    path: str
    rows: int
    totals: Mapping[str, Decimal] = attrs.field(repr=brief)
    """{currency: the sum of the written rows' amounts, major units}."""
    unreadable: tuple[str, ...] = ()
    """What is wrong with rows that cannot be read: the file lacks them."""


async def export(
    ledger: Ledger,
    path: str | os.PathLike[str],
    states: Collection[str] | None,
    *,
    accounts: bool,
    overwrite: bool,
) -> ExportReport:
    """Write rows to a file. Raises BulkError, LedgerError, ImportError or OSError; then no file appears."""
    target = Path(path)
    kind, wanted = _format_of(target), outcomes_of(["asked"] if states is None else states)
    _refuse_own_files(ledger, target)
    if not overwrite:
        refuse_existing(target, "name another file, or replace it with --overwrite (overwrite=True)")
    columns = () if kind is JsonLinesFormat else await _columns(ledger, wanted, keeps_empty=kind is CsvFormat)
    sums, unreadable = dict[str, tuple[int, Decimal]](), list[str]()
    with AtomicFile(target) as whole:
        form = kind(whole.file, columns)
        try:
            async with aclosing(grouped(views.all_rows(ledger, wanted, unreadable), _PAGE)) as pages:
                async for page in pages:
                    read = await views.read_at(ledger, page)
                    form.write([record(row, accounts=accounts, read_at=read.get(row.id)) for row in page])
                    for row in page:
                        add_rows(sums, row.currency, 1, row.amount)
            found = await figures(ledger)
            form.end(Summary(_head(ledger, found.at, wanted), found, ledger.known.certificate))
        except BaseException:
            form.abandon()
            raise
    rows = sum(count for count, _ in sums.values())
    totals = {currency: amount for currency, (_, amount) in sums.items()}
    return ExportReport(str(target), rows, totals, tuple(unreadable))


def _format_of(path: Path) -> type[ExportFormat]:
    """Choose the format by a path's suffix. Raises BulkError for an unknown one, and ImportError."""
    if path.suffix.lower() == ".xlsx":
        from .excel import ExcelFormat  # openpyxl is an extra's

        return ExcelFormat
    if (kind := FORMATS.get(path.suffix.lower())) is None:
        known = ".csv, .jsonl or .xlsx"
        raise BulkError(f"{path}: ends in {path.suffix or 'no suffix'}; an export is {known}")
    return kind


async def _columns(ledger: Ledger, wanted: Set[Outcome], *, keeps_empty: bool) -> list[str]:
    """The columns of a flat file: a row's own facts, its account, and each name of its metadata."""
    names, filled = set[str](), set[str]()
    async for row in views.all_rows(ledger, wanted):
        entry = record(row, accounts=False)
        if len(names) <= _MOST_NAMES:
            names.update(entry["metadata"])
        filled.update(f"{part}.{name}" for part in ("instrument", "customer") for name in entry[part])
    accounts = [name for name in ACCOUNT_COLUMNS if keeps_empty or name in filled]
    metadata = ["metadata"] if len(names) > _MOST_NAMES else [f"metadata.{name}" for name in sorted(names)]
    return [*FACTS, *accounts, *metadata]


def _head(ledger: Ledger, at: float, wanted: Set[Outcome]) -> dict[str, str]:
    """Say whose report it is, when it was made, and which rows it holds."""
    label = ledger.database.label
    held = [outcome.replace("_", " ") for outcome in Outcome if outcome in wanted]
    return {
        "batch": ledger.batch_id,
        "ledger": os.path.basename(label) if os.path.isabs(label) else label,
        "made at": time_text(at),
        "times": "UTC",
        "Rows": "holds all rows" if len(held) == len(Outcome) else f"holds only: {', '.join(held)}",
    }


def _refuse_own_files(ledger: Ledger, target: Path) -> None:
    """Refuse to overwrite the ledger, a file that belongs to it, or the input."""
    path, is_input = ledger.database.path, False
    if path is not None:
        refuse_ledger_files(target, path)
        is_input = os.path.realpath(target) == os.path.realpath(path.removesuffix(".ledger"))
    if target.is_file():
        with suppress(SourceUnreadable, ImportError):  # not a kind of file that sources read
            is_input |= same_file(ledger.known.binding, stat_of(open_source(target)))
    if is_input:
        raise BulkError(f"{target}: is the batch's input; choose another path")
