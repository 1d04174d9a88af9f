"""The verdict on every attempt there can be, by a table that is walked whole."""

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
STATUSES = [*range(100, 200), *range(300, 600)]
MESSAGES = {"plain": "No.", "idempotency": "The Idempotency key is in use."}


def reading_of(call: Call, status: int, body: Any, *, replayed: bool = False) -> AttemptResult:
    headers = {"x-idempotent-replayed": " TRUE "} if replayed else {}
    return read_answer(call, answer(status, body, headers), lambda: NOW)


def expected_verdict(name: str, status: int, message: str, *, replayed: bool) -> str:
    """What one refusal proves, restated: only a 4xx that speaks of this very request proves anything."""
    if not 400 <= status <= 499 or status == 408 or (replayed and status in (409, 429)):
        return "in_doubt"
    duplicate = name == "payout" and message == "plain"  # it alone sends a reference, the arbiter
    if status == 409 and name in CREATING and not duplicate:
        return "in_doubt"
    return "not_executed"


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("replayed", [False, True])
def test_every_refusal_proves_what_the_table_says(name: str, message: str, replayed: bool) -> None:
    for status in STATUSES:
        found = reading_of(CALLS[name], status, {"message": MESSAGES[message]}, replayed=replayed)
        assert found.verdict == expected_verdict(name, status, message, replayed=replayed), status
        assert found.status == status
        assert found.reason == str(status)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("replayed", [False, True])
def test_refusals_are_tried_again_only_for_429_and_passing_server_failures(name: str, replayed: bool) -> None:
    again = {s for s in STATUSES if reading_of(CALLS[name], s, {"message": ""}, replayed=replayed).again}
    assert again == (set() if replayed else {429, *range(500, 600)} - {501})


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


SESSION = {"id": "cs_1", "url": "https://pay.test/cs_1"}
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


DIFFERENT = [
    ({"amount": {"value": 10.2, "currency": "XOF"}}, {"amount": ("10.1", "10.2")}),
    ({"amount": {"value": 10.1, "currency": "EUR"}}, {"currency": ("XOF", "EUR")}),
    ({"reference": "r-2"}, {"reference": ("r-1", "r-2")}),
]


@pytest.mark.parametrize(("changes", "differences"), DIFFERENT)
def test_another_payout_than_was_asked_for_is_a_mismatch_and_in_doubt(changes: Any, differences: Any) -> None:
    found = reading_of(PAYOUT, 201, {"data": {**PAID, **changes}})
    assert (found.verdict, found.again) == ("in_doubt", False)
    assert isinstance(found.error, errors.ResponseMismatch)
    assert (found.error.differences, found.error.effect) == (differences, "unknown")


@pytest.mark.parametrize(
    "changes",
    [
        {"amount": None, "reference": None},
        {"amount": {"value": None, "currency": None}},
        {"amount": {"value": 10.100000000000000001, "currency": "XOF"}},
        {"amount": {"value": "10.1000", "currency": "XOF"}},
    ],
)
def test_what_the_answer_leaves_out_or_rounds_is_no_mismatch(changes: Any) -> None:
    assert reading_of(PAYOUT, 201, {"data": {**PAID, **changes}}).error is None


def test_a_checkout_without_its_payment_is_taken_as_it_is() -> None:
    assert reading_of(CREATING["checkout"], 201, {"data": {"checkout": SESSION}}).error is None


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
