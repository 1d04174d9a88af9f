"""Headers: every fault of one is told by name, and never a cell taken for a name."""

from __future__ import annotations

import inspect
from itertools import permutations
from pathlib import Path

import pytest

from payments_async import Instrument
from payments_async.bulk.errors import SourceErrors
from payments_async.bulk.sources import open_source
from tests.support.payout_files import PHONE, bytes_file, csv_file, read

NEEDED = ",".join(PHONE)


def header_faults(folder: Path, header: str) -> list[tuple[str | None, str]]:
    source = open_source(bytes_file(folder, header.encode() + b"\n"))
    with pytest.raises(SourceErrors) as caught:
        list(source.read())
    assert caught.value.rows == 0
    assert {fault.line for fault in caught.value.faults} == {1}
    return [(fault.column, fault.reason) for fault in caught.value.faults]


UNKNOWN = "is not a column of a payout file"
MEANT = UNKNOWN + "; did you mean {}?"
MISSING = "is missing; a value that all rows share goes under [constants] in --map-file"
CUSTOMER = "email, first_name, last_name, address, city, state, zip, country"
INSTRUMENT = (
    "type, phone_number, account_name, account_number, bank_code, swift_bic, country, address, "
    "network, memo_tag"
)
SMALL = "has columns whose names are in small letters, without spaces around them: write {}"
NEEDS = "it must name the columns, among them amount, currency, method"
INDEX = (
    "begins with a column without a name, as pandas writes its index: write it with index=False, "
    'or leave that column out with --map "="'
)


@pytest.mark.parametrize(
    ("header", "faults"),
    [
        (
            "reference",
            [
                ("amount", MISSING),
                ("currency", MISSING),
                ("method", MISSING),
                ("instrument", "is missing: name its columns, such as instrument.phone_number"),
            ],
        ),
        (f"{NEEDED},Reference", [(None, SMALL.format("reference for Reference"))]),
        (NEEDED.replace("amount", "Amount"), [(None, SMALL.format("amount for Amount"))]),
        (
            " Amount,CURRENCY,Method,Instrument.Phone_Number,colour",
            [
                (
                    None,
                    SMALL.format(
                        "amount for  Amount, currency for CURRENCY, method for Method, "
                        "instrument.phone_number for Instrument.Phone_Number"
                    ),
                ),
                ("colour", UNKNOWN),
            ],
        ),
        (f"{NEEDED}, method", [(" method", MEANT.format("method"))]),
        (f"{NEEDED},web-hook url", [("web-hook url", MEANT.format("webhook_url"))]),
        (f"{NEEDED},phone_number", [("phone_number", MEANT.format("instrument.phone_number"))]),
        (f"{NEEDED},phone", [("phone", MEANT.format("instrument.phone_number"))]),
        (f"{NEEDED},instrument.contry", [("instrument.contry", MEANT.format("instrument.country"))]),
        (f"{NEEDED},customer.mail", [("customer.mail", MEANT.format("customer.email"))]),
        (
            f"{NEEDED},customer.name,Instrument.IBAN",
            [
                ("customer.name", f"{UNKNOWN}; after customer. comes one of {CUSTOMER}"),
                ("Instrument.IBAN", f"{UNKNOWN}; after instrument. comes one of {INSTRUMENT}"),
            ],
        ),
        (f"{NEEDED},metadata.", [("metadata.", UNKNOWN)]),
        (f"{NEEDED},colour", [("colour", UNKNOWN)]),
        (
            f"{NEEDED},amount,,metadata.a,metadata.a",
            [
                ("amount", "is there 2 times"),
                (None, "has a column without a name"),
                ("metadata.a", "is there 2 times"),
            ],
        ),
        (f",{NEEDED}", [(None, INDEX)]),
        (f",,{NEEDED}", [(None, "has 2 columns without a name")]),
        ("", [(None, f"is missing, as there is nothing to read: {NEEDS}")]),
        *(
            (f"{cell},XCD,m", [(None, f"is missing, and this row holds values: write one above it; {NEEDS}")])
            for cell in ("50", " +229 90.00", "٥٠")
        ),
        (
            "1er Montant (F CFA),支付,N°\u2067,,x" + "y" * 60,
            [
                (
                    None,
                    f"is not a header: {NEEDS}, and names 1er Montant (F CFA), 支付, N°\\u2067, x{'y' * 59}…"
                    "; a mapping (--map) says which column another name is",
                )
            ],
        ),
        (f"{NEEDED},+2290190000000", [("a name of 14 characters", UNKNOWN)]),
        (f"{NEEDED},2026-06,Prénoms\n{NEEDED},a,b", [("2026-06", UNKNOWN), ("Prénoms", UNKNOWN)]),
    ],
)
def test_every_fault_of_a_header_is_named(
    tmp_path: Path, header: str, faults: list[tuple[str | None, str]]
) -> None:
    assert header_faults(tmp_path, header) == faults


def test_no_fields_fit_two_types() -> None:
    kinds = (Instrument.phone, Instrument.bank_account, Instrument.crypto_address)
    for one, other in permutations([inspect.signature(kind).parameters for kind in kinds], 2):
        assert {name for name, field in one.items() if field.default is field.empty} - other.keys()


BANK = {"account_name": "Ama", "account_number": "0012", "bank_code": "044", "country": "NG"}


PAYOUT = {"amount": "50", "currency": "XCD", "method": "m"}
TYPES = (
    "fit no type (phone: country, phone_number; bank_account: account_name, account_number, bank_code, "
    "country; crypto_address: address, network)"
)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"phone_number": "+1", "country": "BJ"}, "phone"),
        ({"phone_number": "+1", "country": "BJ", "account_name": "Ama"}, "phone"),
        (BANK, "bank_account"),
        ({**BANK, "swift_bic": "ABCDEF12"}, "bank_account"),
        ({"address": "bc1", "network": "bitcoin", "memo_tag": "1"}, "crypto_address"),
    ],
)
def test_a_missing_type_is_the_one_that_fits(tmp_path: Path, fields: dict[str, str], kind: str) -> None:
    cells = {**PAYOUT, **{f"instrument.{name}": cell for name, cell in fields.items()}}
    ((row,), _) = read(csv_file(tmp_path, cells))
    assert getattr(row.request.instrument, "type", None) == kind


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"phone_number": "+1"}, "cannot be told without instrument.country: add it, and the type is phone"),
        ({"country": "BJ"}, TYPES),
        ({"phone_number": "+1", "country": "BJ", "account_number": "0012"}, TYPES),
        ({"phone_number": "+1", "country": "BJ", **BANK}, TYPES),
    ],
)
def test_a_type_that_no_field_tells_must_be_given(tmp_path: Path, fields: dict[str, str], said: str) -> None:
    cells = {**PAYOUT, **{f"instrument.{name}": cell for name, cell in fields.items()}}
    (), (fault,) = read(csv_file(tmp_path, cells))
    assert fault.column == "instrument.type"
    assert said in fault.reason
    assert ("total" in fault.reason) is (fields == {"country": "BJ"})
    ((row,), _) = read(csv_file(tmp_path, {**cells, "instrument.type": "some_other_type"}))
    assert getattr(row.request.instrument, "type", None) == "some_other_type"
