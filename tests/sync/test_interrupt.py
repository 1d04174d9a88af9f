"""Ctrl-C: the call is stopped, and the exception says what became of it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from payments_async._http.types import HTTPRequest, HTTPResponse
from payments_async.errors import OutcomeUnknown, PaymentsError
from payments_async.sandbox import Sandbox, VirtualClock
from payments_sync import Payments
from payments_sync._blocking_call import BlockingCall
from payments_sync._event_loop import Bridge
from tests.sync.scenes import ADDRESS, KEY, Silence, alone, interrupt_main_thread, note, payout, run


class Doorbell(VirtualClock):
    """The sandbox looks at its clock when a request has arrived, whole; the next time, it rings."""

    armed = False

    def now(self) -> float:
        if self.armed:
            self.armed = False
            interrupt_main_thread()
        return super().now()


def outcome(error: BaseException) -> Any:
    return error.outcome  # type: ignore[attr-defined] # what the bridge adds


def test_a_payout_that_was_sent_is_unknown_and_can_be_resolved() -> None:
    clock = Doorbell()
    with Sandbox(clock=clock) as sandbox, Payments(sandbox.api_key, base_url=sandbox.base_url) as client:
        client.payouts.list()
        sandbox.on("payouts.create").respond("hang")
        clock.armed = True
        with pytest.raises(KeyboardInterrupt) as stopped:
            client.payouts.create(**payout("r-1"))
        assert isinstance(outcome(stopped.value), OutcomeUnknown)
        assert "money may have moved" in note(stopped.value)
        assert "client.resolve()" in note(stopped.value)
        assert client.resolve(outcome(stopped.value)).reference == "r-1"
        assert len(sandbox.books.payouts()) == 1


@pytest.mark.parametrize(
    ("call", "sent"),
    [
        (lambda client: client.payouts.create(**payout("r-1")), False),
        (lambda client: client.payouts.list(), True),
    ],
)
def test_a_payout_that_was_not_sent_and_a_read_moved_nothing(call: Any, sent: bool) -> None:
    silence = Silence(interrupt_main_thread, sent=sent)
    with (
        Payments(KEY, base_url=ADDRESS, transport=silence) as client,
        pytest.raises(KeyboardInterrupt) as stopped,
    ):
        call(client)
    assert outcome(stopped.value) is None
    assert note(stopped.value) == "The call was stopped before it could move money; it can be made again."


class Stubborn:
    """A transport that is interrupted and does not let itself be cancelled until `enough` is set."""

    def __init__(self) -> None:
        self.enough = threading.Event()

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        request.sent = True
        interrupt_main_thread()
        while not self.enough.is_set():
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                await asyncio.to_thread(self.enough.wait, 60.0)
        raise asyncio.CancelledError

    async def aclose(self) -> None:
        """There is nothing to close."""


def test_a_call_that_does_not_stop_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("payments_sync._blocking_call.GRACE", 0.01)
    transport = Stubborn()
    with Payments(KEY, base_url=ADDRESS, transport=transport) as client:
        with pytest.raises(KeyboardInterrupt) as stopped:
            client.payouts.create(**payout("r-1"))
        transport.enough.set()
    assert outcome(stopped.value) is None
    assert "had not stopped yet when its caller stopped waiting: money may have moved" in note(stopped.value)


def test_a_second_interruption_ends_the_wait_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    silence = Silence(interrupt_main_thread, sent=True)
    waits: list[BlockingCall[Any]] = []

    def wait_briefly(call: BlockingCall[Any]) -> bool:
        waits.append(call)
        raise KeyboardInterrupt

    with Payments(KEY, base_url=ADDRESS, transport=silence) as client:
        monkeypatch.setattr(BlockingCall, "wait_briefly", wait_briefly)
        with pytest.raises(KeyboardInterrupt) as stopped:
            client.payouts.create(**payout("r-1"))
    assert len(waits) == 1
    assert outcome(stopped.value) is None
    assert "money may have moved" in note(stopped.value)
    assert type(stopped.value.__context__) is KeyboardInterrupt


async def succeed() -> str:
    return "record"


async def nothing() -> None:
    """What there is to close."""


async def fail_definitely() -> str:
    raise PaymentsError("refused")


async def fail_afterwards() -> str:
    raise PaymentsError("unreadable", effect="happened")


@pytest.mark.parametrize(
    ("ending", "result", "shown"),
    [
        (succeed, "record", "its record is in .result"),
        (fail_definitely, None, "before it could move money"),
        (fail_afterwards, None, "just failed, and money may have moved: unreadable"),
    ],
)
def test_an_interruption_just_after_the_end_says_how_it_ended(
    ending: Any, result: str | None, shown: str
) -> None:
    call: BlockingCall[str] = BlockingCall(ending, (), {})
    asyncio.run(alone(call))
    stopped = KeyboardInterrupt()
    call.annotate(stopped, ended=call.wait_briefly())
    assert stopped.result == result  # type: ignore[attr-defined] # what the bridge adds
    assert shown in note(stopped)


def test_a_call_cancelled_before_it_began_never_runs() -> None:
    ran: list[int] = []

    async def work() -> None:
        ran.append(1)

    call: BlockingCall[None] = BlockingCall(work, (), {})
    call.cancel()
    call.cancel()
    asyncio.run(alone(call))
    assert ran == []
    assert call.wait_briefly()
    with pytest.raises(PaymentsError, match="before it could move money"):
        call.result()


def interruption_of(ending: Any, monkeypatch: pytest.MonkeyPatch) -> BaseException:
    """What leaves a call whose wait, or handing over, was patched to be interrupted."""
    bridge = Bridge(nothing)
    with pytest.raises(KeyboardInterrupt) as stopped:
        bridge.call(ending)
    monkeypatch.undo()  # closing is a call, too
    bridge.close()
    return stopped.value


def test_an_interruption_seen_when_the_wait_is_over_says_how_the_call_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between the end of the wait and the next line of Python, signals are handled once more."""
    wait = BlockingCall.wait

    def wait_and_be_interrupted(call: BlockingCall[Any]) -> None:
        wait(call)
        raise KeyboardInterrupt

    monkeypatch.setattr(BlockingCall, "wait", wait_and_be_interrupted)
    stopped = interruption_of(succeed, monkeypatch)
    assert stopped.result == "record"  # type: ignore[attr-defined] # what the bridge adds
    assert "its record is in .result" in note(stopped)


