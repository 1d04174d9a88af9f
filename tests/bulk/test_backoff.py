"""The back-off of rows whose posts failed: how long each waits, and when the list is asked instead."""

from __future__ import annotations

from payments_async._gaps import ABANDONED_AFTER
from payments_async.bulk._backoff import BackOff
from payments_async.bulk._doubts import Doubt
from payments_async.bulk._rules import post_again_after
from tests.support.jumping import JumpingRuntime


def test_the_pauses_double_up_to_the_wait_for_the_next_key() -> None:
    pauses = [post_again_after(times) for times in range(9)]
    assert pauses == [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, None, None]
    assert max(pause for pause in pauses if pause) < ABANDONED_AFTER


def test_a_row_that_was_settled_begins_anew_when_it_comes_back() -> None:
    runtime, looked = JumpingRuntime(), list[Doubt]()
    backoff = BackOff(runtime, looked.append)
    for due in (10.0, 30.0, 40.0):
        backoff.add(7)
        assert (backoff.due, len(backoff)) == (due, 1)
        runtime.advance(due - runtime.monotonic())
        assert list(backoff.take(5)) == [[7]]
        if due == 30.0:
            backoff.settled(7)
    backoff.add(7)
    backoff.end()
    assert (looked, backoff.due) == ([Doubt(7)], None)
