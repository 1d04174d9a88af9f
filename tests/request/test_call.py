"""What may be said of a call after all its attempts, checked against every world they leave possible."""

from __future__ import annotations

import itertools
from datetime import timedelta

from payments_async import errors
from payments_async._http.types import HTTPResponse, TransportError
from payments_async._request.call import AttemptResult, Call
from payments_async._request.outcome import read_answer, read_failure
from tests.support.motion import REPLAYED, payout_answer, refusal
from tests.support.pure_calls import NOW, PAYOUT, READ, begun
from tests.support.scripted import answer

FAILURES = {"unsent": ("connect", False), "lost": ("timeout", True)}
ANSWERS: dict[str, HTTPResponse] = {
    "429": refusal(429),
    "503": refusal(503),
    "422": refusal(422),
    "409": refusal(409),
    "stored 409": refusal(409, REPLAYED),
    "at work": refusal(409, message="The request is in progress."),
    "unreadable": answer(201, b"<html>"),
    "half": payout_answer(status=201, amount="ten"),
    "other": payout_answer(status=201, amount={"value": 11, "currency": "XOF"}),
}
MAY_HAVE_PAID = {"lost", "503", "unreadable", "other", "stored 409", "at work"}
HAS_PAID = {"half"}
RETRIED = ["unsent", "lost", "429", "503", "unreadable"]
CALLS = [
    (*before, last)
    for count in range(3)
    for before in itertools.product(RETRIED, repeat=count)
    for last in [*FAILURES, *ANSWERS]
]


def reading(made: Call, word: str) -> AttemptResult:
    if word in FAILURES:
        kind, sent = FAILURES[word]
        return read_failure(made, TransportError(kind, "why"), sent=sent)  # type: ignore[arg-type] # a table's text
    return read_answer(made, ANSWERS[word], lambda: NOW)


def call(made: Call, words: tuple[str, ...]) -> errors.PaymentsError:
    """The error after these attempts, the last of which ends the call."""
    tried = begun(made)
    for number, word in enumerate(words):
        found = reading(made, word)
        tried.note(found, float(number), number + 0.5)
    assert found.error is not None
    return tried.conclusion(found.error)


def true_effect(words: tuple[str, ...]) -> str:
    """What anybody can know, from the possible worlds alone."""
    if HAS_PAID.intersection(words):
        return "happened"
    return "unknown" if MAY_HAVE_PAID.intersection(words) else "none"


def test_the_effect_is_what_the_attempts_leave_possible() -> None:
    for words in CALLS:
        error = call(PAYOUT, words)
        assert error.effect == true_effect(words), words
        assert [attempt.number for attempt in error.attempts] == list(range(1, len(words) + 1))
        assert (error.operation, error.idempotency_key) == ("payouts.create", "key-0001")


def test_a_read_leaves_no_effect_and_keeps_its_own_error() -> None:
    for words in CALLS:
        error = call(READ, tuple("429" if word in ("half", "other") else word for word in words))
        assert error.effect == "none", words
        assert not isinstance(error, errors.OutcomeUnknown)


def test_the_keys_protection_is_counted_from_when_the_request_was_made() -> None:
    error = call(PAYOUT, ("lost",))
    assert isinstance(error, errors.OutcomeUnknown)
    assert (error.first_sent_at, error.key_expires_at) == (NOW, NOW + timedelta(hours=24))
    assert error.reference == "r-1"
