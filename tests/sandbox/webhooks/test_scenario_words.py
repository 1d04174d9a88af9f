"""Webhook words, forgeries and repeats: without a server, so nothing is sent."""

from __future__ import annotations

import json
from itertools import cycle

import pytest

from payments_async.sandbox import UnknownWord
from tests.sandbox.raw_requests import Api

HOOK = "http://127.0.0.1:9/hook"
PAYOUT_EVENTS = {"payout.created": "pending", "payout.completed": "completed", "payout.failed": "failed"}
PAYMENT_EVENTS = {
    f"payment.{status}": status
    for status in ("completed", "failed", "expired", "refunded", "partially_refunded")
}
ATTEMPT_EVENTS = {
    f"payment.attempt.{status}": status for status in ("completed", "failed", "action_required")
}


def test_the_first_that_says_anything_counts_and_ok_is_saying_something(api: Api) -> None:
    api.sandbox.on("payouts.create", reference="fine").webhook("ok")
    dropped = {"sandbox_scenario": "drop"}
    api.payout(webhook_url=HOOK, reference="fine", metadata=dropped)
    api.payout(webhook_url=HOOK, reference="other", metadata=dropped)
    assert [webhook.state for webhook in api.sandbox.webhooks] == ["waiting", "dropped"]


def test_a_rule_with_webhook_words_is_used_up_after_so_many_records(api: Api) -> None:
    rule = api.sandbox.on("payouts.*").outcome("fail:NO").webhook("drop", times=2)
    assert (rule.is_used_up, rule.remaining) == (False, None)
    limited = api.sandbox.on("payment_intents.create").webhook("duplicate", times=1)
    assert limited.remaining == 1
    for _ in range(3):
        api.payout(webhook_url=HOOK)
    assert rule.is_used_up
    assert [webhook.state for webhook in api.sandbox.webhooks] == ["dropped", "dropped", "waiting"]
    assert api.sandbox.unused_rules == [limited]
    assert api.sandbox.on("payouts.create").webhook("drop").remaining is None


def test_nothing_is_sent_and_nothing_reported_while_it_does_not_serve(api: Api) -> None:
    api.payout(webhook_url=HOOK)
    assert {change.kind for change in api.sandbox.advance(9999)} == {"payout"}
    assert [(webhook.state, webhook.tries) for webhook in api.sandbox.webhooks] == [("waiting", ())] * 2
    with pytest.raises(TimeoutError, match="the sandbox is not serving"):
        api.sandbox.wait_for_webhooks()


def test_a_forged_word_claims_that_a_payment_is_completed(api: Api) -> None:
    api.intent(webhook_url=HOOK, scenario="forge fail:NO")
    (forged,) = (webhook for webhook in api.sandbox.webhooks if webhook.origin == "forged")
    assert forged.event == "payment.completed"
    assert json.loads(forged.body)["payment"]["status"] == "completed"
    assert api.listed_intent()["status"] == "pending"


def test_a_forged_word_claims_a_completion_that_is_not_so(api: Api) -> None:
    payout_id = api.payout(webhook_url=HOOK, scenario="forge fail:NO").data["id"]
    real, forged = api.sandbox.webhooks
    assert (real.event, forged.event, forged.origin) == ("payout.created", "payout.completed", "forged")
    claimed = json.loads(forged.body)["payout"]
    assert (claimed["id"], claimed["status"], claimed["failure"]) == (payout_id, "completed", None)
    assert claimed["completed_at"] == claimed["initiated_at"] == claimed["created_at"]
    assert api.sync(payout_id)["status"] == "pending"
    api.sandbox.advance(5)
    assert api.sync(payout_id)["status"] == "failed"
    assert [delivery.event for delivery in api.sandbox.deliveries] == ["payout.created", "payout.failed"]
    assert [payout.status for payout in api.sandbox.books.payouts()] == ["failed"]


@pytest.mark.parametrize(
    ("event", "words"),
    list(zip(PAYOUT_EVENTS, ("complete immediate", "fail:NO immediate", "manual"), strict=True)),
)
def test_any_event_of_a_payout_can_be_forged_whatever_the_truth(api: Api, words: str, event: str) -> None:
    payout_id = api.payout(webhook_url=HOOK, scenario=words).data["id"]
    truth = api.sync(payout_id)
    webhook = api.sandbox.forge(payout_id, event)
    claimed = json.loads(webhook.body)["payout"]
    assert (webhook.origin, webhook.url, claimed["status"]) == ("forged", HOOK, PAYOUT_EVENTS[event])
    assert (claimed["failed_at"] is None) == (claimed["failure"] is None) == (event != "payout.failed")
    assert (claimed["completed_at"] is None) == (event != "payout.completed")
    assert api.sync(payout_id) == truth


@pytest.mark.parametrize(
    ("event", "words"),
    [*zip((*PAYMENT_EVENTS, *ATTEMPT_EVENTS), cycle(("manual", "complete immediate", "action:collect_otp")))],
)
def test_any_event_of_a_payment_can_be_forged_whatever_the_truth(api: Api, words: str, event: str) -> None:
    intent_id = api.intent(webhook_url=HOOK, scenario=words).data["id"]
    truth = api.listed_intent()
    body = json.loads(api.sandbox.forge(intent_id, event).body)
    wanted = {**PAYMENT_EVENTS, **ATTEMPT_EVENTS}[event]
    assert body["attempt" if event in ATTEMPT_EVENTS else "payment"]["status"] == wanted
    assert body["event"] == event
    assert api.listed_intent() == truth


def test_a_forgery_can_go_to_any_address_and_names_a_session_too(api: Api) -> None:
    session = api.checkout().data
    webhook = api.sandbox.forge(session["checkout"]["id"], url=HOOK)
    assert (webhook.event, webhook.record_id) == ("payment.completed", session["payment"]["id"])
    payout_id = api.payout().data["id"]
    assert api.sandbox.forge(payout_id, url=HOOK).event == "payout.completed"
    with pytest.raises(ValueError, match="has no webhook_url"):
        api.sandbox.forge(payout_id)
    with pytest.raises(LookupError, match="no payout, payment or checkout session 'po_x'"):
        api.sandbox.forge("po_x", url=HOOK)
    with pytest.raises(UnknownWord, match=r"near: payout\.completed"):
        api.sandbox.forge(payout_id, "payout.complete", url=HOOK)


def test_a_delivery_can_be_sent_again_whatever_became_of_it(api: Api) -> None:
    api.payout(webhook_url=HOOK, scenario="drop manual")
    (dropped,) = api.sandbox.webhooks
    again = api.sandbox.resend(dropped.id)
    assert (again.origin, again.repeats, again.state, again.body) == (
        "resent",
        dropped.id,
        "waiting",
        dropped.body,
    )
    with pytest.raises(LookupError, match="no webhook"):
        api.sandbox.resend("wh_x")
