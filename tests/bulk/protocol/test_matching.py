"""Whose payout it is that was found under a row's reference, and what the ledger keeps of one."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import attrs
import pytest

from payments_async._request.comparison import Detail
from payments_async.bulk._protocol.identifiers import PROOF_KEY, Identity, body_hash
from payments_async.bulk._protocol.matching import (
    Expected,
    Found,
    Match,
    compared,
    differing,
    match_of,
)
from payments_async.bulk._protocol.shown_payouts import read_shown, shown_text
from payments_async.models import Amount, Country, Method, Payout, PayoutInstrument

IDENTITY = Identity("live", "march", "7")
PROOF = IDENTITY.proof(body_hash(b"{}"))
DETAILS: dict[str, Detail] = {
    "amount": Decimal("10.10"),
    "currency": "XCD",
    "method": "mtn_bj",
    "instrument.phone_number": "+2290190112233",
}
EXPECTED = Expected(DETAILS, PROOF)
OTHER_ROW = Identity("live", "march", "8").proof(body_hash(b"{}")).text
OTHER_CONTENT = IDENTITY.proof(body_hash(b"{1}")).text


def found(proof: Any = PROOF.text, **details: Detail | None) -> Found:
    """What the service shows; None of a detail: it does not."""
    changed = {**DETAILS, **{name.replace("__", "."): value for name, value in details.items()}}
    stated = {name: value for name, value in changed.items() if value is not None}
    return Found(stated, {PROOF_KEY: proof, "note": "theirs"})


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
    there = found(instrument__phone_number=shown)
    assert compared(EXPECTED, there)["instrument.phone_number"] is is_compared
    assert differing(EXPECTED, there) == ([] if other is None else [other])


@pytest.mark.parametrize(
    ("there", "differences"),
    [
        (found(), []),
        (found(amount=Decimal(7)), []),
        (found(currency="GHS"), []),
        (found(amount=None, currency="GHS"), ["with another currency"]),
        (found(None), ["without metadata.payments_sdk"]),
        (found("?"), ["with a metadata.payments_sdk that cannot be read"]),
        (found(OTHER_ROW), ["with the metadata.payments_sdk of another payout"]),
        (found(OTHER_CONTENT), ["with the metadata.payments_sdk of other content"]),
        (
            found(OTHER_CONTENT, instrument__phone_number="+2290190112234"),
            ["with another instrument.phone_number", "with the metadata.payments_sdk of other content"],
        ),
        (found(method="other"), ["with another method"]),
    ],
)
def test_a_difference_is_told_without_account_data(there: Found, differences: list[str]) -> None:
    """An amount is told with both sums, by the judge."""
    assert differing(EXPECTED, there) == differences


def of_other(**changes: Any) -> Found:
    return found(attrs.evolve(IDENTITY, **changes).proof(body_hash(b"{}")).text)


@pytest.mark.parametrize(
    ("there", "match"),
    [
        (found(), Match.EQUAL),
        (found(instrument__phone_number="+229****33", amount=None), Match.EQUAL),
        (Found({}, {PROOF_KEY: PROOF.text}), Match.EQUAL),
        *((Found(DETAILS, pairs), Match.FOREIGN) for pairs in (None, {}, {"note": "x"}, {PROOF_KEY: None})),
        *((found(text), Match.UNCLEAR) for text in ("2.later", "", 7, {}, PROOF.text + "x")),
        (of_other(row_key="8"), Match.FOREIGN),
        (of_other(batch_id="april"), Match.FOREIGN),
        (of_other(environment="sandbox"), Match.FOREIGN),
        (of_other(generation=1), Match.FOREIGN),
        (found(OTHER_CONTENT), Match.OTHER_BODY),
        (found(amount=Decimal("10.11")), Match.OTHER_BODY),
        (found(currency="USD"), Match.OTHER_BODY),
    ],
)
def test_the_proof_and_the_money_decide_whose_payout_it_is(there: Found, match: Match) -> None:
    assert match_of(EXPECTED, there) is match


def test_an_amount_may_come_back_as_a_double() -> None:
    asked = Expected({**DETAILS, "amount": Decimal("12345678901234567.89")}, PROOF)
    assert match_of(asked, found(amount=Decimal("12345678901234568"))) is Match.EQUAL


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
