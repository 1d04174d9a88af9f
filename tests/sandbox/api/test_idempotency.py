"""Idempotency (docs/interface.md, Limits, Idempotency; gaps Q to S)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from payments_async.sandbox import Drop, LineFault, Sandbox, Slow, VirtualClock
from tests.sandbox.raw_requests import INTENT, PAYOUT, TRIED, Api, Got

DAY = 86_400.0
KEY = "key-00001"
CREATIONS = [("/payouts", PAYOUT), ("/payment/intents", TRIED), ("/payment/checkouts", INTENT)]


@pytest.mark.fact(
    "idempotency.replay-24h", "idempotency.replayed-header", "endpoint.creations-accept-idempotency-key"
)
@pytest.mark.fact("idempotency.expires-after-24h")
@pytest.mark.parametrize(("path", "body"), CREATIONS)
@pytest.mark.parametrize(("after", "replayed", "made"), [(DAY - 0.001, True, 1), (DAY, False, 2)])
def test_a_repeat_within_a_day_gets_the_first_answer_byte_for_byte_and_has_no_effect(
    api: Api, path: str, body: dict[str, Any], after: float, replayed: bool, made: int
) -> None:
    first = api.post(path, body, idempotency_key=KEY)
    api.sandbox.advance(after)
    again = api.post(path, body, idempotency_key=KEY)
    assert (again.status, again.answer.body == first.answer.body) == (first.status, replayed)
    assert (first.replayed, again.replayed) == (False, replayed)
    books = api.sandbox.books
    assert len(books.payouts()) + len(books.payments()) == made


@pytest.mark.fact("error.409.duplicate-reference", "request.payouts.reference.unique")
def test_a_reference_is_used_once_whatever_the_key(api: Api) -> None:
    assert api.payout(reference="r-1").status == 201
    got = api.payout(reference="r-1")
    assert (got.status, set(got.json)) == (409, {"message"})
    assert isinstance(got.json["message"], str)
    assert len(api.sandbox.books.payouts(reference="r-1")) == 1


@pytest.mark.parametrize("profile", ["observed", "strict", "alternate", "hostile"])
@pytest.mark.parametrize("words", ["complete immediate", "fail:LATE after=1s", "hang", "reads=1"])
def test_the_first_answer_comes_again_whatever_became_of_the_payout(profile: str, words: str) -> None:
    api = Api(sandbox := Sandbox(profile=profile, clock=VirtualClock.frozen()), sandbox.api_key)
    body = {"customer": {"email": "payer@shop.test"}, "metadata": {"sandbox_scenario": words, "rate": 1.1}}
    first = api.payout(idempotency_key=KEY, description="Week 47", **body)
    sandbox.advance(10.0)
    api.get("/payouts")
    again = api.payout(idempotency_key=KEY, description="Week 47", **body)
    assert (again.status, again.answer.body, again.replayed) == (first.status, first.answer.body, True)


@pytest.mark.fact("idempotency.header-optional")
def test_without_a_key_every_creation_has_its_own_effect(api: Api) -> None:
    assert api.payout().data["id"] != api.payout().data["id"]


@pytest.mark.fact("idempotency.length-8-to-128")
@pytest.mark.parametrize(("length", "status"), [(0, 428), (7, 428), (8, 201), (128, 201), (129, 428)])
def test_a_key_has_8_to_128_characters(api: Api, length: int, status: int) -> None:
    assert api.payout(idempotency_key="k" * length).status == status


def test_a_key_whose_bytes_are_no_text_is_refused(api: Api) -> None:
    assert api.payout(idempotency_key="\udcff" * 8, scenario="slow:1s").status == 428
    assert api.payout(idempotency_key="schlüssel").status == 201


def test_reads_take_no_notice_of_the_header(api: Api) -> None:
    assert api.get("/payouts", idempotency_key="short").status == 200


@pytest.mark.parametrize(
    ("body", "status"), [({**PAYOUT, "amount": 0}, 422), ({**PAYOUT, "reference": "taken"}, 409)]
)
def test_a_refusal_of_the_operation_is_replayed_too(api: Api, body: dict[str, Any], status: int) -> None:
    api.payout(reference="taken")
    first = api.post("/payouts", body, idempotency_key=KEY)
    again = api.post("/payouts", body, idempotency_key=KEY)
    assert (first.status, first.replayed) == (status, False)
    assert (again.answer.body, again.replayed) == (first.answer.body, True)


@pytest.mark.parametrize("fault", ["http:503", "429", "http:422", "lost_request", "hang", "reset"])
def test_what_was_never_carried_out_is_not_replayed(api: Api, fault: str) -> None:
    api.sandbox.on("payouts.create").respond(fault)
    api.payout(idempotency_key=KEY)
    again = api.payout(idempotency_key=KEY)
    assert (again.status, again.replayed) == (201, False)


@pytest.mark.parametrize(("words", "line"), [("lost_response", Drop()), ("slow:2s", Slow(2))])
def test_a_fault_meets_a_refused_repeat_as_any_other_answer(api: Api, words: str, line: LineFault) -> None:
    """The log had the fault, and the caller an answer without it."""
    api.payout(idempotency_key=KEY)
    refused = api.payout(idempotency_key=KEY, amount=51, scenario=words)
    assert (refused.status, refused.answer.fault) == (409, line)
    assert str(api.sandbox.requests[-1].fault).startswith(words.partition(":")[0])
    assert api.payout(idempotency_key=KEY).replayed


def test_unreadable_json_leaves_the_key_free(api: Api) -> None:
    assert api.post("/payouts", b"{", idempotency_key=KEY).status == 400
    assert api.payout(idempotency_key=KEY).status == 201


def test_a_key_belongs_to_one_address(api: Api) -> None:
    api.payout(idempotency_key=KEY)
    assert api.intent(idempotency_key=KEY).status == 409


def test_the_same_key_from_many_threads_at_once_has_one_effect() -> None:
    sandbox = Sandbox(clock=VirtualClock.frozen())
    api = Api(sandbox, sandbox.api_key)
    answers: list[Got] = []
    barrier = threading.Barrier(8)

    def create() -> None:
        barrier.wait()
        answers.append(api.payout(idempotency_key=KEY))

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({got.answer.body for got in answers}) == 1
    assert sum(not got.replayed for got in answers) == 1
    assert len(sandbox.books.payouts()) == 1


def test_old_answers_do_not_pile_up(api: Api) -> None:
    for number in range(5):
        api.payout(idempotency_key=f"key-{number:05}")
    api.sandbox.advance(DAY)
    api.payout(idempotency_key="key-later")
    (tenant,) = api.sandbox._core.world.tenants.values()
    assert list(tenant.replies._stored) == ["key-later"]
