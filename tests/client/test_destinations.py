"""Who gets the money: what is no account is refused, and what is one passes, whatever its script."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from payments_async import (
    AttemptInput,
    CheckoutRestriction,
    CustomerInput,
    Instrument,
    InvalidRequest,
    PhoneInput,
)
from payments_async.bulk.sources import open_source
from tests.support.motion import PAYOUT
from tests.support.payout_files import csv_file, split
from tests.support.surfaces import Connect
from tools import tables as tool

BANK = {"type": "bank_account", "bank_code": "CI005", "account_name": "A", "country": "CI"}
CRYPTO = {"type": "crypto_address", "network": "tron"}
CELLS = {"amount": "50", "currency": "GHS", "method": "m"}
SPREADSHEET = [
    ('="+2250700000009"', "formula"),
    ("'+2250700000009", "apostrophe"),
    ("2250700000009.0", "ends in .0"),
    ("2.332E+11", "scientific notation"),
    ("2,332e-11", "scientific notation"),
    *(
        (text, "spreadsheet's error")
        for text in (
            *("#N/A", "#REF!", "#DIV/0!", "#name?", "########", "#VALEUR!", "#NV", "#¡VALOR!"),
            *("Err:502", "#GETTING_DATA"),
        )
    ),
    ("2250700000009_x000D_", "_xHHHH_"),
]
"""What a spreadsheet leaves, and what the fault says of it."""
UNSEEN = [
    ("\u20662250700000009\u2069", "U+2066 (left-to-right isolate)"),
    ("\u202a2250700000009\u202c", "U+202A (left-to-right embedding)"),
    ("2250700\u200b000009", "U+200B (zero width space)"),
    ("2250700000009\u200e", "U+200E (left-to-right mark)"),
    ("\ufeff2250700000009", "U+FEFF (zero width no-break space)"),
    ("2250700\xa0000009", "U+00A0 (no-break space)"),
    ("2250700\u202f000009", "U+202F (narrow no-break space)"),
    ("2250700000009\xa0", "ends with U+00A0"),
    (" 2250700000009", "begins or ends with U+0020"),
    ("22507\n00000009", "U+000A, which is not seen: a line break"),
    ("22507\t00000009", "U+0009"),
    ("2250700\ufe0f000009", "U+FE0F"),
    (" ", "is blank"),
]
"""Signs that nobody sees, and how the fault shows them."""
NO_PHONE = [
    ("0700000001 / 0500000001", "has 20 digits"),
    ("0700000001/05", "U+002F (solidus)"),
    ("+2250700 +2250500", "holds more than one +: is it one number?"),
    ("+", "has no digits"),
    ("07O0000001", "U+004F (latin capital letter o)"),
    ("٠٧٠٠٠٠٠٠٠١", "U+0660"),
]


def refused(client: Any, field: str, **fields: Any) -> str:
    """What is said of a payout that is not sent: of one field, and without its value."""
    with pytest.raises(InvalidRequest) as caught:
        client.payouts.prepare(**{**PAYOUT, **fields})
    ((name, texts),) = caught.value.errors.items()
    assert name == field
    return str(texts)


@pytest.mark.parametrize(("text", "told"), [*SPREADSHEET, *UNSEEN])
@pytest.mark.parametrize(
    "field", ["phone_number", "account_number", "bank_code", "swift_bic", "address", "network", "memo_tag"]
)
async def test_what_is_no_account_is_refused(
    connect: Connect, tmp_path: Path, field: str, text: str, told: str
) -> None:
    """As an object, as a mapping, and as the cell of a file: one grammar."""
    client, name, instrument = connect(), f"instrument.{field}", {**BANK, field: text}
    for given in (Instrument(**instrument), instrument):
        shown = refused(client, name, instrument=given)
        assert told in shown
        assert text.strip() not in shown or not text.strip()
    cells = {**CELLS, **{f"instrument.{field}": cell for field, cell in instrument.items()}}
    _, (fault,) = split(open_source(csv_file(tmp_path, cells)))
    assert fault.column == name


@pytest.mark.parametrize(("text", "told"), NO_PHONE)
async def test_what_is_no_phone_number_is_refused(connect: Connect, text: str, told: str) -> None:
    client = connect()
    assert told in refused(client, "instrument.phone_number", instrument=Instrument.phone(text, "CI"))
    for phone in (PhoneInput(text, "CI"), {"number": text}):
        with pytest.raises(InvalidRequest) as caught:
            client.checkouts.prepare(amount=50, currency="GHS", restriction=CheckoutRestriction(phone=phone))
        assert told in str(caught.value.errors["restriction.phone.number"])
        with pytest.raises(InvalidRequest) as caught:
            client.payment_intents.prepare(
                amount=50, currency="GHS", attempt=AttemptInput(method_code="m", phone=phone)
            )
        assert told in str(caught.value.errors["attempt.phone.number"])


async def test_a_slip_in_a_mapping_within_a_mapping_is_found(connect: Connect) -> None:
    attempt = {"method_code": "m", "phone": {"numbr": "+2250700000009", "country": "CI"}}
    with pytest.raises(InvalidRequest) as caught:
        connect().payment_intents.prepare(amount=50, currency="GHS", attempt=attempt)
    assert caught.value.errors == {"attempt.phone": ["has an unknown field numbr; did you mean 'number'?"]}


@pytest.mark.parametrize(("text", "told"), UNSEEN)
async def test_no_other_word_about_the_receiver_hides_a_sign(connect: Connect, text: str, told: str) -> None:
    client, phone = connect(), {"phone_number": "+2250700000009", "country": "CI"}
    assert told in refused(client, "method", method=text)
    assert told in refused(client, "instrument.type", instrument={**phone, "type": text})
    assert told in refused(client, "customer.email", customer=CustomerInput(email=text))
    assert told in refused(client, "customer.email", customer={"email": text})
    for field in ("currency", "instrument.country"):
        fields = {"currency": text} if field == "currency" else {"instrument": {**phone, "country": text}}
        assert "must be" in refused(client, field, **fields)
    with pytest.raises(InvalidRequest, match="receipt_email"):
        client.checkouts.prepare(amount=50, currency="GHS", receipt_email=text)


@pytest.mark.parametrize(
    "name",
    ["Ama\u202e", "Ama\nKofi", "Ama\u200b", "\u200dAma", "Ama\u200c", "Ama\U000e0041", "Ama\ufff0"],
)
async def test_a_name_hides_no_sign_either(connect: Connect, name: str) -> None:
    phone = Instrument.phone("+2250700000009", "CI", account_name=name)
    assert "not seen" in refused(connect(), "instrument.account_name", instrument=phone)
    assert "not seen" in refused(connect(), "customer.last_name", customer=CustomerInput(last_name=name))


@pytest.mark.parametrize("given", [233200000001.0, 2250700000009, Decimal(2), True, ["1"]])
async def test_what_is_no_text_is_no_account_in_a_mapping_either(connect: Connect, given: Any) -> None:
    for field in ("phone_number", "account_number", "country"):
        instrument = {"type": "phone", "country": "CI", field: given}
        assert "must be" in refused(connect(), f"instrument.{field}", instrument=instrument)


GOOD: dict[str, tuple[Mapping[str, str], str, str]] = {
    "phones": (
        {"type": "phone", "country": "CI"},
        "phone_number",
        "+2250700000009|2250700000009|+225 07 00 00 00 09|+225-07.00.00.00.09|(+225) 0700000009",
    ),
    "IBANs and accounts": (
        BANK,
        "account_number",
        "DE89370400440532013000|DE89 3704 0044 0532 0130 00|GB29NWBK60161331926819|"
        "FR1420041010050500013M02606|CI93CI0080111301134291200589|BJ66BJ0610100100144390000769|"
        "SN08SN0100152000048500003035|0001234567|12E5|0123-4567-89|00123/456|12.345.678-9|"
        "1234567|ABC_1234",
    ),
    "codes": (BANK, "bank_code", "CI005|058|021000021|00-11-22"),
    "BICs": (BANK, "swift_bic", "DEUTDEFF|ECOCCIAB|SGBFBFBFXXX"),
    "addresses": (
        CRYPTO,
        "address",
        "TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE|0x742d35Cc6634C0532925a3b844Bc454e4438f44e|"
        "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq|1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa|"
        "bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a",
    ),
    "networks": (CRYPTO, "network", "tron|TRC-20|bsc_bep20|polygon/mainnet"),
    "memos": (CRYPTO, "memo_tag", "10398|rent of June, 2nd floor|1e5|#42|x00AF|invoice=7|2.0.1"),
    "names": (
        BANK,
        "account_name",
        "Ama Mensah|'t Hart|O'Brien-Diallo|Jean\xa0Dupont|Société n° 3 (SARL)|N'Guessan|"
        "Àdùkẹ́ Ọlátúnjí|Çelik Şahin|Nguyễn Thị Hạnh|Дмитрий Іванов|Γιώργος Παππάς|محمد عبد الله|"
        "علی\u200cرضا|דוד כהן|አበበ በቂላ|राम प्रसाद|क्\u200dष|শ্রী র\u200d্যাব|രാജന്\u200d|"
        "山田\u3000太郎|葛\U000e0100城|王小明|𰻝𰻝麵|さくら 田中|김민수|สมชาย ใจดี|Ա. Սարգսյան|გიორგი",
    ),
}
"""Real kinds of accounts and names that must pass: instrument, field, texts with bars between."""


@pytest.mark.parametrize(
    ("instrument", "field", "text"),
    [(base, field, text) for base, field, texts in GOOD.values() for text in texts.split("|")],
)
async def test_what_is_an_account_passes_unchanged(
    connect: Connect, tmp_path: Path, instrument: Mapping[str, str], field: str, text: str
) -> None:
    fields = {**{"address": "T1"} | dict(instrument), field: text}
    fields = fields if instrument is CRYPTO else {k: v for k, v in fields.items() if k != "address"}
    for given in (Instrument(**fields), fields):
        sent = json.loads(connect().payouts.prepare(**{**PAYOUT, "instrument": given}).body)
        assert sent["instrument"][field] == text
    if field == "account_name":
        connect().payouts.prepare(**PAYOUT, customer=CustomerInput(first_name=text, last_name=text))
    if instrument is BANK:
        fields = {"account_number": "0001234567", **fields}
    cells = {**CELLS, **{f"instrument.{name}": cell for name, cell in fields.items()}}
    (row,), faults = split(open_source(csv_file(tmp_path, cells)))
    assert (faults, getattr(row.request.instrument, field)) == ([], text)


@pytest.mark.parametrize(
    ("field", "text", "country", "doubt"),
    [
        ("phone_number", "+2250700000009", "CI", None),
        ("phone_number", "002250700000009", "ci", None),
        ("phone_number", "+225 0700-000009", "CI", None),
        ("phone_number", "+225 (0)0700000009", "CI", None),
        ("phone_number", "+233240000001", "CI", "does not begin with +225, the calling code of CI"),
        ("phone_number", "0700000001", "CI", "does not begin with +225, the calling code of CI"),
        ("phone_number", "+22507000000", "CI", "has 8 digits after +225, and numbers of CI have 10"),
        ("phone_number", "+2250700000009", "ZZ", None),
        ("account_number", "1234567890123450000", "CI", "has only zeros after its 15th digit"),
        ("account_number", "123456789012345", "CI", None),
        ("account_number", "1234567890123456000", "CI", None),
    ],
)
def test_likely_slips_doubted(tmp_path: Path, field: str, text: str, country: str, doubt: str | None) -> None:
    fields = {**BANK, field: text, "country": country}
    cells = {**CELLS, **{f"instrument.{name}": cell for name, cell in fields.items()}}
    (row,), _ = split(open_source(csv_file(tmp_path, cells)))
    about = [warning for warning in row.warnings if "lower case" not in warning]
    assert [warning.startswith(f"instrument.{field} {doubt}") for warning in about] == [True] * bool(doubt)


def test_the_plans_in_the_tree_are_fresh() -> None:
    assert tool.PHONE_PLANS.read_text(encoding="utf-8") == tool.phone_plans(), "run: python -m tools.tables"
