"""Whose payout it is that was found under a row's reference."""

from __future__ import annotations

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


def test_the_payout_that_was_asked_for() -> None:
    assert match_of(EXPECTED, found()) is Match.EQUAL


@pytest.mark.parametrize("metadata", [None, {}, {"note": "x"}, {PROOF_KEY: None}])
def test_without_the_proof_it_is_another_payout_however_alike(metadata: dict[str, Any] | None) -> None:
    assert match_of(EXPECTED, Found(DETAILS, metadata)) is Match.FOREIGN


@pytest.mark.parametrize("text", ["2.later", "", 7, {}, PROOF.text + "x"])
def test_an_unreadable_proof_decides_nothing(text: object) -> None:
    assert match_of(EXPECTED, found(text)) is Match.UNCLEAR


@pytest.mark.parametrize(
    "change", [{"row_key": "8"}, {"batch_id": "april"}, {"environment": "sandbox"}, {"generation": 1}]
)
def test_a_proof_of_another_row_makes_it_foreign(change: dict[str, Any]) -> None:
    other = attrs.evolve(IDENTITY, **change).proof(body_hash(b"{}"))
    assert match_of(EXPECTED, found(other.text)) is Match.FOREIGN


def test_another_body_under_the_same_proof_is_not_the_payout_asked_for() -> None:
    assert match_of(EXPECTED, found(IDENTITY.proof(body_hash(b"[]")).text)) is Match.OTHER_BODY
    assert match_of(EXPECTED, found(amount=Decimal("10.11"))) is Match.OTHER_BODY
    assert match_of(EXPECTED, found(currency="USD")) is Match.OTHER_BODY


def test_with_a_proof_shortened_or_missing_details_do_no_harm() -> None:
    assert match_of(EXPECTED, found(instrument__phone_number="+229****33", amount=None)) is Match.EQUAL
    assert match_of(EXPECTED, Found({}, {PROOF_KEY: PROOF.text})) is Match.EQUAL


def test_an_amount_may_come_back_as_a_double() -> None:
    asked = Expected({**DETAILS, "amount": Decimal("12345678901234567.89")}, PROOF)
    assert match_of(asked, found(amount=Decimal("12345678901234568"))) is Match.EQUAL
