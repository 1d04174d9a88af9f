"""`Sandbox(scenario=...)`: what happens to whatever nothing else decides."""

from __future__ import annotations

import pytest

from payments_async.sandbox import Sandbox, Slow, UnknownWord, VirtualClock
from tests.sandbox.storage.test_state import PAYOUT, post


def statuses(sandbox: Sandbox, count: int) -> list[int]:
    return [post(sandbox, "/payouts", PAYOUT).status for _ in range(count)]


def test_a_fault_word_holds_for_every_request() -> None:
    assert statuses(Sandbox(scenario="http:503"), 3) == [503, 503, 503]
    assert post(Sandbox(scenario="slow:200ms"), "/payouts", PAYOUT).fault == Slow(0.2)


def test_words_that_say_how_often_are_a_script() -> None:
    assert statuses(Sandbox(scenario="http:503*2 http:500"), 4) == [503, 503, 500, 201]


def test_rules_come_first() -> None:
    sandbox = Sandbox(scenario="http:503")
    sandbox.on("payouts.create").respond("http:500")
    assert statuses(sandbox, 2) == [500, 503]
    assert sandbox.unused_rules == []


def test_outcomes_hold_where_they_can() -> None:
    sandbox = Sandbox(scenario="expire immediate", clock=VirtualClock.frozen())
    post(sandbox, "/payouts", PAYOUT)
    attempt = {"method_code": "m", "country": "GH", "phone": {"number": "+233200000001", "country": "GH"}}
    post(sandbox, "/payment/intents", {"amount": 5, "currency": "GHS", "attempt": attempt})
    assert [entry.status for entry in sandbox.books.payments()] == ["expired"]
    assert [entry.status for entry in sandbox.books.payouts()] == ["pending"]


def test_an_unknown_word_is_refused_at_once() -> None:
    with pytest.raises(UnknownWord, match="near: lost_response"):
        Sandbox(scenario="lost_respons")
