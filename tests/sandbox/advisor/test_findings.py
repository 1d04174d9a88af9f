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


def work_on(api: Api, count: int) -> None:
    """So many payouts without a mistake."""
    for number in range(count):
        api.payout(reference=f"fine-{number}", idempotency_key=f"fine-{number:06}")
        api.sandbox.advance(10)


@pytest.mark.parametrize("journal", [Journal(entries=60), Journal(body_bytes=30_000)], ids=["few", "large"])
def test_mistakes_are_shown_still_after_many_good_requests(
    api: Api, sandbox: Sandbox, journal: Journal
) -> None:
    sandbox._journal = journal
    for _ in range(3):
        api.payout(reference="r-1")
    work_on(api, 100)  # and nobody asks meanwhile
    assert advise(sandbox.entries()) == []
    (found,) = advice(sandbox)
    assert (found["rule"], found["requests"]) == (
        "posted_without_key",
        ["req_00000001", "req_00000002", "req_00000003"],
    )


def test_a_finding_grows_and_another_look_finds_nothing_new(api: Api, sandbox: Sandbox) -> None:
    for turn in range(3):
        api.payout(reference="r-1")
        sandbox.advance(7)
        found = advice(sandbox)
        assert [len(one["requests"]) for one in found] == ([] if turn == 0 else [turn + 1])
        assert advice(sandbox) == found
    assert "was sent 3 times" in found[0]["text"]


def test_its_evidence_has_a_bound(api: Api, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_findings, "EVIDENCE", 6)
    monkeypatch.setattr(_findings, "_OVERLAP", 20)
    for _ in range(20):
        api.payout(reference="r-1")
        sandbox.advance(1)
        advice(sandbox)
    (found,) = advice(sandbox)
    assert found["requests"] == [f"req_{number:08}" for number in range(1, 7)]


def test_of_too_many_findings_those_of_one_rule_go_first(
    api: Api, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_findings, "FINDINGS", 2)
    for amount in (1, 2):
        api.payout(reference="r-9", amount=amount, idempotency_key="key-00001")
    for number in range(4):
        for _ in range(2):
            api.payout(reference=f"r-{number}", amount=10 + number)
        sandbox.advance(60)
    shown = [(found["rule"], found["subject"]) for found in advice(sandbox)]
    assert shown == [("posted_without_key", "r-2"), ("posted_without_key", "r-3"), ("key_reused", "r-9")]


def test_two_mistakes_of_one_kind_and_subject_are_two(api: Api, sandbox: Sandbox) -> None:
    for amount in (1, 2):
        for _ in range(2):
            api.post("/payment/intents", {**INTENT, "amount": amount})
    assert [len(found["requests"]) for found in advice(sandbox)] == [2, 2]


def test_a_webhook_that_was_believed_is_kept_when_its_record_is_read_too_late(
    api: Api, sandbox: Sandbox
) -> None:
    payout = api.payout(idempotency_key="key-00001").data["id"]
    sandbox.advance(5)
    sandbox.journal.add(WebhookTried(sandbox.clock.now(), "wh_1", payout, "payout.completed", 204, None))
    assert advice(sandbox) == [], "a minute is given"
    sandbox.advance(60)
    assert [found["webhooks"] for found in advice(sandbox)] == [["wh_1"]]
    api.sync(payout)
    assert [found["webhooks"] for found in advice(sandbox)] == [["wh_1"]]


def test_what_a_request_showed_is_not_guessed_once_its_answer_was_dropped(api: Api, sandbox: Sandbox) -> None:
    """Without the answer it is not known that a list showed a record."""
    payout = api.payout(idempotency_key="key-00001").data["id"]
    sandbox.advance(5)
    sandbox.journal.add(WebhookTried(sandbox.clock.now(), "wh_1", payout, "payout.completed", 204, None))
    api.get("/payouts")
    sandbox.advance(60)
    assert advise(sandbox.entries(), sandbox.clock.now()) == []
    for exchange in sandbox.journal.newest_exchanges():
        exchange.drop_bytes()
    assert advise(sandbox.entries(), sandbox.clock.now()) == []


def test_a_reset_forgets_what_was_found(api: Api, sandbox: Sandbox) -> None:
    for _ in range(2):
        api.payout(reference="r-1")
    assert len(advice(sandbox)) == 1
    sandbox.reset()
    assert advice(sandbox) == []
