"""The journal's index: entries about a record, a webhook or a key, for as long as they are kept."""

from __future__ import annotations

import random

from payments_async.sandbox import Answer, Change, Delivery, LoggedRequest, Sandbox
from payments_async.sandbox._journal import Journal, WebhookTried
from tests.sandbox.raw_requests import TRIED, Api


def seqs(journal: Journal, *names: str) -> list[int]:
    return [entry.seq for entry in journal.about(*names)]


def test_a_record_is_found_with_its_changes_its_webhooks_and_its_requests() -> None:
    journal = Journal()
    log = LoggedRequest(0.0, "req_1", "POST", "/v1/payouts", None, 201, "key-1", False, None, None, {})
    journal.add(Change(0.0, "payout", "po_1", None, "pending"))
    journal.add(Delivery(0.0, "payout.created", "po_1", "http://127.0.0.1:9/", b"{}"))
    journal.add_exchange(log, 0.0, b"", Answer(201, {}, b""), caused=2)
    journal.add_try(WebhookTried(1.0, "wh_1", "po_1", "payout.created", 204, None))
    journal.add(Change(2.0, "payout", "po_2", None, "pending"))
    assert seqs(journal, "po_1") == [1, 2, 3, 4]
    assert seqs(journal, "key-1") == [3]
    assert seqs(journal, "wh_1", "po_2", "po_3") == [4, 5]
    journal.clear()
    assert seqs(journal, "po_1") == []


def test_a_read_is_about_the_records_in_its_address(sandbox: Sandbox, api: Api) -> None:
    payout = api.payout(reference="r-1", idempotency_key="key-00001").data["id"]
    api.sync(payout)
    api.get(f"/payment/intents/{payout}/attempts/{payout}")
    api.payout(reference="r-1", idempotency_key="key-00001")
    intent = api.post("/payment/intents", TRIED).data["id"]
    about = [type(entry.item).__name__ for entry in sandbox.journal.about(payout)]
    assert about == ["Change", "LoggedExchange", "LoggedExchange", "LoggedExchange"]
    assert len(seqs(sandbox.journal, "key-00001")) == 2
    assert len(seqs(sandbox.journal, intent)) == 2


def test_what_had_fallen_due_before_a_request_was_not_made_by_it() -> None:
    journal = Journal()
    log = LoggedRequest(1.0, "req_1", "GET", "/v1/payouts", None, 200, None, False, None, None, {})
    journal.add(Change(0.5, "payout", "po_1", None, "pending"))
    journal.add_exchange(log, 0.0, b"", Answer(200, {}, b""), caused=1)
    assert seqs(journal, "po_1") == [1]


def test_the_index_forgets_what_the_journal_drops() -> None:
    """Against a scan, with names that come often, seldom and once."""
    chance = random.Random(7)
    journal, names = Journal(entries=50), [f"po_{number}" for number in range(12)]
    for number in range(2_000):
        name = chance.choice([names[0], *names, f"once_{number}"])
        journal.add(Change(float(number), "payout", name, None, "pending"))
        for wanted in {*chance.sample(names, 3), name}:
            kept = journal.since(0)
            scanned = [one.seq for one in kept if isinstance(one.item, Change) and one.item.id == wanted]
            assert seqs(journal, wanted) == scanned
        assert len(journal._others._latest) <= 50
        assert len(journal._others._earlier) <= 50


def test_a_long_key_is_found_by_its_beginning_after_its_bytes_are_dropped(sandbox: Sandbox, api: Api) -> None:
    journal = Journal(entries=2, body_bytes=0)
    key = "k" * 500
    log = LoggedRequest(0.0, "req_1", "GET", "/v1/payouts", None, 200, key, False, None, None, {})
    for _ in range(4):
        journal.add_exchange(log, 0.0, b"", Answer(200, {}, b""))
    assert seqs(journal, key[:200]) == [3, 4]
