"""The delivery machine: what is sent when, and what becomes of it after each try. Values in, values out."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_async.sandbox import Delivery, Webhook, WebhookTry
from payments_async.sandbox._common.scenario_words import HookWord
from payments_async.sandbox._webhooks import retry_schedule
from payments_async.sandbox._webhooks.retry_schedule import HELD_FOR, TRY_TIMES, WebhookQueue
from payments_async.sandbox._webhooks.webhook import hook_effects

FAILED = 500


def due(at: float = 0.0, event: str = "payout.created", record: str = "po_1", *words: HookWord) -> Delivery:
    return Delivery(at, event, record, "http://127.0.0.1/hook", b"{}", words)


def answered(at: float, status: int = 200) -> WebhookTry:
    return WebhookTry(at, 0.1, status)


def deliver(queue: WebhookQueue, until: float, status: int = 200) -> list[tuple[float, str, str]]:
    """Try all that falls due until then, each at its own time; gives time, record and event of every try."""
    log = []
    while (now := queue.next_at) is not None and now <= until:
        for webhook in queue.take(now, 100):
            log.append((now, webhook.record_id, webhook.event))
            queue.report(webhook.id, answered(now, status))
    return log


def states(queue: WebhookQueue) -> Counter[str]:
    return Counter(webhook.state for webhook in queue.webhooks)


def test_a_late_end_of_a_try_does_not_push_the_next_ones_back() -> None:
    queue = WebhookQueue()
    webhook_id = queue.accept(due())
    queue.take(0.0, 1)
    assert queue.report(webhook_id, answered(9.0, FAILED)).next_at == 30.0
    queue.take(400.0, 1)
    late = queue.report(webhook_id, answered(400.0, FAILED))
    assert (late.next_at, late.tries[-1].at) == (400.0, 400.0)


def test_words_drop_delay_and_copy() -> None:
    queue = WebhookQueue()
    queue.accept(due(0, "dropped", "po_1", HookWord("drop")))
    queue.accept(due(0, "late", "po_2", HookWord("delay", seconds=45)))
    queue.accept(due(0, "thrice", "po_3", HookWord("duplicate", count=3)))
    queue.accept(due(0, "usual", "po_4", HookWord("ok")))
    log = deliver(queue, 1e9)
    assert sorted(log) == [
        (0, "po_3", "thrice"),
        (0, "po_3", "thrice"),
        (0, "po_3", "thrice"),
        (0, "po_4", "usual"),
        (45, "po_2", "late"),
    ]
    dropped, _, original, second, third, _ = queue.webhooks
    assert (dropped.state, dropped.tries) == ("dropped", ())
    assert [copy.origin for copy in (original, second, third)] == ["due", "duplicate", "duplicate"]
    assert {second.repeats, third.repeats} == {original.id}


def test_reorder_lets_each_pair_of_a_record_s_deliveries_change_places() -> None:
    queue, swap = WebhookQueue(), HookWord("reorder")
    for at, event in enumerate(["a", "b", "c"]):
        queue.accept(due(at, event, "po_1", swap))
    queue.accept(due(0, "x", "po_2", swap))
    assert deliver(queue, 59) == [(1, "po_1", "b"), (1, "po_1", "a")]
    assert deliver(queue, 1e9) == [(HELD_FOR, "po_2", "x"), (2 + HELD_FOR, "po_1", "c")]
    queue.accept(due(100, "d", "po_1", swap))
    assert queue.next_at == 100 + HELD_FOR


def test_memory_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry_schedule, "KEPT", 3)
    monkeypatch.setattr(retry_schedule, "MOST_WAITING", 2)
    queue = WebhookQueue()
    ids = [queue.accept(due(record=f"po_{number}")) for number in range(4)]
    assert states(queue) == {"waiting": 2, "given_up": 2}
    assert queue.find(ids[3]).reason == "2 deliveries were waiting already"
    deliver(queue, 0)
    assert [webhook.id for webhook in queue.webhooks] == [ids[0], ids[1], ids[3]]


def test_neither_address_nor_body_is_shown() -> None:
    webhook = Webhook("wh_1", 0, "payout.created", "po_1", "http://127.0.0.1/token", b"+22990000001")
    assert "token" not in repr(webhook)
    assert "+229" not in repr(webhook)


WORDS = st.lists(
    st.sampled_from(
        [
            HookWord("ok"),
            HookWord("drop"),
            HookWord("delay", seconds=70),
            HookWord("duplicate", count=3),
            HookWord("reorder"),
            HookWord("before_response"),
        ]
    ),
    max_size=3,
)
DUE = st.tuples(st.floats(0, 50), st.sampled_from("abc"), st.sampled_from(["po_1", "po_2"]), WORDS)


@settings(deadline=None)
@given(st.lists(DUE, max_size=8), st.lists(st.booleans(), min_size=1), st.integers(1, 3))
def test_whatever_the_words_each_is_tried_until_it_is_taken_and_no_more_than_five_times(
    deliveries: list[tuple[float, str, str, list[HookWord]]], taken: list[bool], room: int
) -> None:
    queue = WebhookQueue()
    for at, event, record, words in sorted(deliveries, key=lambda each: each[0]):
        queue.accept(due(at, event, record, *words))
    verdicts = 0
    while (now := queue.next_at) is not None:
        webhooks = queue.take(now, room)
        assert len({webhook.record_id for webhook in webhooks}) == len(webhooks) <= room
        for webhook in webhooks:
            verdicts += 1
            status = 204 if taken[verdicts % len(taken)] else FAILED
            queue.report(webhook.id, answered(now, status))
    assert queue.is_idle(1e12)
    copies = [hook_effects(tuple(words)).copies for *_, words in deliveries]
    assert len(queue.webhooks) == sum(copies)
    for webhook in queue.webhooks:
        at_once = [tried.at for tried in webhook.tries]
        planned = [webhook.first_at + offset for offset in TRY_TIMES[: len(at_once)]]
        assert at_once == planned
        assert webhook.first_at >= webhook.at or webhook.state == "dropped"
        assert (webhook.state == "dropped") == (not webhook.tries)
        assert not any(tried.is_success for tried in webhook.tries[:-1])
        if webhook.tries:
            assert webhook.state == ("delivered" if webhook.tries[-1].is_success else "given_up")
            assert webhook.tries[-1].is_success or len(webhook.tries) == 5
