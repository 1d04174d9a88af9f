"""Whose payout it is that was found under a row's reference, and what the ledger keeps of one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import attrs
import pytest

from payments_async.bulk._protocol.identifiers import PROOF_KEY, Identity, Proof
from payments_async.bulk._protocol.matching import Match, RowPayout, read_shown, shown_text
from payments_async.models import Amount, Country, Method, Payout, PayoutInstrument
from tests.support.rows import BINDING, ledger_row

ROW = ledger_row()
IDENTITY = Identity("sandbox", "june", "seven")
PROOF = Proof.read(json.loads(ROW.body)["metadata"][PROOF_KEY])
assert PROOF is not None


def of_other(**changes: Any) -> str:
    """The proof of the same content, but of another payout."""
    assert PROOF is not None
    return attrs.evolve(attrs.evolve(IDENTITY, **changes).proof(""), body=PROOF.body).text


OTHER_CONTENT = IDENTITY.proof("other").text


def found(proof: Any = PROOF.text, **details: Any) -> Payout:
    """The row's payout as the service shows it; None of a detail: it does not."""
    phone = {"phone_number": "+2290190112233"}
    shown = {"amount": Decimal("10.10"), "currency": "XCD", "method": "mtn_bj", **phone, **details}
    return Payout(
        "po_1",
        reference=ROW.reference,
        amount=Amount(value=shown["amount"], currency=shown["currency"]),
        method=Method(value=shown["method"]),
        instrument=PayoutInstrument(phone_number=shown["phone_number"]),
        metadata={PROOF_KEY: proof, "note": "theirs"},
    )


def listed(payout: Payout) -> RowPayout:
    return RowPayout.of(ROW, payout, BINDING)


@pytest.mark.parametrize(
    ("shown", "is_compared", "other"),
    [
        ("+2290190112233", True, None),
        ("+2290190112234", True, "with another instrument.phone_number"),
        ("+229****2233", False, None),
        ("+229XXXX2233", False, None),
        ("90112233", False, None),
        ("90112234", True, "with another instrument.phone_number"),
        (None, False, None),
    ],
)
def test_an_account_is_compared_where_it_is_shown_in_full(
    shown: str | None, is_compared: bool, other: str | None
) -> None:
    there = listed(found(phone_number=shown))
    assert there.fields["instrument.phone_number"] is is_compared
    assert there.difference == (None if other is None else f"the list shows po_1 {other}")


@pytest.mark.parametrize(
    ("there", "difference"),
    [
        (found(), None),
        (found(amount=Decimal(7)), "po_1 is of XCD 7, and XCD 10.1 was asked for"),
        (found(currency="GHS"), "po_1 is of GHS 10.10, and XCD 10.1 was asked for"),
        (found(amount=None, currency="GHS"), "the list shows po_1 with another currency"),
        (found(None), "the list shows po_1 without metadata.payments_sdk"),
        (found("?"), "the list shows po_1 with a metadata.payments_sdk that cannot be read"),
        (
            found(of_other(row_key="8")),
            "the list shows po_1 with the metadata.payments_sdk of another payout",
        ),
        (found(OTHER_CONTENT), "the list shows po_1 with the metadata.payments_sdk of other content"),
        (
            found(OTHER_CONTENT, phone_number="+2290190112234"),
            "the list shows po_1 with another instrument.phone_number and with the metadata.payments_sdk of "
            "other content",
        ),
        (found(method="other"), "the list shows po_1 with another method"),
    ],
)
def test_a_difference_is_told_without_account_data(there: Payout, difference: str | None) -> None:
    assert listed(there).difference == difference


@pytest.mark.parametrize(
    ("there", "match"),
    [
        (found(), Match.EQUAL),
        (found(phone_number="+229****33", amount=None), Match.EQUAL),
        (Payout("po_1", metadata={PROOF_KEY: PROOF.text}), Match.EQUAL),
        *(
            (attrs.evolve(found(), metadata=pairs), Match.FOREIGN)
            for pairs in (None, {}, {"note": "x"}, {PROOF_KEY: None})
        ),
        *((found(text), Match.UNCLEAR) for text in ("2.later", "", 7, {}, PROOF.text + "x")),
        (found(of_other(row_key="8")), Match.FOREIGN),
        (found(of_other(batch_id="april")), Match.FOREIGN),
        (found(of_other(environment="live")), Match.FOREIGN),
        (found(of_other(generation=1)), Match.FOREIGN),
        (found(OTHER_CONTENT), Match.OTHER_BODY),
        (found(amount=Decimal("10.11")), Match.OTHER_BODY),
        (found(currency="USD"), Match.OTHER_BODY),
    ],
)
def test_the_proof_and_the_money_decide_whose_payout_it_is(there: Payout, match: Match) -> None:
    assert listed(there).match is match


def test_an_amount_may_come_back_as_a_double() -> None:
    row = attrs.evolve(ROW, amount=Decimal("12345678901234567.89"))
    there = found(amount=Decimal("12345678901234568"))
    assert RowPayout.of(row, there, BINDING).match is Match.EQUAL


@pytest.mark.parametrize(
    "details",
    [
        {},
        {"amount": Amount(value=Decimal("10.10"))},
        {"amount": Amount(currency="XCD")},
        {"instrument": PayoutInstrument(phone_number="+2290190112233")},
        {
            "reference": "june-7",
            "status": "completed",
            "amount": Amount(value=Decimal("10.10"), currency="XCD"),
            "method": Method(value="mtn_bj"),
            "instrument": PayoutInstrument(type="mobile_money", country=Country(code="BJ")),
            "metadata": {PROOF_KEY: "1.x"},
            "completed_at": datetime(2026, 6, 1, tzinfo=UTC),
        },
    ],
)
def test_a_kept_payout_has_what_the_list_showed_and_nothing_else(details: dict[str, Any]) -> None:
    shown = Payout("po_1", **{"metadata": {}, **details})
    assert read_shown(shown_text(shown)) == shown
