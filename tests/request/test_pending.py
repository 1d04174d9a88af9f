"""Requests under way, by key: what is remembered of them, and what is shared."""

from __future__ import annotations

import asyncio
from copy import copy
from typing import Any

import attrs
import pytest

from payments_async._request import pending
from payments_async._request.pending import Outcome, PendingRequests, join
from payments_async._request.prepare import writing
from payments_async.errors import DeadlineExceeded, OutcomeUnknown
from tests.support.jumping import JumpingRuntime
from tests.support.pure_calls import PAYOUT, REQUERY, begun, prepared


def keyed(number: int) -> Any:
    """A payout under a key of its own."""
    key = f"key-{number:04}"
    own = attrs.evolve(prepared(PAYOUT.operation), idempotency_key=key)
    return writing(own, {}, operation=PAYOUT.operation)


async def test_the_latest_doubts_are_remembered_and_of_others_that_they_may_have_been(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pending, "_MOST_DOUBTS", 2)
    requests = PendingRequests()
    for moment, number in enumerate((1, 2, 1, 3)):
        request, _ = requests.enter(keyed(number))
        requests.leave(request, ("abandoned", True), float(moment))
    assert [requests.since_doubt(keyed(number), 10.0) for number in (1, 2, 3, 4)] == [8.0, 9.0, 7.0, 9.0]


@pytest.mark.parametrize(
    "outcome", [("record", None), ("error", DeadlineExceeded("no")), ("abandoned", False)]
)
async def test_what_leaves_no_doubt_is_not(outcome: Outcome) -> None:
    requests = PendingRequests()
    request, _ = requests.enter(PAYOUT)
    requests.leave(request, outcome, 1.0)
    requests.leave(request, ("abandoned", True), 2.0)  # it has ended
    assert requests.since_doubt(PAYOUT, 10.0) is None


def test_clients_of_one_clock_share_their_requests_and_others_do_not() -> None:
    class Slotted(JumpingRuntime):
        __hash__ = None  # type: ignore[assignment] # what cannot be kept in a table

    runtime = JumpingRuntime()
    assert pending.of(runtime) is pending.of(runtime)
    assert pending.of(runtime) is not pending.of(JumpingRuntime())
    assert pending.of(Slotted()) is not pending.of(Slotted())


async def joining(
    requests: PendingRequests, run: Any, left: Outcome = ("abandoned", True), call: Any = PAYOUT
) -> asyncio.Task[Any]:
    """A second caller of the payout, after the first one has left that outcome; `run` sends it again."""
    first, _ = requests.enter(PAYOUT)
    second = asyncio.create_task(join(requests, first, JumpingRuntime(), run, begun(call)))
    await asyncio.sleep(0)
    requests.leave(first, left)
    return second


async def test_a_second_caller_that_is_cancelled_leaves_the_doubt() -> None:
    started = asyncio.Event()

    async def run(_: Any) -> Any:
        started.set()
        await asyncio.get_running_loop().create_future()

    second = await joining(PendingRequests(), run)
    await started.wait()
    second.cancel()
    with pytest.raises(asyncio.CancelledError) as stopped:
        await second
    assert isinstance(stopped.value.outcome, OutcomeUnknown)  # type: ignore[attr-defined] # added to it


@pytest.mark.parametrize(
    ("failure", "raised"),
    [(DeadlineExceeded("no"), OutcomeUnknown), (RuntimeError("broken"), RuntimeError)],
    ids=["its deadline", "a fault of our own"],
)
async def test_a_second_caller_that_fails_leaves_the_doubt_and_the_request(
    failure: Exception, raised: type[Exception]
) -> None:
    async def run(_: Any) -> Any:
        raise failure

    requests = PendingRequests()
    with pytest.raises(raised):
        await (await joining(requests, run))
    assert requests.since_doubt(PAYOUT, 5.0) == 5.0
    assert requests.enter(PAYOUT)[1]


async def test_an_outcome_of_another_kind_is_asked_for_afterwards() -> None:
    """The same bytes, but their answer is read as something else."""
    raw = copy(PAYOUT)
    raw.operation = PAYOUT.operation.changed(name="POST /payouts")

    async def run(_: Any) -> Any:
        return "its own"

    assert await (await joining(PendingRequests(), run, ("record", "another"), raw)) == "its own"


async def test_a_write_that_makes_nothing_is_in_no_doubt_when_its_caller_stops_waiting() -> None:
    requests, runtime = PendingRequests(), JumpingRuntime()
    first, _ = requests.enter(REQUERY)

    async def run(_: Any) -> Any:
        raise AssertionError("it is under way")

    with pytest.raises(DeadlineExceeded):
        await join(requests, first, runtime, run, begun(REQUERY, deadline=5.0))
    waiting = asyncio.ensure_future(join(requests, first, runtime, run, begun(REQUERY)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError) as stopped:
        await waiting
    assert not hasattr(stopped.value, "outcome")


async def test_a_loop_that_was_closed_is_not_woken() -> None:
    requests = PendingRequests()
    request, _ = requests.enter(PAYOUT)
    closed = asyncio.new_event_loop()
    request.waiting = [closed.create_future()]
    closed.close()
    requests.leave(request, ("record", None), 0.0)
    assert request.outcome is not None


async def test_a_request_that_ends_while_a_caller_joins_keeps_none_waiting() -> None:
    """On another thread, between the look and the wait; or between two wake-ups."""
    requests, runtime = PendingRequests(), JumpingRuntime()
    request, _ = requests.enter(PAYOUT)
    requests.leave(request, ("record", None), 0.0)
    await pending._wait_once(request, runtime, 60.0)
    assert (request.waiting, runtime.monotonic()) == (None, 0.0)
    woken = asyncio.get_running_loop().create_future()
    pending._wake(woken)
    pending._wake(woken)
    assert woken.done()
