"""The Advisor's findings stay when the requests that show them have left the journal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from payments_async.sandbox import Sandbox
from payments_async.sandbox._journal import Journal, WebhookTried
from payments_async.sandbox.advisor import _findings, advise
from tests.sandbox.raw_requests import INTENT, Api


def advice(sandbox: Sandbox) -> list[dict[str, Any]]:
    answer = sandbox.handle("GET", "/_sandbox/api/advice")
    found: list[dict[str, Any]] = json.loads(answer.body)["findings"]
    return found


def work_on(api: Api, count: int, start: int = 0) -> None:
    """So many payouts without a mistake."""
    for number in range(start, start + count):
        api.payout(reference=f"fine-{number}", idempotency_key=f"fine-{number:06}")
        api.sandbox.advance(10)


def test_three_mistakes_are_shown_still_after_many_good_requests(api: Api, sandbox: Sandbox) -> None:
    sandbox._journal = Journal(entries=60)
    for _ in range(3):
        api.payout(reference="r-1")
    work_on(api, 100)  # and no page is opened meanwhile
    assert advise(sandbox.entries()) == []
    (found,) = advice(sandbox)
    assert (found["rule"], found["count"], found["requests"]) == (
        "post_without_key",
        3,
        ["req_00000001", "req_00000002", "req_00000003"],
    )


def test_large_answers_let_go_of_requests_earlier_and_are_looked_at_before(
    api: Api, sandbox: Sandbox
) -> None:
    sandbox._journal = Journal(body_bytes=30_000)
    for _ in range(2):
        api.payout(reference="r-1")
    work_on(api, 30)
    (first, *_) = sandbox.requests
    assert first.headers == {}
    assert [found["rule"] for found in advice(sandbox)] == ["post_without_key"]


def test_a_finding_counts_on_with_its_first_and_last_time(api: Api, sandbox: Sandbox) -> None:
    began = sandbox.clock.now()
    for turn in range(3):
        api.payout(reference="r-1")
        sandbox.advance(7)
        found = advice(sandbox)
        assert [one["count"] for one in found] == ([] if turn == 0 else [turn + 1])
        assert advice(sandbox) == found, "another look finds nothing new"
    assert (found[0]["first_at"], found[0]["last_at"]) == (
        "2026-01-01T00:00:00.000000Z",
        "2026-01-01T00:00:14.000000Z",
    )
    assert sandbox.clock.now() == began + 21


def test_a_finding_that_was_dismissed_returns_with_new_evidence(api: Api, sandbox: Sandbox) -> None:
    for _ in range(2):
        api.payout(reference="r-1")
    (found,) = advice(sandbox)
    dismissal = f"/_sandbox/api/advice/{found['id']}/dismiss"
    json_type = {"Content-Type": "application/json"}
    assert sandbox.handle("POST", dismissal, json_type, b"{}").status == 200
    assert advice(sandbox) == []
    api.payout(reference="r-1")
    (again,) = advice(sandbox)
    assert (again["id"], again["count"]) == (found["id"], 3)
    unknown = dismissal.replace("finding_1", "finding_9")
    assert sandbox.handle("POST", unknown, json_type, b"{}").status == 404


def test_of_two_mistakes_one_is_dismissed(api: Api, sandbox: Sandbox) -> None:
    for amount in (1, 2):
        api.payout(reference="r-1", idempotency_key="key-00001", amount=amount)
    for _ in range(2):
        api.payout(reference="r-2")
    first, second = advice(sandbox)
    headers = {"Content-Type": "application/json"}
    sandbox.handle("POST", f"/_sandbox/api/advice/{first['id']}/dismiss", headers, b"{}")
    assert [found["id"] for found in advice(sandbox)] == [second["id"]]


def test_its_evidence_has_a_bound_and_its_count_none(
    api: Api, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_findings, "EVIDENCE", 6)
    monkeypatch.setattr(_findings, "_HEAD", 2)
    monkeypatch.setattr(_findings, "_OVERLAP", 20)
    for _ in range(20):
        api.payout(reference="r-1")
        sandbox.advance(1)
        advice(sandbox)
    (found,) = advice(sandbox)
    assert found["count"] == 20
    assert found["requests"] == [f"req_{number:08}" for number in (1, 2, 17, 18, 19, 20)]


def test_of_too_many_findings_those_seen_last_are_kept(
    api: Api, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_findings, "FINDINGS", 2)
    for number in range(4):
        for _ in range(2):
            api.payout(reference=f"r-{number}")
        sandbox.advance(60)
    assert [found["subject"] for found in advice(sandbox)] == ["r-2", "r-3"]


def test_what_a_finding_no_longer_names_is_not_counted_again_while_the_clock_stands_still(
    api: Api, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_findings, "EVIDENCE", 6)
    monkeypatch.setattr(_findings, "_HEAD", 2)
    for _ in range(20):
        api.payout(reference="r-1")
        advice(sandbox)
    counts = [found["count"] for found in advice(sandbox) if found["rule"] == "post_without_key"]
    assert counts == [20]


def test_many_small_mistakes_do_not_displace_one_about_money(
    api: Api, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_findings, "FINDINGS", 2)
    for _ in range(2):
        api.payout(reference="r-1")
    for number in range(4):
        checkout = api.checkout(idempotency_key=f"checkout-{number}").data["checkout"]["id"]
        for _ in range(4):
            api.get(f"/payment/checkouts/{checkout}")
        sandbox.advance(60)
        advice(sandbox)
    assert [found["rule"] for found in advice(sandbox)] == ["post_without_key", *["polling_too_fast"] * 2]


def test_two_mistakes_of_one_kind_and_subject_are_two(api: Api, sandbox: Sandbox) -> None:
    for amount in (1, 2):
        for _ in range(2):
            api.post("/payment/intents", {**INTENT, "amount": amount})
    assert [found["count"] for found in advice(sandbox)] == [2, 2]


def test_a_webhook_that_was_believed_is_kept_when_its_record_is_read_too_late(
    api: Api, sandbox: Sandbox
) -> None:
    payout = api.payout(idempotency_key="key-00001").data["id"]
    sandbox.advance(5)
    sandbox.journal.add(WebhookTried(sandbox.clock.now(), "wh_1", payout, "payout.completed", 204, None))
    sandbox.advance(60)
    assert [found["webhooks"] for found in advice(sandbox)] == [["wh_1"]]
    api.sync(payout)
    assert [found["webhooks"] for found in advice(sandbox)] == [["wh_1"]]


def test_what_a_request_showed_is_not_guessed_once_its_answer_was_let_go(api: Api, sandbox: Sandbox) -> None:
    """Without the answer it is not known that a list showed a record, nor a checkout to be open."""
    payout = api.payout(idempotency_key="key-00001").data["id"]
    checkout = api.checkout().data["checkout"]["id"]
    sandbox.advance(5)
    sandbox.journal.add(WebhookTried(sandbox.clock.now(), "wh_1", payout, "payout.completed", 204, None))
    api.get("/payouts")
    for _ in range(5):
        api.get(f"/payment/checkouts/{checkout}")
        sandbox.advance(30)
    assert advise(sandbox.entries(), sandbox.clock.now()) == []
    for entry in sandbox.entries():
        if hasattr(entry.item, "let_go"):
            entry.item.let_go()
    assert advise(sandbox.entries(), sandbox.clock.now()) == []


def test_a_reset_forgets_what_was_found(api: Api, sandbox: Sandbox) -> None:
    for _ in range(2):
        api.payout(reference="r-1")
    assert len(advice(sandbox)) == 1
    sandbox.reset()
    assert advice(sandbox) == []
