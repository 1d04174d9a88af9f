"""The journal: what happened, in order, in bounded memory."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from payments_async.sandbox import Answer, Change, LoggedRequest, Sandbox
from tests.sandbox.raw_requests import Api, Journal, LoggedExchange


def change(number: int) -> Change:
    return Change(float(number), "payout", f"po_{number}", None, "pending")


def logged(name: str) -> LoggedRequest:
    return LoggedRequest(0.0, name, "GET", "/v1/payouts", None, 200, None, False, None, None, {})


def fill(journal: Journal, count: int, size: int = 0) -> None:
    for number in range(count):
        answer = Answer(200, {}, b"a" * size)
        journal.add_exchange(logged(f"req_{number}"), float(number), b"q" * size, answer)


def kept_bodies(journal: Journal) -> list[str]:
    items = [entry.item for entry in journal.since(0)]
    return [
        item.log.request_id for item in items if isinstance(item, LoggedExchange) and item.answer is not None
    ]


def test_numbers_go_up_by_one_and_stay_with_their_entries() -> None:
    journal = Journal(entries=3)
    for number in range(1, 6):
        journal.add(change(number))
    assert [(entry.seq, entry.item) for entry in journal.since(0)] == [(n, change(n)) for n in (3, 4, 5)]
    assert (journal.first, journal.last) == (3, 5)
    assert [entry.seq for entry in journal.since(3)] == [4, 5]
    assert journal.since(5) == journal.since(99) == []


def test_bodies_are_dropped_oldest_first_when_their_budget_is_spent() -> None:
    journal = Journal(body_bytes=120)
    fill(journal, 5, size=20)  # 54 bytes each, with method and address
    assert kept_bodies(journal) == ["req_3", "req_4"]
    assert journal.with_causes("req_0")[0].body is None


def test_headers_and_addresses_count_as_bytes_and_are_dropped_with_them() -> None:
    """600 requests with many headers kept 293 MiB."""
    journal = Journal(body_bytes=100_000)
    key = "k" * 8_000
    for number in range(3):
        headers = {f"x-{place}": "v" * 1_000 for place in range(30)}
        log = replace(
            logged(f"req_{number}"), path="/v1/" + "p" * 8_000, headers=headers, idempotency_key=key
        )
        journal.add_exchange(log, 0.0, b"", Answer(200, {}, b""))
    assert kept_bodies(journal) == ["req_1", "req_2"]
    gone, kept = (journal.with_causes(name)[0] for name in ("req_0", "req_2"))
    assert (gone.is_whole, gone.log.headers, kept.is_whole, len(kept.log.headers)) == (False, {}, True, 30)
    assert len(gone.log.path) == len(gone.log.idempotency_key or "") == 200


def test_a_body_larger_than_the_budget_is_not_kept_and_harms_no_later_one() -> None:
    journal = Journal(body_bytes=100)
    fill(journal, 1, size=1000)
    assert kept_bodies(journal) == []
    fill(journal, 2, size=10)
    assert kept_bodies(journal) == ["req_0", "req_1"]


def test_a_request_keeps_what_it_caused_until_that_makes_room(sandbox: Sandbox, api: Api) -> None:
    sandbox._journal = Journal(entries=4)
    for number in range(4):
        api.payout(reference=f"r-{number}")
    assert [len(sandbox.requests), sandbox.journal.first, sandbox.journal.gone] == [2, 5, 4]
    newest, first = sandbox.requests[1].request_id, sandbox.requests[0].request_id
    assert [one.seq for one in sandbox.journal.with_causes(newest)[1]] == [7, 8]
    for _ in range(3):
        api.get("/payouts")
    assert [one.seq for one in sandbox.journal.with_causes(newest)[1]] == [8]
    with pytest.raises(LookupError, match=f"no request '{first}' in the journal"):
        sandbox.journal.with_causes(first)
    sandbox.reset()
    assert sandbox.journal.gone == 0
