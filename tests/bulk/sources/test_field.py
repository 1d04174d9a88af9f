"""Files as people's programs write them (field/README.md): each is paid, doubted or refused in words."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import openpyxl
import pytest

from payments_async.bulk import PayoutBatch, SourceErrors, SourceUnreadable
from payments_async.bulk.sources import ColumnMapping, open_source
from tests.support.payout_files import read

FIELD: Final = Path(__file__).parent / "field"


@attrs.frozen
class Verdict:
    """What is right for a file: the sum to be paid, with doubts in these words, or faults in these words."""

    paid: str
    said: tuple[str, ...]
    options: Mapping[str, Any]


def pay(paid: str, *doubts: str, **options: Any) -> Verdict:
    return Verdict(paid, doubts, options)


def fault(*said: str, **options: Any) -> Verdict:
    return Verdict("", said, options)


ONE, TWO, MIXED = "1: XOF 5000", "2: XOF 10000", "2: XOF 5000, GHS 5000.5"
PHONE_CELL = "instrument.phone_number"
ENCODING = "is in another encoding than UTF-8: save it as UTF-8"
ZEROS = "instrument.account_number has only zeros after its 15th digit"
XOF = {"currency": "XOF", "method": "mobile_money", "instrument.country": "CI"}
NO_INDEX = ColumnMapping(columns={"": ""})
MONTANT = ColumnMapping(columns={"Numéro": PHONE_CELL, "Montant": "amount"}, constants=XOF)
FRANCS = ColumnMapping(
    columns={"Numéro": PHONE_CELL, "Nom et prénoms": "", "Montant (F CFA)": "amount", "Motif": ""},
    constants=XOF,
)
OURS = {name: f"instrument.{name}" for name in ("account_number", "bank_code")}
PAYSLIPS = ColumnMapping(
    columns={
        "payslip_no": "row_key",
        "employee_no": "",
        "iban": "",
        "full_name": "instrument.account_name",
        **OURS,
    },
    constants={"method": "bank", "instrument.country": "CI"},
)
BANK = ColumnMapping(constants={"instrument.bank_code": "CI005", "instrument.account_name": "K"})
TABLE: Final = (
    (
        pay(ONE),
        "UP.CSV blank_rows.csv comment.xlsx cr_only.csv double_bom.csv float_amount.csv",
    ),
    (
        pay(ONE),
        "hidecols.xlsx nbsp_rows.csv quote_in_name.csv quoted_all_space.csv sep_line.csv sep_line_comma.csv",
    ),
    (pay(ONE), "space_rows.csv trailing_commas_header.csv trailing_commas_rows_only.csv"),
    (pay(TWO), "absrel.xlsx base.xlsx capital.xlsx dup_rows.csv norefs.xlsx nostyles.xlsx prefix.xlsx"),
    (pay(TWO), "sheetcap.xlsx table.xlsx"),
    (pay(MIXED), "pandas2.xlsx polars.xlsx pyexcelerate.xlsx"),
    (pay("19: XOF 95000"), "excel_16rows.csv"),
    (pay(TWO, "line 3, the row is struck out"), "strike.xlsx"),
    (pay(ONE, ZEROS), "acct_000.csv"),
    (fault("instrument.type"), "rounded_15.csv"),
    (pay(ONE, ZEROS, mapping=BANK), "rounded_15.csv"),
    (pay(ONE, PHONE_CELL), "cr_rounded_phone.csv local_phone.csv"),
    (fault("amount: is '1.500', and XOF has 0 decimals: is it 1500?"), "thousand_point.csv"),
    (fault("amount", "1500, or 1.5?"), "thousand_point2.csv"),
    (fault("amount", "XOF"), "amount.csv"),
    (fault("'1,500'", "'1.500'", "is it 1500?", "'1 500,00'", "write 1500.00"), "comma.xlsx"),
    (fault(PHONE_CELL), "formula_text.csv apostrophe.csv hash_phone.csv dot_phone.csv two_phones.csv"),
    (fault("amount", PHONE_CELL), "err_amount.csv"),
    (fault(PHONE_CELL, "U+202A"), "bidi.csv"),
    (fault(PHONE_CELL, "U+202D"), "bidi.xlsx"),
    (fault(PHONE_CELL, "U+200E"), "lrm.csv"),
    (fault(PHONE_CELL, "U+00A0"), "nbsp_phone.csv nbsp.xlsx"),
    (fault(PHONE_CELL, "U+000A"), "newline_in_phone.csv"),
    (fault("customer.last_name", "U+000A"), "embedded_newline.csv"),
    (fault("method", PHONE_CELL), "trail_space.csv spaces.xlsx"),
    (fault(f"customer.last_name: {ENCODING}"), "cp1252.csv cp850.csv macroman_cr.csv"),
    (fault(f"line 1: {ENCODING}"), "templates/cp1252_header.csv"),
    (fault(f"line 2: {ENCODING}"), "templates/francs_cp1252.csv"),
    (fault("is UTF-16: save it as UTF-8"), "utf16be_nobom.csv utf16le_nobom.csv utf16le_bom.csv"),
    (fault("is packed with gzip: unpack it"), "gzip.csv"),
    (fault("is HTML or XML", "save it as Excel Workbook (.xlsx), or as CSV in UTF-8"), "html.csv"),
    (fault("customer.last_name: holds a NUL character"), "nul.csv"),
    (fault("is missing, as there is nothing to read"), "empty.csv only_bom.csv"),
    (fault("has no row that can be paid"), "only_header.csv"),
    (fault("line 3: has 1 cells, the header names 7 columns"), "eof_ctrlz.csv"),
    (fault("is a quotation mark wrong?"), "unclosed.csv"),
    (fault("line 3, amount"), "header_twice.csv"),
    (fault("line 2, amount"), "date_amount.csv smart_quotes.csv"),
    (fault("without spaces around them: write amount for  amount"), "space_after_comma.csv"),
    (fault("if the row is a total, leave the row out"), "total_row.csv total.xlsx"),
    (fault("as pandas writes its index", "index=False", '--map "="'), "pandas_index.csv pandas.xlsx"),
    (pay(TWO, mapping=NO_INDEX), "pandas_index.csv base.xlsx"),
    (pay(MIXED, mapping=NO_INDEX), "pandas.xlsx"),
    (fault("is not the header, which is row 2: --header-row 2"), "comments.csv templates/payslip.csv"),
    (pay(ONE, header_row=2), "comments.csv titled.xlsx"),
    (fault('Sheet "Paie", row 1: is not the header, which is row 3: --header-row 3'), "titled.xlsx"),
    (pay(ONE, header_row=3), "titled.xlsx"),
    (pay("1: XOF 150000", header_row=2, mapping=PAYSLIPS), "templates/payslip.csv"),
    (fault("is missing, as there is nothing to read", header_row=9), "templates/payslip.csv titled.xlsx"),
    (fault("line 1: is missing, and this row holds values"), "templates/no_header.csv"),
    (fault("say what separates its cells (--delimiter tab)"), "file.tsv file.txt"),
    (fault("is the delimiter '\\t' (--delimiter tab)?"), "tab.csv"),
    (pay(ONE, delimiter="\t"), "file.tsv tab.csv"),
    (pay(ONE, delimiter=","), "file.txt"),
    (fault("'25 000'", "25000, or 25?", delimiter=";", mapping=FRANCS), "templates/francs_utf8.csv"),
    (fault("is the delimiter ';' (--delimiter \";\")?"), "templates/nfd_header.csv"),
    (fault("and names Numéro, Montant", delimiter=";"), "templates/nfd_header.csv"),
    (pay("1: XOF 25000", PHONE_CELL, delimiter=";", mapping=MONTANT), "templates/nfd_header.csv"),
    (fault("Phone\\xa0number: is not a column"), "templates/nbsp_header.csv"),
    (fault("Phone\\nnumber: is not a column"), "templates/newline_header.csv"),
    (fault("amount: is there 2 times"), "templates/dup_header.csv"),
    (fault("Note: is not a column"), "templates/crypto_list.csv"),
    (fault("Account Name: is not a column"), "templates/provider_a.csv templates/provider_c.csv"),
    (fault("narration: is not a column"), "templates/provider_b.csv templates/provider_e.csv"),
    (fault("recipient_phone: is not a column"), "templates/provider_d.csv templates/provider_d2.csv"),
    (fault("and names First Name, Surname", "Mobile Number"), "templates/provider_f.csv"),
    (fault("and names beneficiary_country", "payout_amount"), "templates/provider_g.csv"),
    (fault("is no workbook that can be read (KeyError): save it as Excel Workbook"), "backslash.xlsx"),
    (
        fault("cell E5, instrument.phone_number: is a number"),
        "exceljs.xlsx sheetjs.xlsx sheetjs_compressed.xlsx",
    ),
    (fault("row 3: the row is hidden: show it, or delete it"), "filtered.xlsx grouped.xlsx zero.xlsx"),
    (fault("cell E1: is in a hidden column"), "zerocol.xlsx"),
    (fault("cell B3, amount: shows 2 and is 1.5", "cell B7, amount"), "fmts.xlsx"),
    (fault("cell B6, amount: is a number of more than 15 digits"), "nums.xlsx"),
)
CASES: Final = [(name, verdict) for verdict, names in TABLE for name in names.split()]
NAMES: Final = {name for name, _ in CASES}


def test_every_file_has_a_verdict() -> None:
    found = {str(path.relative_to(FIELD)) for path in FIELD.rglob("*") if path.is_file()}
    assert found - {"README.md"} == NAMES


@pytest.mark.parametrize(("name", "verdict"), CASES, ids=[name for name, _ in CASES])
async def test_a_file_is_paid_doubted_or_refused_in_words(
    tmp_path: Path, name: str, verdict: Verdict
) -> None:
    batch = PayoutBatch.open(tmp_path / "l")
    if not verdict.paid:
        with pytest.raises((SourceErrors, SourceUnreadable)) as caught:
            await batch.preview(open_source(FIELD / name, **verdict.options))
        text = "\n".join([str(caught.value), *map(str, getattr(caught.value, "faults", ()))])
        assert [words for words in verdict.said if words not in text] == [], text
        return
    report = await batch.preview(open_source(FIELD / name, **verdict.options), batch_id="june")
    totals = ", ".join(f"{currency} {total.normalize():f}" for currency, total in report.totals.items())
    assert f"{report.rows}: {totals}" == verdict.paid
    assert len(report.warnings) == len(verdict.said)
    assert all(words in text for words, text in zip(verdict.said, report.warnings, strict=True))


def exported(path: Path, target: Path) -> Path:
    """A sheet as a spreadsheet exports it."""
    with target.open("w", newline="", encoding="utf-8") as file:
        rows = openpyxl.load_workbook(path).worksheets[0].iter_rows(values_only=True)
        csv.writer(file).writerows(rows)
    return target


@pytest.mark.filterwarnings("ignore:Workbook contains no stylesheet")
@pytest.mark.parametrize(("name", "verdict"), [case for case in CASES if ".xlsx" in case[0] and case[1].paid])
def test_a_sheet_of_the_field_and_its_export_pay_the_same(
    tmp_path: Path, name: str, verdict: Verdict
) -> None:
    rows, _ = read(FIELD / name, **verdict.options)
    again, faults = read(exported(FIELD / name, tmp_path / "june.csv"), **verdict.options)
    assert ([row.request for row in again], faults) == ([row.request for row in rows], [])
