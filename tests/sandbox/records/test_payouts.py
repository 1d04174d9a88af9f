"""The life of a payout (docs/interface.md, States and transitions and Events; gaps H, V and W)."""

from __future__ import annotations

import json

import pytest

from tests.sandbox.raw_requests import Api

HOOK = "https://merchant.test/hook"


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}.000000Z"


@pytest.mark.fact(
    "states.payout-create-not-final", "states.observed.payout-pending", "states.timestamps.payout"
)
@pytest.mark.fact("response.payouts.create", "endpoint.payouts.create", "endpoint.payouts.sync")
def test_a_payout_is_pending_then_processing_after_2_s_then_completed_after_5_s(api: Api) -> None:
    got = api.payout()
    assert isinstance(got.json["message"], str)
    assert (got.data["status"], got.data["initiated_at"]) == ("pending", None)
    api.sandbox.advance(1.9)
    assert api.sync(got.data["id"])["status"] == "pending"
    api.sandbox.advance(0.1)
    processing = api.sync(got.data["id"])
    assert (processing["status"], processing["initiated_at"]) == ("processing", at(2))
    assert (processing["completed_at"], processing["failed_at"]) == (None, None)
    api.sandbox.advance(3)
    done = api.sync(got.data["id"])
    assert (done["status"], done["completed_at"], done["failed_at"]) == ("completed", at(5), None)


@pytest.mark.parametrize(
    ("words", "history"),
    [
        ("complete after=1m", [(24, "processing"), (60, "completed")]),
        ("fail:NO after=500ms", [(0.2, "processing"), (0.5, "failed")]),
        ("hang", [(2, "processing")]),
        ("hang after=1s", [(2, "processing")]),
        ("manual", [(2, "processing")]),
        ("reads=3", []),
    ],
)
def test_the_scenario_decides_how_and_when_it_ends(
    api: Api, words: str, history: list[tuple[float, str]]
) -> None:
    start = api.sandbox.clock.now()
    api.payout(metadata={"sandbox_scenario": words})
    changes = api.sandbox.advance(100_000)
    assert [(round(change.at - start, 6), change.after) for change in changes] == history


@pytest.mark.parametrize("words", ["complete immediate", "complete after=0", "immediate"])
def test_an_immediate_payout_is_final_when_it_is_answered(api: Api, words: str) -> None:
    payout = api.payout(metadata={"sandbox_scenario": words}).data
    assert (payout["status"], payout["initiated_at"], payout["completed_at"]) == ("completed", at(0), at(0))
    assert api.sandbox.advance(10) == []


def test_reads_move_it_on_until_the_last_one_ends_it(api: Api) -> None:
    payout_id = api.payout(scenario="reads=3").data["id"]
    statuses = [
        api.get("/payouts").data[0]["status"],
        api.sync(payout_id)["status"],
        api.sync(payout_id)["status"],
        api.sync(payout_id)["status"],
    ]
    assert statuses == ["processing", "processing", "completed", "completed"]


@pytest.mark.parametrize(("words", "status"), [("complete", "completed"), ("fail:LATE", "failed")])
def test_a_manual_payout_ends_when_the_test_says(api: Api, words: str, status: str) -> None:
    early, late = (api.payout(scenario="manual").data["id"] for _ in range(2))
    api.sandbox.settle(early, words)
    assert api.sync(early)["status"] == status
    api.sandbox.advance(1000)
    assert api.sync(early)["status"] == status
    assert api.sync(late)["status"] == "processing"
    api.sandbox.settle(late, words)
    assert api.sync(late)["status"] == status


def test_a_payout_that_was_ended_by_hand_does_not_end_again_when_it_was_due(api: Api) -> None:
    early = api.payout(scenario="fail:LATE after=1s").data["id"]
    api.sandbox.settle(early)
    ended = api.sync(early)
    api.sandbox.advance(1)
    assert (ended["status"], api.sync(early)) == ("completed", ended)


@pytest.mark.fact(
    "events.payout.created", "events.payout.completed", "events.payout.failed", "events.unsigned"
)
@pytest.mark.parametrize(("words", "last"), [("complete", "payout.completed"), ("fail:NO", "payout.failed")])
def test_the_webhook_is_due_on_creation_and_at_the_end(api: Api, words: str, last: str) -> None:
    payout_id = api.payout(webhook_url=HOOK, metadata={"sandbox_scenario": words}).data["id"]
    assert [delivery.event for delivery in api.sandbox.deliveries] == ["payout.created"]
    api.sandbox.advance(5)
    assert [delivery.event for delivery in api.sandbox.deliveries] == ["payout.created", last]
    delivery = api.sandbox.deliveries[-1]
    assert (delivery.url, delivery.record_id) == (HOOK, payout_id)
    body = json.loads(delivery.body)
    assert set(body) == {"event", "payout"}
    assert (body["event"], body["payout"]) == (last, api.sync(payout_id))


@pytest.mark.fact("events.webhook-url-optional", "events.none-elsewhere")
def test_without_a_webhook_url_and_by_reading_nothing_is_delivered(api: Api) -> None:
    api.payout(webhook_url="")
    payout_id = api.payout(webhook_url=HOOK, scenario="manual").data["id"]
    intent = api.intent(webhook_url=HOOK).data
    before = api.sandbox.deliveries
    attempt = f"/payment/intents/{intent['id']}/attempts/{intent['active_attempt']['id']}"
    for path in ("/payouts", f"/payouts/{payout_id}/sync", f"/payouts/{payout_id}/inspect", attempt):
        assert api.get(path).status == 200
    assert api.get(f"{attempt}/inspect").status == 200
    assert api.post(f"/payment/intents/{intent['id']}/requery").status == 200
    assert api.sandbox.deliveries == before
