"""Whether a row may be sent, what one attempt proves, and what follows: the tables walked whole."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from payments_async.bulk._protocol.attempts import (
    STEPS,
    AttemptReply,
    Kind,
    SendBlock,
    Step,
    after_attempt,
    kind_of,
    may_have_paid,
    send_block,
)
from payments_async.bulk._protocol.clocks import INTENT_LIFETIME
from payments_async.models import Verdict

REPLIES = {
    Kind.SUCCESS: AttemptReply(201, record="matching", payout_id="po_1"),
    Kind.OTHER_RECORD: AttemptReply(201, record="other"),
    Kind.UNREADABLE: AttemptReply(200),
    Kind.REFUSED: AttemptReply(422),
    Kind.EXISTS: AttemptReply(409),
    Kind.STUCK: AttemptReply(500, replayed=True),
    Kind.CREDENTIALS: AttemptReply(401),
    Kind.MISSING: AttemptReply(404),
    Kind.REDIRECTED: AttemptReply(302),
    Kind.UNTRUSTED: AttemptReply(verdict="not_sent", untrusted=True),
    Kind.THROTTLED: AttemptReply(429),
    Kind.FAILED: AttemptReply(503),
    Kind.SILENT: AttemptReply(),
    Kind.UNSENT: AttemptReply(verdict="not_sent"),
    Kind.WITHHELD: AttemptReply(verdict="not_sent", withheld=True),
}
STATUSES = {
    Kind.REFUSED: (400, 402, 406, 411, 413, 415, 422, 428, 451, 499),
    Kind.CREDENTIALS: (401, 403),
    Kind.MISSING: (404, 405, 407, 421),
    Kind.EXISTS: (409,),
    Kind.THROTTLED: (429,),
    Kind.FAILED: (408, 500, 501, 502, 503, 504, 599, 600, 100),
    Kind.REDIRECTED: (300, 301, 302, 307, 308, 399),
    Kind.UNREADABLE: (200, 201, 202, 204, 299),
}
VERDICTS: tuple[Verdict, ...] = ("not_sent", "not_executed", "in_doubt", "executed")


def test_every_kind_has_a_reply_and_a_step() -> None:
    assert set(REPLIES) == set(STEPS) == set(Kind)
    assert {kind: kind_of(reply) for kind, reply in REPLIES.items()} == {kind: kind for kind in Kind}


@pytest.mark.parametrize(
    ("kind", "status"), [(kind, status) for kind, statuses in STATUSES.items() for status in statuses]
)
def test_every_status_is_of_its_kind(kind: Kind, status: int) -> None:
    assert kind_of(AttemptReply(status)) is kind


REPLAYED = {
    **dict.fromkeys((401, 403, 404, 408, 409, 429, 500, 503), Kind.STUCK),
    **dict.fromkeys((400, 422), Kind.REFUSED),
}


def test_a_replayed_error_is_about_an_earlier_request_and_a_replayed_refusal_or_success_is_the_answer() -> (
    None
):
    assert {status: kind_of(AttemptReply(status, replayed=True)) for status in REPLAYED} == REPLAYED
    assert kind_of(AttemptReply(201, replayed=True, record="matching")) is Kind.SUCCESS


def test_only_what_was_not_carried_out_for_sure_leaves_a_later_refusal_its_word() -> None:
    assert [may_have_paid(verdict) for verdict in VERDICTS] == [False, False, True, True]


@pytest.mark.parametrize(("kind", "doubt", "tries"), list(itertools.product(Kind, [False, True], [0, 1])))
def test_what_follows_each_kind_of_end(kind: Kind, doubt: bool, tries: int) -> None:
    step = after_attempt(REPLIES[kind], doubt=doubt, tries_left=tries)
    usual = STEPS[kind]
    if kind is Kind.REFUSED and doubt:
        assert step is Step.RESOLVE
    elif usual is Step.AGAIN and tries == 0:
        assert step is (Step.HOLD if kind is Kind.UNSENT else Step.LATER)
    else:
        assert step is usual


def test_only_a_matching_record_confirms_and_only_a_definite_refusal_rejects() -> None:
    assert [kind for kind, step in STEPS.items() if step is Step.CONFIRM] == [Kind.SUCCESS]
    assert [kind for kind, step in STEPS.items() if step is Step.REJECT] == [Kind.REFUSED]


FREE: dict[str, Any] = {
    "durable": True,
    "under_way": 0,
    "same_bytes": True,
    "age_of_intent": INTENT_LIFETIME - 1,
}
STOPS: list[tuple[dict[str, Any], SendBlock]] = [
    ({"durable": False}, SendBlock.NOT_DURABLE),
    ({"under_way": 1}, SendBlock.BUSY),
    ({"same_bytes": False}, SendBlock.OTHER_BYTES),
    ({"age_of_intent": INTENT_LIFETIME}, SendBlock.STALE),
]


def test_a_request_leaves_when_nothing_hinders_it_and_of_several_hindrances_the_disk_comes_first() -> None:
    worst = {name: value for fact, _ in STOPS for name, value in fact.items()}
    assert (send_block(**FREE), send_block(**worst)) == (None, SendBlock.NOT_DURABLE)
    assert [send_block(**{**FREE, **fact}) for fact, _ in STOPS] == [reason for _, reason in STOPS]
    assert {reason for _, reason in STOPS} == set(SendBlock)
