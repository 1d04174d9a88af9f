"""A report as an Excel workbook, for people who check the money: the money, its rows, the certificate.

Text never is a formula: each text cell says that it is text. An amount of at most 15 digits is a number that
means exactly this amount; any other is text. Times are dates of Excel, in UTC.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, BinaryIO, Final

from ..._guard.minor_units import MINOR_UNITS
from ...models._masking import clean
from .._protocol.outcomes import ExtraTotals, RowTotals, by_currency, counts_of
from ..sources._cells import EXACT_DIGITS
from ..sources._excel import openpyxl
from .formats import ExportFormat
from .row_records import WHOLE_NUMBERS, Record, flat, time_text

_FIRST: Final = (
    *("row_key", "reference", "instrument.account_name", "customer.first_name", "customer.last_name"),
    *("amount", "currency", "outcome", "failure_code", "failure_message", "status_at"),
)
_LAST: Final = frozenset({"number", "line", "payout_id", "generation"})
"""Columns that a treasurer does not need; those of `_FIRST` are read most."""
_AMOUNTS: Final = {"amount": "currency", "payout_amount": "payout_currency"}
"""{column of an amount: that of its currency}."""
_TIMES: Final = frozenset({"status_at", "made at"})
_MOST_TEXT: Final = 32_767
"""Characters that Excel takes in a cell."""
_WIDTH: Final = 22
"""Characters of a column: a narrower one shows ##### for a long amount or a time."""
_NONE: Final = "none: `payments payouts reconcile` writes one"
_EARLIER: Final = "of an earlier state of the batch: `payments payouts reconcile` writes a new one"
_CERTIFIED: Final = (
    "batch_id",
    "environment",
    "base_url",
    "key_fingerprint",
    "guard",
    "agrees",
    "clean",
    "settled",
)


class ExcelFormat(ExportFormat):
    """A workbook of three sheets: Money, which is open at first, Rows and Certificate."""

    has_summary = True

    def __init__(self, file: BinaryIO, columns: Sequence[str]) -> None:
        super().__init__(file, sorted(columns, key=_rank))
        self._book = openpyxl.Workbook(write_only=True)
        self._rows = self._sheet("Rows", self._columns)
        self._last_row = 1

    def write(self, records: Sequence[Record]) -> None:
        """Write the next records."""
        self._last_row += len(records)
        for record in records:
            values = zip(self._columns, flat(record, self._columns), strict=True)
            self._rows.append([self._cell(name, value, record) for name, value in values])

    def summary(
        self,
        head: Mapping[str, str],
        totals: RowTotals,
        extra: ExtraTotals,
        certificate: Mapping[str, Any] | None,
    ) -> None:
        """Write the money of all rows by currency and outcome, and the certificate."""
        above = [[self._text(name), self._fact(name, value)] for name, value in head.items()]
        money = self._sheet("Money", ("Currency", "Outcome", "Payouts", "Amount"), [*above, []], index=0)
        for currency, outcome, count, amount in money_lines(totals, extra):
            money.append([self._text(currency), self._text(outcome), count, self._amount(amount, currency)])
        certified = self._sheet("Certificate", ("Fact", "Value"))
        for name, value in certificate_lines(certificate, counts_of(totals, extra)):
            certified.append([self._text(name), self._fact(name, value)])

    def end(self) -> None:
        """Write the whole workbook, with a filter on its rows."""
        last = openpyxl.utils.get_column_letter(len(self._columns))
        self._rows.auto_filter.ref = f"A1:{last}{self._last_row}"
        self._book.save(self._file)

    def abandon(self) -> None:
        """Remove what was written of the sheets, which openpyxl keeps in files of its own."""
        for sheet in self._book.worksheets:
            if not sheet.closed:
                sheet.close()
                sheet._writer.cleanup()  # only saving removes it otherwise

    def _sheet(
        self, title: str, columns: Sequence[str], above: Sequence[list[Any]] = (), index: int | None = None
    ) -> Any:
        sheet = self._book.create_sheet(title, index)
        sheet.freeze_panes = f"A{len(above) + 2}"
        header = [self._text(name) for name in columns]
        for column, cell in enumerate(header, start=1):
            cell.font = openpyxl.styles.Font(bold=True)
            sheet.column_dimensions[openpyxl.utils.get_column_letter(column)].width = _WIDTH
        for line in (*above, header):
            sheet.append(line)
        return sheet

    def _cell(self, name: str, value: Any, record: Record) -> Any:
        if value is None or name in WHOLE_NUMBERS:
            return value
        if name in _AMOUNTS:
            return self._amount(Decimal(value), record[_AMOUNTS[name]])
        return self._fact(name, str(value))

    def _fact(self, name: str, text: str) -> Any:
        if name not in _TIMES:
            return self._text(text)
        return self._number(datetime.fromisoformat(text).replace(tzinfo=None), "yyyy-mm-dd hh:mm:ss")

    def _text(self, text: str) -> Any:
        shown = clean(text)
        kept = shown if len(shown) <= _MOST_TEXT else f"{shown[: _MOST_TEXT - 1]}…"
        cell = openpyxl.cell.WriteOnlyCell(self._book.active, kept)
        cell.data_type = "s"  # a text that begins with = would be a formula
        return cell

    def _amount(self, amount: Decimal, currency: str) -> Any:
        text = format(amount, "f")
        if sum(map(str.isdigit, text)) > EXACT_DIGITS:
            return self._text(text)
        decimals = max(len(text.partition(".")[2]), MINOR_UNITS.get(currency, 2))
        return self._number(amount, f"#,##0.{'0' * decimals}" if decimals else "#,##0")

    def _number(self, value: Decimal | datetime, shown: str) -> Any:
        cell = openpyxl.cell.WriteOnlyCell(self._book.active, value)
        cell.number_format = shown
        return cell


def _rank(column: str) -> int:
    return _FIRST.index(column) if column in _FIRST else len(_FIRST) + (column in _LAST)


def money_lines(totals: RowTotals, extra: ExtraTotals) -> Iterator[tuple[str, str, int, Decimal]]:
    """List currency, outcome, payouts and amount: each currency's total, its outcomes, then extra payouts."""
    asked = by_currency(totals)
    for currency in sorted({*asked, *(code for _, code in extra)}):
        own = [(outcome, each) for (outcome, code), each in totals.items() if code == currency and each[0]]
        if currency in asked:
            yield currency, "asked, in all", sum(rows for _, (rows, _) in own), asked[currency]
        others = [(kind, each) for (kind, code), each in extra.items() if code == currency]
        for name, (rows, amount) in (*sorted(own), *sorted(others)):
            yield currency, name.replace("_", " "), rows, amount


def certificate_lines(
    certificate: Mapping[str, Any] | None, counts: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    """List the facts of a certificate; that there is none, or that the batch has changed since."""
    if certificate is None:
        yield "certificate", _NONE
        return
    if certificate["rows"] != counts:
        yield "certificate", _EARLIER
    yield "made at", time_text(certificate["at"])
    yield from ((name, _shown(certificate.get(name))) for name in _CERTIFIED)
    yield "ledger head", str(certificate["ledger"]["head"])
    yield from (("finding", finding) for finding in certificate["findings"])


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
