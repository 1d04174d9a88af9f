"""A report as an Excel workbook, for people who check the money: the money, its rows, the certificate.

Text never is a formula: each text cell says that it is text. An amount of at most 15 digits is a number that
means exactly this amount; any other is text. Times are dates of Excel, in UTC.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, BinaryIO, Final

from ...models._masking import clean
from ...models._minor_units import MINOR_UNITS
from .._ledger.figures import Figures
from .._protocol.outcomes import by_currency, counts_of
from ..sources._cells import EXACT_DIGITS
from ..sources._excel import openpyxl
from .formats import ExportFormat, Summary
from .row_records import WHOLE_NUMBERS, Record, flat, time_text

_AMOUNTS: Final = {"amount": "currency", "payout_amount": "payout_currency"}
"""{column of an amount: that of its currency}."""
_TIMES: Final = ("ended_at", "read_at", "made at")
_A4: Final = 9  # the number that the format has for it
_MOST_TEXT: Final = 32_767  # characters that Excel takes in a cell
_WIDTH: Final = 22
"""Characters of a column: a narrower one shows ##### for a long amount or a time."""
_WIDTHS: Final = {
    **dict.fromkeys(("number", "line", "currency", "payout_currency", "generation"), 9),
    **dict.fromkeys(("outcome", "payout_status", "method"), 14),
}
"""Those of columns whose values are short: a sheet of paper holds all columns of a line."""
_CERTIFIED: Final = ("environment", "base_url", "key_fingerprint", "guard", "agrees", "clean", "settled")
_WORDS: Final = {None: "none", True: "yes", False: "no"}


class ExcelFormat(ExportFormat):
    """A workbook of three sheets: Money, which is open at first, Rows and Certificate."""

    def __init__(self, file: BinaryIO, columns: Sequence[str]) -> None:
        super().__init__(file, columns)
        self._book = openpyxl.Workbook(write_only=True)
        self._rows = self._sheet("Rows", self._columns)
        self._last_row = 1

    def write(self, records: Sequence[Record]) -> None:
        self._last_row += len(records)
        for record in records:
            values = zip(self._columns, flat(record, self._columns), strict=True)
            self._rows.append([self._cell(name, value, record) for name, value in values])

    def end(self, summary: Summary) -> None:
        """Write the money of all rows by currency and outcome, the certificate, and the whole file."""
        above = [[self._text(name), self._fact(name, value)] for name, value in summary.head.items()]
        money = self._sheet("Money", ("Currency", "Outcome", "Payouts", "Amount"), [*above, []], index=0)
        found = summary.figures
        for currency, outcome, count, amount in _money_lines(found):
            money.append([self._text(currency), self._text(outcome), count, self._amount(amount, currency)])
        certified = self._sheet("Certificate", ("Fact", "Value"))
        for name, value in _certificate_lines(summary.certificate, counts_of(found.totals, found.extra)):
            certified.append([self._text(name), self._fact(name, value)])
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
        sheet.page_setup.fitToPage = True
        sheet.page_setup.fitToHeight = 0  # as many sheets as its lines need
        sheet.page_setup.orientation, sheet.page_setup.paperSize = "landscape", _A4
        sheet.page_margins.left = sheet.page_margins.right = 0.4  # inches
        sheet.print_title_rows = f"{len(above) + 1}:{len(above) + 1}"
        header = [self._text(name) for name in columns]
        for column, (cell, name) in enumerate(zip(header, columns, strict=True), start=1):
            cell.font = openpyxl.styles.Font(bold=True)
            letter = openpyxl.utils.get_column_letter(column)
            sheet.column_dimensions[letter].width = _WIDTHS.get(name, _WIDTH)
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


def _money_lines(found: Figures) -> Iterator[tuple[str, str, int, Decimal]]:
    """List currency, outcome, payouts and amount: each currency's total, its outcomes and extra payouts."""
    asked, every = by_currency(found.totals), sorted([*found.totals.items(), *found.extra.items()])
    for currency in sorted({code for (_, code), _ in every}):
        rows = sum(number for (_, code), (number, _) in found.totals.items() if code == currency)
        yield currency, "asked, in all", rows, asked.get(currency, Decimal(0))
        for (word, code), (number, amount) in every:
            if code == currency:
                yield currency, word.replace("_", " "), number, amount


def _certificate_lines(
    certificate: Mapping[str, Any] | None, counts: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    """List the facts of a certificate; that there is none, or that the batch has changed since."""
    if certificate is None:
        yield "certificate", "none: `payments payouts reconcile` writes one"
        return
    if certificate["rows"] != counts:
        yield "certificate", "of an earlier state: `payments payouts reconcile` writes a new one"
    yield "made at", time_text(certificate["at"])
    for name in _CERTIFIED:
        value = certificate.get(name)
        yield name, _WORDS[value] if value is None or isinstance(value, bool) else str(value)
    yield from (("finding", finding) for finding in certificate["findings"])