@pytest.mark.parametrize(
    ("ending", "result", "shown"),
    [
        (succeed, "record", "its record is in .result"),
        (fail_afterwards, None, "just failed, and money may have moved: unreadable"),
    ],
)
@pytest.mark.parametrize("late", [False, True])
def test_an_interruption_of_the_handing_over_says_how_the_call_ended(
    ending: Any, result: str | None, shown: str, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signals are handled whenever a function begins, and before an exception leaves one."""
    hand_over = BlockingCall.result

    def interrupted(call: BlockingCall[Any]) -> Any:
        if late:
            with contextlib.suppress(PaymentsError):
                hand_over(call)
        raise KeyboardInterrupt

    monkeypatch.setattr(BlockingCall, "result", interrupted)
    stopped = interruption_of(ending, monkeypatch)
    assert stopped.result == result  # type: ignore[attr-defined] # what the bridge adds
    assert shown in note(stopped)


def test_a_long_wait_is_made_of_short_ones() -> None:
    slices = MagicMock(side_effect=[False, False, True])
    call: BlockingCall[str] = BlockingCall(succeed, (), {})
    call._done = SimpleNamespace(acquire=slices)  # type: ignore[assignment] # what a wait uses of a lock
    call.over = True
    call.wait()
    assert slices.call_count == 3
    assert {call.args for call in slices.call_args_list} == {(True, 0.2)}


SENT = """
import logging, sys
logging.getLogger("payments").addHandler(logging.StreamHandler(sys.stdout))
from payments_sync import Payments
from tests.sync.scenes import ADDRESS, KEY, Silence, interrupt_main_thread, payout

client = Payments(KEY, base_url=ADDRESS, transport=Silence(interrupt_main_thread, sent=True))
try:
    client.payouts.create(**payout("r-1"), idempotency_key="key-00001")
except KeyboardInterrupt as stopped:
    print(type(stopped.outcome).__name__, stopped.outcome.reference, len(stopped.__notes__))
"""


def test_in_a_process_of_its_own_a_sent_call_is_unknown_and_the_exit_is_clean() -> None:
    warning, shown = run(SENT).splitlines()
    assert warning.startswith("payouts.create was cancelled after it had been sent")
    assert warning.endswith("its idempotency key is key-00001")
    assert shown == "OutcomeUnknown r-1 1"
