"""The life of payments and attempts (docs/interface.md, States and transitions; gaps F, G, I and K)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from payments_async.sandbox import Sandbox
from tests.sandbox.raw_requests import ACTION_TYPES, ATTEMPT, BY_CARD, INTENT, METHODS, Api

HOOK = "https://merchant.test/hook"
DECLINED = "fail:CUSTOMER_DECLINED"


@pytest.mark.fact("service.intent-may-start-attempt", "request.intents.attempt", "endpoint.intents.create")
def test_an_intent_starts_an_attempt_only_when_asked(api: Api) -> None:
    assert api.intent(attempt=None).data["active_attempt"] is None
    assert api.intent().data["active_attempt"]["method"]["value"] == "mtn_bj"


@pytest.mark.fact("states.timestamps.attempt", "states.timestamps.intent")
def test_an_attempt_is_processing_and_completes_with_its_payment_after_5_s(api: Api) -> None:
    created = api.intent(attempt=BY_CARD).data
    listed = api.listed_intent()["active_attempt"]
    assert listed["processing_at"] == created["created_at"]
    api.sandbox.advance(5)
    intent = api.listed_intent()
    assert (intent["status"], intent["active_attempt"]["status"]) == ("completed", "completed")
    assert intent["completed_at"] == intent["active_attempt"]["completed_at"] == "2026-01-01T00:00:05.000000Z"
    assert intent["expired_at"] is None


@pytest.mark.parametrize(
    ("method", "after_a_day"),
    [
        *((code, "action_required approve_on_phone") for code in ("mtn_bj", "mobile_money")),
        *((one.code, f"action_required {one.action}") for one in METHODS if one.action != "none"),
        *((code, "completed none") for code in ("sandbox_wallet_balance", "bank_ng")),
    ],
)
def test_an_attempt_that_asks_its_payer_waits_for_the_answer(api: Api, method: str, after_a_day: str) -> None:
    api.intent(attempt={**ATTEMPT, "method_code": method})
    api.sandbox.advance(86_000)
    active = api.listed_intent()["active_attempt"]
    assert f"{active['status']} {active['next_action']['type']}" == after_a_day


def test_an_attempt_that_was_paid_before_its_time_stays_as_it_is(api: Api) -> None:
    api.intent(attempt=BY_CARD)
    api.sandbox.pay(api.sandbox.books.payments()[0].id)
    api.sandbox.advance(5)
    assert api.listed_intent()["completed_at"] == "2026-01-01T00:00:00.000000Z"


@pytest.mark.fact("states.timestamps.attempt", "error.failure.attempt")
def test_an_attempt_that_fails_fails_an_intent_of_the_api(api: Api) -> None:
    api.intent(scenario=DECLINED)
    api.sandbox.advance(5)
    intent = api.listed_intent()
    assert (intent["status"], intent["active_attempt"]["status"]) == ("failed", "failed")
    assert intent["active_attempt"]["failed_at"] == "2026-01-01T00:00:05.000000Z"
    with pytest.raises(ValueError, match="failed"):
        api.sandbox.pay(intent["id"])


@pytest.mark.fact("states.timestamps.attempt", "states.timestamps.intent")
def test_an_intent_that_is_not_paid_expires_after_a_day_with_its_attempt(api: Api) -> None:
    created = api.intent(metadata={"sandbox_scenario": "hang"}).data
    assert created["expires_at"] == "2026-01-02T00:00:00.000000Z"
    api.sandbox.advance(86_399)
    assert api.listed_intent()["status"] == "pending"
    api.sandbox.advance(1)
    intent = api.listed_intent()
    assert (intent["status"], intent["active_attempt"]["status"]) == ("expired", "expired")
    assert intent["expired_at"] == intent["active_attempt"]["expired_at"] == created["expires_at"]


@pytest.mark.parametrize(
    ("words", "seconds"), [("expire", 86_400), ("expire after=30s", 30), ("expire immediate", 0)]
)
def test_expire_ends_an_intent_by_expiry(api: Api, words: str, seconds: int) -> None:
    api.intent(scenario=words)
    if seconds:
        api.sandbox.advance(seconds - 1)
        assert api.listed_intent()["status"] == "pending"
        api.sandbox.advance(1)
    assert api.listed_intent()["status"] == "expired"


def test_a_paid_session_does_not_expire(api: Api) -> None:
    late, paid = (api.checkout(expires_in_minutes=30).data["payment"]["id"] for _ in range(2))
    api.sandbox.pay(paid)
    api.sandbox.advance(30 * 60)
    statuses = {payment.id: payment.status for payment in api.sandbox.books.payments()}
    assert statuses == {late: "expired", paid: "completed"}


@pytest.mark.fact("request.checkouts.expires_in_minutes.30-to-1440")
@pytest.mark.parametrize(("given", "minutes"), [({}, 60), ({"expires_in_minutes": 30}, 30)])
def test_a_session_expires_with_its_payment(api: Api, given: dict[str, int], minutes: int) -> None:
    data = api.checkout(**given).data
    assert data["checkout"]["expires_at"] == data["payment"]["expires_at"]
    api.sandbox.advance(minutes * 60 - 1)
    assert api.listed_intent()["status"] == "pending"
    api.sandbox.advance(1)
    assert api.listed_intent()["status"] == "expired"
    with pytest.raises(ValueError, match="expired"):
        api.sandbox.pay(data["checkout"]["id"])


@pytest.mark.fact("service.attempt-may-need-action", "states.timestamps.attempt", "form.next-action")
@pytest.mark.parametrize("kind", ACTION_TYPES)
def test_an_action_waits_for_the_payer(api: Api, kind: str) -> None:
    intent_id = api.intent(scenario=f"action:{kind}").data["id"]
    api.sandbox.advance(1000)
    waiting = api.listed_intent()["active_attempt"]
    assert (waiting["status"], waiting["next_action"]["type"]) == ("action_required", kind)
    assert waiting["action_required_at"] == "2026-01-01T00:00:00.000000Z"
    assert any(value is not None for name, value in waiting["next_action"].items() if name != "type")
    api.sandbox.pay(intent_id)
    done = api.listed_intent()["active_attempt"]
    assert (done["status"], done["next_action"]["type"]) == ("completed", "none")
    assert done["id"] == waiting["id"]


def test_an_action_can_be_given_a_time_of_its_own(api: Api) -> None:
    api.intent(scenario="action:collect_otp after=3s")
    api.sandbox.advance(3)
    assert api.listed_intent()["status"] == "completed"


@pytest.mark.fact("service.attempt-may-fail-over", "service.attempt-is-one-try", "form.failover")
def test_a_failover_is_a_new_attempt_that_says_so(api: Api) -> None:
    first = api.intent(scenario="failover:2 after=1s").data["active_attempt"]
    assert first["failover"] == {"is_failover": False, "decision": None}
    api.sandbox.advance(1)
    second = api.listed_intent()["active_attempt"]
    assert second["id"] != first["id"]
    assert second["failover"]["is_failover"] is True
    assert second["failover"]["decision"] is not None
    api.sandbox.advance(2)
    intent = api.listed_intent()
    assert intent["status"] == "completed"
    (entry,) = api.sandbox.books.payments()
    assert len(entry.attempts) == 3
    failed = api.get(f"/payment/intents/{intent['id']}/attempts/{first['id']}").data
    assert failed["failure"]["code"]["value"] == "GATEWAY_UNAVAILABLE"


def test_reads_of_the_attempt_the_list_and_the_session_all_count(api: Api) -> None:
    data = api.post("/payment/checkouts", {**INTENT, "metadata": {"sandbox_scenario": "reads=3"}}).data
    attempt_id = api.sandbox.pay(data["checkout"]["id"]).attempts[0]
    api.get(f"/payment/intents/{data['payment']['id']}/attempts/{attempt_id}")
    assert api.listed_intent()["status"] == "pending"
    again = api.get(f"/payment/checkouts/{data['checkout']['id']}").data
    assert again["payment"]["completed_at"] is not None


@pytest.mark.fact("service.return-is-not-proof")
def test_a_payer_who_fails_may_try_again_and_only_then_is_it_paid(api: Api) -> None:
    session_id = api.checkout().data["checkout"]["id"]
    failed = api.sandbox.pay(session_id, outcome=DECLINED)
    assert (failed.status, len(failed.attempts)) == ("pending", 1)
    assert api.get(f"/payment/checkouts/{session_id}").data["payment"]["completed_at"] is None
    paid = api.sandbox.pay(session_id, method="moov_bj")
    assert (paid.status, len(paid.attempts)) == ("completed", 2)
    with pytest.raises(ValueError, match="completed"):
        api.sandbox.pay(session_id)


@pytest.mark.fact("request.checkouts.restriction.country", "request.checkouts.restriction.phone")
def test_a_restricted_session_takes_its_one_country_or_phone(sandbox: Sandbox, api: Api) -> None:
    by_country = api.checkout(restriction={"country_code": "BJ"}).data["checkout"]["id"]
    with pytest.raises(ValueError, match="country 'BJ'"):
        sandbox.pay(by_country, country="NG")
    assert sandbox.pay(by_country, country="BJ").status == "completed"
    phone = {"number": "+22990000001", "country": "BJ"}
    by_phone = api.checkout(restriction={"phone": phone}).data["checkout"]["id"]
    with pytest.raises(ValueError, match="phone"):
        sandbox.pay(by_phone, phone="+22990000002")
    assert sandbox.pay(by_phone).status == "completed"


def _events(api: Api) -> list[str]:
    return [delivery.event for delivery in api.sandbox.deliveries]


@pytest.mark.parametrize(
    ("words", "events"),
    [
        ("immediate", ["payment.attempt.completed", "payment.completed"]),
        (f"{DECLINED} immediate", ["payment.attempt.failed", "payment.failed"]),
        ("expire immediate", ["payment.expired"]),
        ("action:collect_otp", ["payment.attempt.action_required"]),
    ],
)
def test_a_payment_sends_a_webhook_for_each_change(api: Api, words: str, events: list[str]) -> None:
    api.intent(webhook_url=HOOK, scenario=words)
    assert _events(api) == events
    body = json.loads(api.sandbox.deliveries[-1].body)
    assert set(body) == {"event", "payment", "attempt", "customer", "timestamp"}
    assert body["payment"] == api.listed_intent()
    assert body["timestamp"] == "2026-01-01T00:00:00.000000Z"


def test_a_payment_without_an_attempt_expires_without_one(api: Api) -> None:
    api.checkout(webhook_url=HOOK)
    api.sandbox.advance(3600)
    assert _events(api) == ["payment.expired"]
    assert json.loads(api.sandbox.deliveries[0].body)["attempt"] is None


def ends(api: Api, **scenarios: int) -> None:
    for words, count in scenarios.items():
        for _ in range(count):
            failure = {"fail": "GATEWAY_UNAVAILABLE", "declined": "INSUFFICIENT_FUNDS"}.get(words)
            api.intent(scenario=f"fail:{failure} immediate" if failure else f"{words} immediate")


@pytest.mark.fact("service.method-health-per-country", "states.observed.method-unavailable")
@pytest.mark.parametrize(
    ("completed", "failed", "status"),
    [
        (0, 0, "available"),
        (4, 1, "operational"),
        (4, 0, "available"),
        (0, 4, "available"),
        (0, 5, "unavailable"),
        (3, 2, "degraded"),
        (1, 8, "degraded"),
        (1, 9, "unavailable"),
    ],
)
def test_a_methods_health_is_how_its_recent_attempts_ended(
    api: Api, completed: int, failed: int, status: str
) -> None:
    ends(api, complete=completed, fail=failed)
    path = "/utils/status/payment/method/mtn_bj/{}"
    assert api.get(path.format("BJ")).data["status"] == status
    assert api.get(path.format("NG")).data["status"] == "available"
    api.sandbox.advance(15 * 60 - 1)
    assert api.get(path.format("BJ")).data["status"] == status
    api.sandbox.advance(1)
    assert api.get(path.format("BJ")).data["status"] == "available"


def test_a_payer_s_failure_says_nothing_about_the_method(api: Api) -> None:
    """One empty wallet made a method "Not working right now" for everybody."""
    path = "/utils/status/payment/method/mtn_bj/BJ"
    ends(api, declined=20)
    assert api.get(path).data["status"] == "operational"
    ends(api, fail=10)
    assert api.get(path).data["status"] == "degraded"


def test_an_attempts_country_is_its_own_or_its_phones(api: Api) -> None:
    phone: dict[str, Any] = {"number": "+2348000", "country": "NG"}
    for _ in range(5):
        api.intent(attempt={"method_code": "m", "phone": phone, "currency": "NGN"}, scenario="immediate")
    assert api.get("/utils/status/payment/method/m/NG").data["status"] == "operational"
    assert api.listed_intent()["active_attempt"]["amount"]["currency"] == "NGN"


@pytest.mark.parametrize("record", ["payment", "attempt", "session"])
def test_a_payment_can_be_settled_by_any_of_its_ids(api: Api, record: str) -> None:
    data = api.checkout().data
    session_id, payment_id = data["checkout"]["id"], data["payment"]["id"]
    with pytest.raises(ValueError, match="no attempt"):
        api.sandbox.settle(session_id)
    (attempt_id,) = api.sandbox.pay(session_id, outcome="manual").attempts
    api.sandbox.settle({"payment": payment_id, "attempt": attempt_id, "session": session_id}[record])
    assert api.listed_intent()["status"] == "completed"
    with pytest.raises(ValueError, match="already"):
        api.sandbox.settle(payment_id, "expire")
    with pytest.raises(ValueError, match="already"):
        api.sandbox.settle(attempt_id)


def test_a_payment_can_be_expired_by_hand_but_a_payout_cannot(api: Api) -> None:
    api.sandbox.settle(api.checkout().data["checkout"]["id"], "expire")
    assert api.listed_intent()["status"] == "expired"
    (attempt_id,) = api.sandbox.pay(api.checkout().data["checkout"]["id"], outcome="hang").attempts
    api.sandbox.settle(attempt_id, "expire")
    assert api.listed_intent()["status"] == "expired"
    with pytest.raises(ValueError, match="does not expire"):
        api.sandbox.settle(api.payout().data["id"], "expire")


def test_the_controls_refuse_what_they_do_not_know(api: Api) -> None:
    with pytest.raises(LookupError):
        api.sandbox.pay("pi_unknown")
    with pytest.raises(LookupError):
        api.sandbox.settle("po_unknown")
    payout_id = api.payout().data["id"]
    for words in ("hang", "reads=1", "action:collect_otp"):
        with pytest.raises(ValueError, match="does not end"):
            api.sandbox.settle(payout_id, words)
    with pytest.raises(ValueError, match="near: complete"):
        api.sandbox.settle(payout_id, "completed")
