"""The verdict on one attempt: failures, records that differ or cannot be read, and texts that are masked."""

from __future__ import annotations

import json
import re
from copy import copy
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as some

from payments_async import errors, models
from payments_async._codec.encode import encode
from payments_async._http.types import FailureKind, TransportError
from payments_async._request.call import AttemptResult, Call
from payments_async._request.error_responses import _PERSONAL, _own_pattern, masking
from payments_async._request.outcome import read_answer, read_failure
from payments_async.models._masking import HIDDEN, clean, without_keys
from payments_async.params import PayoutRequest, operations
from tests.support.pure_calls import CREATING, HARMLESS, NOW, PAYOUT, REQUERY, write
from tests.support.scripted import answer

CALLS = {**CREATING, **HARMLESS}


def reading_of(call: Call, status: int, body: Any) -> AttemptResult:
    return read_answer(call, answer(status, body), lambda: NOW)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("sent", [False, True])
def test_a_failure_is_in_doubt_exactly_when_something_was_sent(name: str, sent: bool) -> None:
    wanted = {"timeout": errors.APITimeoutError, "too_large": errors.DecodeError}
    for kind in get_args(FailureKind):
        found = read_failure(CALLS[name], TransportError(kind, "why"), sent=sent)
        assert found.verdict == ("in_doubt" if sent else "not_sent")
        assert found.reason == kind
        assert found.again == (kind not in ("tls", "too_large", "closed", "withheld"))
        assert type(found.error) is wanted.get(kind, errors.APIConnectionError)
        assert getattr(found.error, "kind", "too_large") == kind


PAID = {"id": "po_1", "reference": "r-1", "amount": {"value": 10.1, "currency": "XOF"}}


def test_an_unreadable_payout_of_another_reference_does_not_confirm_this_one() -> None:
    body = {"data": {"id": "po_1", "reference": "another", "amount": 7}}
    found = reading_of(PAYOUT, 201, body)
    assert (found.verdict, found.again) == ("in_doubt", True)
    assert isinstance(found.error, errors.DecodeError)
    assert (found.error.record_id, found.error.effect) == (None, "none")


def test_a_body_that_is_the_record_itself_proves_by_its_own_id_that_it_was_made() -> None:
    call = write(operations.custom("POST", "/transfers", models.Payout), body=b"{}", reference=None)
    found = reading_of(call, 201, {"id": "po_9", "status": 7})
    assert (found.verdict, found.again) == ("executed", False)
    assert isinstance(found.error, errors.DecodeError)
    assert (found.error.effect, found.error.record_id) == ("happened", "po_9")


def test_an_unreadable_answer_to_a_requery_is_asked_for_again() -> None:
    found = reading_of(REQUERY, 200, b"<html>")
    assert (found.verdict, found.again) == ("in_doubt", True)


@pytest.mark.parametrize(
    ("changes", "differences"),
    [
        ({"amount": {"value": 10.2, "currency": "XOF"}}, {"amount": ("10.1", "10.2")}),
        ({"amount": {"value": 10.1, "currency": "EUR"}}, {"currency": ("XOF", "EUR")}),
        ({"reference": "r-2"}, {"reference": ("r-1", "r-2")}),
        ({"amount": None, "reference": None}, None),
        ({"amount": {"value": None, "currency": None}}, None),
        ({"amount": {"value": 10.100000000000000001, "currency": "XOF"}}, None),
        ({"amount": {"value": "10.1000", "currency": "XOF"}}, None),
    ],
)
def test_another_payout_is_a_mismatch_and_what_is_left_out_or_rounded_is_none(
    changes: Any, differences: Any
) -> None:
    found = reading_of(PAYOUT, 201, {"data": {**PAID, **changes}})
    assert getattr(found.error, "differences", None) == differences
    assert (found.verdict, found.again) == ("in_doubt" if differences else "executed", False)


def test_only_what_the_request_says_is_compared() -> None:
    quiet = write(PAYOUT.operation, body=b'{"amount":10.1,"currency":"XOF"}', reference=None)
    assert reading_of(quiet, 201, {"data": PAID}).error is None
    nothing = write(PAYOUT.operation, body=b'{"amount":10.1,"reference":null}', reference=None)
    assert reading_of(nothing, 201, {"data": PAID}).error is None


AMOUNTS = ["10.1", "10.10", "1010e-2", "10.100000000000000001", "11", "1e400"]


@given(
    asked=some.tuples(some.sampled_from(AMOUNTS), some.sampled_from([None, "r-1", ""])),
    told=some.none() | some.sampled_from([*AMOUNTS, "null", '"10.1"']),
    currency=some.sampled_from(["XOF", "EUR", None]),
    reference=some.sampled_from([None, "r-1", "r-2", ""]),
)
def test_an_answer_is_held_against_a_request_at_hand_as_against_its_bytes(
    asked: tuple[str, str | None], told: str | None, currency: str | None, reference: str | None
) -> None:
    request = PayoutRequest(
        amount=asked[0], currency="XOF", method="mtn_bj", instrument={}, reference=asked[1]
    )
    by_bytes = write(PAYOUT.operation, body=encode(request), reference=asked[1])
    at_hand = copy(by_bytes)
    at_hand.request = request
    amount = "null" if told is None else f'{{"value": {told}, "currency": {json.dumps(currency)}}}'
    body = f'{{"data": {{"id": "po_1", "amount": {amount}, "reference": {json.dumps(reference)}}}}}'.encode()
    found, wanted = (reading_of(call, 201, body) for call in (at_hand, by_bytes))
    assert (found.verdict, found.value) == (wanted.verdict, wanted.value)
    assert differences(found) == differences(wanted)


def differences(found: AttemptResult) -> Any:
    return found.error and (type(found.error), getattr(found.error, "differences", None))


OWN = ("Ama Mensah", "+233241234567", "ama@example.test", "Kaſim", "Amo")
WORDS = some.sampled_from(
    (*OWN, "KASIM", "kasim", "AMO", "amount", "12 34-56 7", "٣٣٣٣٣٣٣", "1234567@x", "a@b")
)


@given(some.lists(WORDS | some.text("aA@%\\\x1b \n3ſK", max_size=8), max_size=6).map(" ".join))
def test_a_text_is_masked_as_if_each_expression_were_put_to_it(text: str) -> None:
    customer = dict(zip(("first_name", "last_name", "phone", "email", "city"), OWN, strict=True))
    mask = masking(write(PAYOUT.operation, body=json.dumps({"customer": customer}).encode(), reference=None))
    pattern = _own_pattern(OWN)
    assert pattern is not None
    assert mask(text) == clean(re.sub(_PERSONAL, HIDDEN, pattern.sub(HIDDEN, without_keys(text))))
