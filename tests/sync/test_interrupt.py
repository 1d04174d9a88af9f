"""Ctrl-C: the call is stopped, and the exception says what became of it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from payments_async.errors import OutcomeUnknown, PaymentsError
from payments_async.sandbox import Sandbox, VirtualClock
from payments_sync import Payments
from tests.support.scripted import HTTPRequest, HTTPResponse
from tests.sync.conftest import BlockingCall, Bridge
from tests.sync.scenes import ADDRESS, KEY, Silence, alone, interrupt_main_thread, note, nothing, payout


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


async def fail_definitely() -> str:
    raise PaymentsError("refused")


async def fail_afterwards() -> str:
    raise PaymentsError("unreadable", effect="happened")


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


@pytest.mark.parametrize(
    ("ending", "result", "shown"),
    [
        (succeed, "record", "its record is in .result"),
        (fail_definitely, None, "before it could move money"),
        (fail_afterwards, None, "just failed, and money may have moved: unreadable"),
    ],
)
@pytest.mark.parametrize(("moment", "late"), [("wait", True), ("result", False), ("result", True)])
def test_an_interruption_of_the_handing_over_says_how_the_call_ended(
    ending: Any, result: str | None, shown: str, moment: str, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signals are handled whenever a function begins, after it ended, and before an exception leaves it."""
    step = getattr(BlockingCall, moment)

    def interrupted(call: BlockingCall[Any]) -> Any:
        if late:
            with contextlib.suppress(PaymentsError):
                step(call)
        raise KeyboardInterrupt

    bridge = Bridge(nothing)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt) as stopped:
        patched.setattr(BlockingCall, moment, interrupted)
        bridge.call(ending)
    bridge.close()  # closing is a call, too
    assert stopped.value.result == result  # type: ignore[attr-defined] # what the bridge adds
    assert shown in note(stopped.value)


def test_a_long_wait_is_made_of_short_ones() -> None:
    slices = MagicMock(side_effect=[False, False, True])
    call: BlockingCall[str] = BlockingCall(succeed, (), {})
    call._done = SimpleNamespace(acquire=slices)  # type: ignore[assignment] # what a wait uses of a lock
    call.over = True
    call.wait()
    assert slices.call_count == 3
    assert {call.args for call in slices.call_args_list} == {(True, 0.2)}
