"""The money ledger: each rule is broken by what it names, and by nothing that looks like it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from payments_async.sandbox import Sandbox, VirtualClock
from payments_async.testing import SandboxTenant

INSTRUMENT = {"type": "phone", "phone_number": "+233200000001", "country": "GH"}
PAYOUT = {"amount": 10, "currency": "GHS", "method": "mobile_money", "instrument": INSTRUMENT}
INTENT = {"amount": 10, "currency": "GHS"}
ATTEMPT = {"method_code": "m", "country": "GH", "phone": {"number": "+233200000001", "country": "GH"}}


@pytest.fixture
def tenant() -> SandboxTenant:
    return SandboxTenant(Sandbox(clock=VirtualClock.frozen()))


def post(tenant: SandboxTenant, path: str, body: Any, key: str | None = None, api_key: str = "") -> int:
    headers = {"Authorization": f"Bearer {api_key or tenant.api_key}", "Content-Type": "application/json"}
    if key is not None:
        headers["X-Idempotency-Key"] = f"key-{key:0>8}"
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return tenant.service.handle("POST", f"/v1{path}", headers, raw).status


def pay(tenant: SandboxTenant, key: str | None, reference: str | None = None, **changes: Any) -> int:
    named = {} if reference is None else {"reference": reference}
    return post(tenant, "/payouts", {**PAYOUT, **named, **changes}, key)


def broken(tenant: SandboxTenant) -> list[str]:
    return [finding.rule for finding in tenant.findings()]


def lose(tenant: SandboxTenant, times: int = 1) -> None:
    tenant.on("payouts.create").respond("lost_response", times=times)


def test_two_payouts_alike_with_references_and_answers_are_two_payouts(tenant: SandboxTenant) -> None:
    pay(tenant, "1", "r-1")
    pay(tenant, "2", "r-2")
    assert broken(tenant) == []


def test_a_repeat_under_the_same_key_is_one_payout(tenant: SandboxTenant) -> None:
    lose(tenant)
    pay(tenant, "1", "r-1")
    pay(tenant, "1", "r-1")
    pay(tenant, "2", "r-2")
    assert broken(tenant) == []


def test_a_payout_in_doubt_that_is_sent_anew_under_another_reference_is_paid_twice(
    tenant: SandboxTenant,
) -> None:
    lose(tenant)
    pay(tenant, "1", "r-1", description="salary")
    pay(tenant, "2", "r-2", description="salary, again", amount=10.00)
    (finding,) = tenant.findings()
    assert finding.rule == "paid_again"
    assert "'r-2'" in finding.text
    assert "'r-1'" in finding.text
    assert "233200000001" not in finding.text


@pytest.mark.parametrize("account", ["ada@shop.test", "+233 24 412 3456"])
def test_a_finding_shows_no_account_data_and_no_long_name(tenant: SandboxTenant, account: str) -> None:
    lose(tenant)
    pay(tenant, "1", account)
    pay(tenant, "2", 90 * "x")
    (finding,) = tenant.findings()
    assert account not in finding.text
    assert f"reference '{40 * 'x'}')" in finding.text


@pytest.mark.parametrize("change", [{"amount": 11}, {"currency": "XOF"}, {"method": "other"}])
def test_another_sum_or_way_is_another_payout(tenant: SandboxTenant, change: dict[str, Any]) -> None:
    lose(tenant)
    pay(tenant, "1", "r-1")
    pay(tenant, "2", "r-2", **change)
    assert broken(tenant) == []


def test_a_request_that_was_lost_paid_nothing(tenant: SandboxTenant) -> None:
    tenant.on("payouts.create").respond("lost_request")
    pay(tenant, "1", "r-1")
    pay(tenant, "2", "r-2")
    assert broken(tenant) == []


def test_two_payouts_alike_without_references_are_one_twice(tenant: SandboxTenant) -> None:
    pay(tenant, "1")
    pay(tenant, "2")
    assert broken(tenant) == ["paid_again"]


def test_a_failed_payout_may_be_sent_anew(tenant: SandboxTenant) -> None:
    tenant.on("payouts.create").outcome("fail:NO_FUNDS immediate", times=1)
    lose(tenant)
    pay(tenant, "1", "r-1")
    pay(tenant, "2", "r-2")
    assert broken(tenant) == []


def test_one_key_under_two_bodies_is_found_whatever_the_service_says(tenant: SandboxTenant) -> None:
    assert pay(tenant, "1", "r-1") == 201
    assert pay(tenant, "1", "r-2") == 409
    assert broken(tenant) == ["key_reused"]


def test_a_repeated_post_without_a_key_is_found(tenant: SandboxTenant) -> None:
    pay(tenant, None, "r-1", metadata={"sandbox_scenario": "http:503"})
    pay(tenant, None, "r-1", metadata={"sandbox_scenario": "http:503"})
    assert broken(tenant) == ["posted_without_key"]


def test_two_posts_without_a_key_that_differ_are_not(tenant: SandboxTenant) -> None:
    pay(tenant, None, "r-1")
    pay(tenant, None, "r-2")
    assert broken(tenant) == []


def test_a_reference_that_the_caller_knew_to_be_taken_is_found(tenant: SandboxTenant) -> None:
    pay(tenant, "1", "r-1")
    assert pay(tenant, "2", "r-1", amount=11) == 409
    assert broken(tenant) == ["reference_refused"]


def test_a_reference_that_protects_from_a_lost_answer_is_not(tenant: SandboxTenant) -> None:
    lose(tenant)
    pay(tenant, "1", "r-1")
    assert pay(tenant, "2", "r-1") == 409
    assert broken(tenant) == []


def test_a_simulated_409_is_no_refused_reference(tenant: SandboxTenant) -> None:
    pay(tenant, "1", "r-1")
    tenant.on("payouts.create").respond("http:409")
    assert pay(tenant, "2", "r-1") == 409
    assert broken(tenant) == []


def collect(tenant: SandboxTenant, key: str, entity: str | None, outcome: str = "complete immediate") -> int:
    body = {**INTENT, "attempt": ATTEMPT, "metadata": {"sandbox_scenario": outcome}}
    return post(tenant, "/payment/intents", body | ({"entity_id": entity} if entity else {}), key)


@pytest.mark.parametrize(("entity", "told"), [("order-7", "order-7"), ("ada@shop.test", "•••st")])
def test_two_payments_collected_for_one_entity_are_found(
    tenant: SandboxTenant, entity: str, told: str
) -> None:
    collect(tenant, "1", entity)
    collect(tenant, "2", entity)
    (finding,) = tenant.findings()
    assert finding.rule == "collected_twice"
    assert finding.text == f"2 payments were collected for the entity {told!r}"


@pytest.mark.parametrize("first", ["fail:DECLINED immediate", "manual"])
def test_a_payment_after_one_that_was_not_collected_is_not(tenant: SandboxTenant, first: str) -> None:
    collect(tenant, "1", "order-7", first)
    collect(tenant, "2", "order-7")
    collect(tenant, "3", "order-8")
    collect(tenant, "4", None)
    collect(tenant, "5", None)
    assert broken(tenant) == []


def test_one_that_was_given_back_does_not_count(tenant: SandboxTenant) -> None:
    collect(tenant, "1", "order-7")
    (payment,) = tenant.books.payments()
    tenant.refund(payment.id)
    collect(tenant, "2", "order-7")
    assert broken(tenant) == []


def test_two_attempts_of_one_payment_that_both_completed_are_found(tenant: SandboxTenant) -> None:
    collect(tenant, "1", "order-7")
    with tenant.service.changing() as world:  # what the service must never do
        (owner,) = (each for each in world.tenants.values() if each.payments)
        owner.payments[0].attempts *= 2
    assert broken(tenant) == ["collected_twice"]


def test_other_tenants_do_not_matter_and_further_keys_do(tenant: SandboxTenant) -> None:
    stranger = tenant.service.new_key()
    for key in ("1", "2"):
        post(tenant, "/payouts", PAYOUT, key, stranger)
    assert broken(tenant) == []
    other = tenant.new_key()
    for key in ("1", "2"):
        post(tenant, "/payouts", PAYOUT, key, other)
    assert broken(tenant) == ["paid_again"]


def test_what_is_no_json_object_is_no_payout(tenant: SandboxTenant) -> None:
    for body in (b"[1]", b"{", b"[]"):
        assert post(tenant, "/payouts", body, body.hex()) >= 400
    assert broken(tenant) == []


def test_a_nested_list_is_compared_too(tenant: SandboxTenant) -> None:
    lose(tenant)
    for number in ("1", "2"):
        pay(tenant, number, f"r-{number}", instrument={**INSTRUMENT, "more": [1, {"a": None}]})
    assert broken(tenant) == ["paid_again"]
