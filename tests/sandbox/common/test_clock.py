"""Sandbox time: frozen, fast or real, always able to skip ahead."""

from __future__ import annotations

import asyncio
import json
import threading
from types import SimpleNamespace

import pytest

from payments_async.sandbox import Sandbox, VirtualClock
from tests.sandbox.raw_requests import Api


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The machine's monotonic time, moved by hand."""
    present = [1000.0]
    monkeypatch.setattr("payments_async.sandbox._common.clock.real_seconds", lambda: present[0])
    monkeypatch.setattr("payments_async.sandbox._common.clock.time", SimpleNamespace(time=lambda: 5.0))
    return present


def test_a_frozen_clock_stands_still_until_it_is_advanced(machine: list[float]) -> None:
    clock = VirtualClock.frozen()
    machine[0] += 50
    assert clock.now() == 1_767_225_600.0
    clock.advance(1.5)
    assert clock.now() == 1_767_225_600.0 + 1.5


@pytest.mark.parametrize("speed", [1.0, 60.0, 0.5])
def test_a_running_clock_has_its_speed_and_can_be_advanced_too(machine: list[float], speed: float) -> None:
    clock = VirtualClock(0, speed=speed)
    machine[0] += 10
    assert clock.now() == 10 * speed
    clock.advance(5)
    assert clock.now() == 10 * speed + 5


def test_time_does_not_go_back(machine: list[float]) -> None:
    with pytest.raises(ValueError, match="back"):
        VirtualClock.frozen().advance(-1)
    with pytest.raises(ValueError, match="speed"):
        VirtualClock(speed=-1)


async def test_a_sleeper_on_a_frozen_clock_wakes_when_enough_has_passed() -> None:
    clock = VirtualClock.frozen()
    sleeper = asyncio.create_task(clock.sleep(10))
    await asyncio.sleep(0)
    clock.advance(9)
    for _ in range(5):
        await asyncio.sleep(0)
    assert not sleeper.done()
    thread = threading.Thread(target=clock.advance, args=(1,))
    thread.start()
    await asyncio.wait_for(sleeper, 300)
    thread.join()
    assert clock._wakers == {}


async def test_a_sleeper_who_gives_up_leaves_nothing_behind() -> None:
    clock = VirtualClock(0, speed=1.0)
    sleeper = asyncio.create_task(clock.sleep(1000))
    await asyncio.sleep(0)
    sleeper.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeper
    assert clock._wakers == {}


def test_a_sandbox_takes_any_clock_and_never_goes_back_with_it() -> None:
    class Jumpy:
        present = 100.0

        def now(self) -> float:
            return self.present

        def advance(self, seconds: float) -> None:
            self.present += seconds

        async def sleep(self, seconds: float) -> None:
            raise NotImplementedError

    clock = Jumpy()
    sandbox = Sandbox(clock=clock)
    api = Api(sandbox, sandbox.api_key)
    api.payout()
    clock.present = 50.0
    api.payout()
    assert [entry.created_at for entry in sandbox.books.payouts()] == [100.0, 100.0]
    state = json.loads(sandbox.handle("GET", "/_sandbox/api/state").body)
    assert state["clock"]["speed"] is None
    kind = {"Content-Type": "application/json"}
    assert sandbox.handle("POST", "/_sandbox/api/clock/speed", kind, b'{"speed": 0}').status == 409


def test_a_clock_changes_speed_without_a_jump() -> None:
    clock = VirtualClock.frozen(100.0)
    clock.set_speed(1_000_000)
    assert clock.speed == 1_000_000
    before = clock.now()
    assert before >= 100.0
    clock.set_speed(0)
    stands = clock.now()
    assert stands >= before
    assert clock.now() == stands


@pytest.mark.parametrize("speed", [-1.0, float("nan"), float("inf")])
def test_a_speed_that_is_none_is_refused(speed: float) -> None:
    with pytest.raises(ValueError, match="speed"):
        VirtualClock.frozen().set_speed(speed)


async def test_a_sleeper_of_a_frozen_clock_wakes_when_the_clock_runs_again() -> None:
    clock = VirtualClock.frozen()
    sleeping = asyncio.create_task(clock.sleep(60))
    await asyncio.sleep(0)
    clock.set_speed(1_000_000)
    await asyncio.wait_for(sleeping, 300)
