"""Exports a ledger's rows to a file: reads a page at a time, and puts the file in place when it is whole."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncGenerator, Collection, Mapping, Set
from contextlib import aclosing
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import attrs

from ..._files import AtomicFile
from .._files import refuse_existing, refuse_ledger_files
from .._ledger.ledger import Ledger
from .._loading.load import same_file, stat_of
from .._protocol.outcomes import Outcome, Sums, brief, outcomes_of
from .._protocol.records import LedgerRow, grouped
from ..errors import BulkError, SourceUnreadable
from ..sources import open_source
from . import row_records
from .formats import FORMS, NESTED, ExportFormat

_PAGE: Final = 4000
_MOST_NAMES: Final = 200
"""Metadata names that get columns of their own; more of them share one column."""
_HASH: Final = re.compile("[0-9a-f]{64}")
"""The name of a batch without a name of its own: the hash of its input."""
Wanted = Set[Outcome]


@attrs.frozen
class ExportReport:
    """The report of an export."""

    path: str
    rows: int
    totals: Mapping[str, Decimal] = attrs.field(repr=brief)
    """{currency: the sum of the written rows' amounts, major units}."""


async def export(
    ledger: Ledger,
    path: str | os.PathLike[str],
    states: Collection[str] | None,
    *,
    accounts: bool,
    overwrite: bool,
    certificate: str | os.PathLike[str] | None,
) -> ExportReport:
    """Write rows to a file. Raises BulkError, LedgerError, ImportError or OSError; then no file appears."""
    target = Path(path)
    kind, wanted = _form_of(target), outcomes_of(["asked"] if states is None else states)
    refuse_own_files(ledger, target)
    if not overwrite:
        refuse_existing(target, "name another file, or replace it with --overwrite (overwrite=True)")
    names = set() if kind in NESTED else await _names(ledger, wanted)
    empty = await _empty(ledger, wanted) if kind.has_summary else ()
    with AtomicFile(target) as whole:
        form = kind(whole.file, [name for name in row_records.columns(names) if name not in empty])
        try:
            sums = await _written(ledger, form, wanted, accounts=accounts)
            if form.has_summary:
                head = head_of(ledger.header.binding.batch_id, ledger.path, ledger.now(), wanted)
                seal = await _certificate(ledger, certificate)
                form.summary(head, ledger.totals, ledger.header.extra, seal)
            form.end()
        except BaseException:
            form.abandon()
            raise
    rows = sum(count for count, _ in sums.totals.values())
    return ExportReport(
        str(target), rows, {currency: amount for currency, (_, amount) in sums.totals.items()}
    )


def _form_of(path: Path) -> type[ExportFormat]:
    """Choose the format by a path's suffix. Raises BulkError for an unknown one, and ImportError."""
    if path.suffix.lower() == ".xlsx":
        from .excel import ExcelFormat  # openpyxl is an extra's

        return ExcelFormat
    form = FORMS.get(path.suffix.lower())
    if form is None:
        known = ".csv, .json, .jsonl, .parquet or .xlsx"
        raise BulkError(f"{path}: ends in {path.suffix or 'no suffix'}; an export is {known}")
    return form


async def _written(ledger: Ledger, form: ExportFormat, wanted: Wanted, *, accounts: bool) -> Sums[str]:
    sums = Sums[str]()
    async with aclosing(_pages(ledger, wanted)) as pages:
        async for page in pages:
            at = await ledger.change_times(page)
            form.write([row_records.record(row, at[row.number], accounts=accounts) for row in page])
            for row in page:
                sums.add(row.currency, row.amount)
    return sums


def head_of(batch_id: str, path: str, at: float, wanted: Wanted) -> dict[str, str]:
    """Say whose report it is, when it was made, and which rows it holds. `path`: of the ledger."""
    held = [outcome.replace("_", " ") for outcome in Outcome if outcome in wanted]
    return {
        "batch": f"{batch_id[:12]}…" if _HASH.fullmatch(batch_id) else batch_id,
        "ledger": os.path.basename(path) if os.path.isabs(path) else path,
        "made at": row_records.time_text(at),
        "times": "UTC",
        "Rows": "holds all rows" if len(held) == len(Outcome) else f"holds only: {', '.join(held)}",
    }


async def _certificate(ledger: Ledger, path: str | os.PathLike[str] | None) -> Mapping[str, Any] | None:
    """The certificate of this file, or the one that the ledger keeps; None without any. Raises BulkError."""
    if path is not None:
        return read_certificate(Path(path), ledger.header.binding.batch_id)
    kept = await ledger.kept_certificate()
    return None if kept is None else dict(json.loads(kept))


def _pages(ledger: Ledger, wanted: Wanted) -> AsyncGenerator[list[LedgerRow], None]:
    return grouped((row async for row in ledger.rows() if row.outcome in wanted), _PAGE)


async def _names(ledger: Ledger, wanted: Wanted) -> set[str] | None:
    """Collect the metadata names of the rows; None when they are too many for columns."""
    found: set[str] = set()
    async with aclosing(_pages(ledger, wanted)) as pages:
        async for page in pages:
            found.update(name for row in page for name in row_records.pairs(row))
            if len(found) > _MOST_NAMES:
                return None
    return found


async def _empty(ledger: Ledger, wanted: Wanted) -> set[str]:
    """Collect the columns of the input that are empty in all rows, which people need not see."""
    empty = {*row_records.INPUT_COLUMNS}
    async with aclosing(_pages(ledger, wanted)) as pages:
        async for page in pages:
            empty.difference_update(name for row in page for name in row_records.filled(row))
    return empty


def refuse_own_files(ledger: Ledger, target: Path) -> None:
    """Refuse to overwrite the ledger, a file that belongs to it, or the input."""
    refuse_ledger_files(target, ledger.path)
    if os.path.realpath(target) == ledger.path.removesuffix(".ledger") or _is_input(ledger, target):
        raise BulkError(f"{target}: is the batch's input; choose another path")


def _is_input(ledger: Ledger, target: Path) -> bool:
    if not target.is_file():
        return False
    try:
        return same_file(ledger.header.binding, stat_of(open_source(target)))
    except (SourceUnreadable, ImportError):  # not a kind of file that sources read
        return False


def read_certificate(path: Path, batch_id: str) -> dict[str, Any]:
    """Read a certificate's file. Raises BulkError for one that cannot be read, or is of another batch."""
    try:
        facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        is_other = facts["batch_id"] != batch_id or not isinstance(facts["ledger"]["head"], str)
    except OSError as error:
        raise BulkError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, TypeError, LookupError):
        raise BulkError(f"{path}: is no certificate that can be read") from None
    if is_other:
        raise BulkError(f"{path}: is the certificate of another batch")
    return facts
