"""The line in front of a meter: order, deadlines, cancellation, and several event loops at once."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import threading
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from payments_async._rate_limit.bucket import ORDINARY, TokenBucket
from payments_async._rate_limit.limiter import LimiterTimeout, RateLimiter
from payments_async._rate_limit.limits import LimitSnapshot
from payments_async._rate_limit.waiters import Priority
from payments_async._runtime import SYSTEM, Timer
from tests.support.simulated import SimulatedRuntime, run_simulated

Answer = concurrent.futures.Future[int]


class CountingRuntime(SimulatedRuntime):
    """Counts the timers that are set."""

    timers = 0

    def call_later(self, delay: float, callback: Any) -> Timer:
        self.timers += 1
        return super().call_later(delay, callback)


def simulated(main: Coroutine[Any, Any, None]) -> None:
    run_simulated(main)


def full_gate(places: int) -> tuple[RateLimiter, list[int]]:
    """A gate with everything under way: a place gets free only when a grant is put back."""
    gate = RateLimiter(TokenBucket(places, places))
    return gate, [gate.try_enter(SYSTEM.monotonic()) for _ in range(places)]


async def settle_down() -> None:
    """Let every task that can run come to rest."""
    for _ in range(5):
        await asyncio.sleep(0)


# --- Passing and waiting -----------------------------------------------------------------------------


def test_with_room_and_nobody_waiting_a_caller_passes_at_once() -> None:
    assert RateLimiter(TokenBucket(60, 2)).try_enter(0.0) == ORDINARY


def test_without_room_a_caller_is_told_how_long_to_wait() -> None:
    gate = RateLimiter(TokenBucket(60, 1))
    gate.try_enter(0.0)
    assert gate.try_enter(0.0) == 0
    assert gate.wait(0.0) == pytest.approx(1.0, abs=0.02)


def test_callers_in_line_go_at_the_pace_of_the_meter() -> None:
    async def main() -> None:
        runtime, gate = SimulatedRuntime(), RateLimiter(TokenBucket(600, 1))
        for _ in range(11):
            assert await gate.enter(runtime) == ORDINARY
        assert runtime.monotonic() == pytest.approx(1.0, abs=0.05)

    simulated(main())


def test_a_newcomer_does_not_overtake_who_stands_in_line() -> None:
    async def main() -> None:
        runtime, gate = SimulatedRuntime(), RateLimiter(TokenBucket(60, 1))
        gate.try_enter(0.0)
        waiting = asyncio.create_task(gate.enter(runtime))
        await settle_down()
        assert gate.try_enter(5.0) == 0
        await waiting

    simulated(main())


def test_interactive_callers_go_before_bulk_and_each_first_come_first_served() -> None:
    async def main() -> None:
        runtime, gate = SimulatedRuntime(), RateLimiter(TokenBucket(60, 1))
        gate.try_enter(0.0)
        served: list[str] = []

        async def call(name: str, priority: Priority) -> None:
            await gate.enter(runtime, priority=priority)
            served.append(name)

        async with asyncio.TaskGroup() as group:
            for name in ("b1", "i1", "b2", "i2", "b3", "i3"):
                group.create_task(call(name, "bulk" if name[0] == "b" else "interactive"))
        assert served == ["i1", "i2", "i3", "b1", "b2", "b3"]

    simulated(main())


def test_a_loop_keeps_one_timer_however_many_wait() -> None:
    async def main() -> None:
        runtime, gate = CountingRuntime(), RateLimiter(TokenBucket(60, 1))
        gate.try_enter(0.0)
        tasks = [asyncio.create_task(gate.enter(runtime)) for _ in range(500)]
        await settle_down()
        assert runtime.timers == 1
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    simulated(main())


def test_a_timer_is_no_finer_than_two_milliseconds_and_bursts_make_up_for_it() -> None:
    async def main() -> None:
        runtime, gate = CountingRuntime(), RateLimiter(TokenBucket(60_000, 100))
        async with asyncio.TaskGroup() as group:
            for _ in range(2_100):
                group.create_task(gate.enter(runtime))
        assert runtime.monotonic() == pytest.approx(2.0, abs=0.01)
        assert runtime.timers <= 1_001

    simulated(main())


# --- Deadlines ---------------------------------------------------------------------------------------


def test_a_caller_whose_time_runs_out_in_line_gets_no_grant_and_keeps_no_place() -> None:
    async def main() -> None:
        runtime, gate = SimulatedRuntime(), RateLimiter(TokenBucket(60, 1))
        gate.try_enter(0.0)
        with pytest.raises(LimiterTimeout):
            await gate.enter(runtime, until=0.25)
        assert runtime.monotonic() == pytest.approx(0.25)
        assert gate.snapshot(0.25).used == 1
        assert gate.try_enter(1.0) == ORDINARY

    simulated(main())


def test_a_caller_whose_time_is_up_does_not_enter_even_where_there_is_room() -> None:
    async def main() -> None:
        gate = RateLimiter(TokenBucket(60, 1))
        with pytest.raises(LimiterTimeout):
            await gate.enter(SimulatedRuntime(), until=0.0)
        assert gate.snapshot(0.0).used == 0

    simulated(main())


def test_each_caller_waits_to_its_own_deadline_and_the_patient_go_on() -> None:
    async def main() -> None:
        runtime, gate = SimulatedRuntime(), RateLimiter(TokenBucket(60, 1))
        gate.try_enter(0.0)
        ended: dict[str, tuple[str, float]] = {}

        async def call(name: str, until: float | None) -> None:
            try:
                await gate.enter(runtime, until=until)
                outcome = "in"
            except LimiterTimeout:
                outcome = "out"
            ended[name] = (outcome, round(runtime.monotonic(), 1))

        async with asyncio.TaskGroup() as group:
            for name, until in (("a", 0.5), ("b", None), ("c", 0.3), ("d", 9.0), ("e", 1.5)):
                group.create_task(call(name, until))
        assert ended == {
            "c": ("out", 0.3),
            "a": ("out", 0.5),
            "b": ("in", 1.0),
            "e": ("out", 1.5),
            "d": ("in", 2.0),
        }

    simulated(main())


def test_a_deadline_earlier_than_the_next_grant_moves_the_timer_forward() -> None:
    async def main() -> None:
        runtime, gate = SimulatedRuntime(), RateLimiter(TokenBucket(1, 1))
        gate.try_enter(0.0)
        patient = asyncio.create_task(gate.enter(runtime))
        await settle_down()
        with pytest.raises(LimiterTimeout):
            await gate.enter(runtime, until=3.0)
        assert runtime.monotonic() == pytest.approx(3.0)
        patient.cancel()

    simulated(main())


# --- Cancellation ------------------------------------------------------------------------------------


def test_a_cancelled_caller_leaves_the_line() -> None:
    async def main() -> None:
        runtime, gate = SimulatedRuntime(), RateLimiter(TokenBucket(60, 1))
        gate.try_enter(0.0)
        gone, stays = (asyncio.create_task(gate.enter(runtime)) for _ in range(2))
        await settle_down()
        gone.cancel()
        await stays
        assert gone.cancelled()
        assert runtime.monotonic() == pytest.approx(1.0, abs=0.02)
        assert gate.snapshot(1.0).used == 2

    simulated(main())


def test_a_grant_given_to_a_caller_that_is_cancelled_at_that_moment_goes_to_the_next() -> None:
    async def main() -> None:
        runtime = SimulatedRuntime()
        gate = RateLimiter(TokenBucket(1, 1))
        held = gate.try_enter(0.0)
        gone, following = (asyncio.create_task(gate.enter(runtime)) for _ in range(2))
        await settle_down()
        gate.put_back(held)
        await asyncio.sleep(0)
        assert gate.snapshot(0.0).used == 1
        assert not gone.done()
        gone.cancel()
        assert await following == ORDINARY
        assert gone.cancelled()
        assert gate.snapshot(0.0).used == 1

    simulated(main())


def test_when_the_last_waiter_is_cancelled_the_gate_is_free_of_it() -> None:
    async def main() -> None:
        runtime, gate = SimulatedRuntime(), RateLimiter(TokenBucket(1, 1))
        held = gate.try_enter(0.0)
        task = asyncio.create_task(gate.enter(runtime))
        await settle_down()
        assert not gate.idle(0.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        gate.put_back(held)
        assert gate.idle(0.0)

    simulated(main())


# --- Answers, refusals, other figures ----------------------------------------------------------------


def test_the_probes_answer_wakes_the_line_at_once() -> None:
    async def main() -> None:
        runtime, gate = SimulatedRuntime(), RateLimiter(TokenBucket(600, 10))
        gate.refused(gate.try_enter(0.0), 0.0, 5.0)
        probe = await gate.enter(runtime)
        assert probe > ORDINARY
        assert runtime.monotonic() == pytest.approx(5.0)
        waiting = [asyncio.create_task(gate.enter(runtime)) for _ in range(3)]
        await runtime.sleep(0.3)
        assert not any(task.done() for task in waiting)
        gate.leave(probe, runtime.monotonic())
        assert await asyncio.gather(*waiting) == [ORDINARY] * 3
        assert runtime.monotonic() == pytest.approx(5.3)

    simulated(main())


def test_after_a_probe_that_got_no_answer_the_next_in_line_is_the_probe() -> None:
    async def main() -> None:
        runtime, gate = SimulatedRuntime(), RateLimiter(TokenBucket(600, 10))
        gate.refused(gate.try_enter(0.0), 0.0, 1.0)
        probe = await gate.enter(runtime)
        waiting = [asyncio.create_task(gate.enter(runtime)) for _ in range(2)]
        await settle_down()
        gate.leave(probe, runtime.monotonic(), answered=False)
        await settle_down()
        assert [task.done() for task in waiting] == [True, False]
        gate.leave(waiting[0].result(), runtime.monotonic())
        await waiting[1]

    simulated(main())


def test_a_refusal_holds_the_line_for_the_time_it_named() -> None:
    async def main() -> None:
        runtime, gate = SimulatedRuntime(), RateLimiter(TokenBucket(60, 1))
        first = gate.try_enter(0.0)
        task = asyncio.create_task(gate.enter(runtime))
        await settle_down()
        gate.refused(first, 0.0, 30.0)
        await task
        assert runtime.monotonic() == pytest.approx(30.0, abs=0.01)

    simulated(main())


def test_an_answer_that_brings_nothing_leaves_the_line_as_it_is() -> None:
    async def main() -> None:
        runtime, gate = SimulatedRuntime(), RateLimiter(TokenBucket(60, 1))
        grant = gate.try_enter(0.0)
        task = asyncio.create_task(gate.enter(runtime))
        await settle_down()
        gate.leave(grant, 0.0)
        await settle_down()
        assert not task.done()
        await task
        assert runtime.monotonic() == pytest.approx(1.0, abs=0.02)

    simulated(main())


def test_a_higher_limit_lets_the_line_go() -> None:
    async def main() -> None:
        runtime, gate = SimulatedRuntime(), RateLimiter(TokenBucket(1, 1))
        gate.try_enter(0.0)
        task = asyncio.create_task(gate.enter(runtime))
        await runtime.sleep(1.0)
        gate.resize(60_000, 1_000_000)
        await task
        assert runtime.monotonic() == pytest.approx(1.0)
        assert gate.snapshot(1.0) == LimitSnapshot(60_000, 2, 59_998, 0.0)

    simulated(main())


# --- Several event loops -----------------------------------------------------------------------------


class Elsewhere:
    """An event loop that runs in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()

    def line_up(self, gate: RateLimiter, priority: Priority = "interactive") -> Answer:
        """Stand in line over there; back as soon as it does."""
        entered: Answer = concurrent.futures.Future()

        async def stand() -> None:
            task = asyncio.create_task(gate.enter(SYSTEM, priority=priority))
            task.add_done_callback(lambda done: entered.set_result(done.result()))
            await asyncio.sleep(0)

        self.run(stand())
        return entered

    def run(self, main: Coroutine[Any, Any, None]) -> None:
        """Have it done over there."""
        asyncio.run_coroutine_threadsafe(main, self.loop).result(10)


@contextmanager
def running_elsewhere() -> Iterator[Elsewhere]:
    elsewhere = Elsewhere()
    thread = threading.Thread(target=elsewhere.loop.run_forever)
    thread.start()
    try:
        yield elsewhere
    finally:
        elsewhere.loop.call_soon_threadsafe(elsewhere.loop.stop)
        thread.join(10)
        elsewhere.loop.close()


def test_two_loops_in_two_threads_stand_in_one_line() -> None:
    gate, grants = full_gate(8)
    with ExitStack() as stack:
        loops = [stack.enter_context(running_elsewhere()) for _ in range(2)]
        entered = [loops[number % 2].line_up(gate) for number in range(8)]
        for number, grant in enumerate(grants):
            gate.put_back(grant)
            assert entered[number].result(10) == ORDINARY
            assert not any(later.done() for later in entered[number + 1 :])


def test_interactive_callers_of_one_loop_go_before_bulk_ones_of_another() -> None:
    gate, grants = full_gate(2)
    with running_elsewhere() as one, running_elsewhere() as other:
        bulk = one.line_up(gate, "bulk")
        interactive = other.line_up(gate)
        gate.put_back(grants[0])
        assert interactive.result(10)
        assert not bulk.done()
        gate.put_back(grants[1])
        assert bulk.result(10)


def test_an_answer_on_one_loop_wakes_a_caller_on_another() -> None:
    """The other loop would look by itself only a second later, while a probe is out."""
    gate = RateLimiter(TokenBucket(60_000, 1_000))
    gate.refused(gate.try_enter(0.0), 0.0, 1.0)
    now = SYSTEM.monotonic()
    probe = gate.try_enter(now)
    with running_elsewhere() as elsewhere:
        entered = elsewhere.line_up(gate)
        gate.leave(probe, now)
        assert entered.result(0.9) == ORDINARY


def test_a_loop_with_waiters_is_called_when_another_learns_that_they_may_go_sooner() -> None:
    """The answer opens the gate and an empty bucket: the other loop has to set its timer anew."""
    gate = RateLimiter(TokenBucket(600, 1))
    now = SYSTEM.monotonic()
    gate.refused(gate.try_enter(now - 10.0), now - 10.0, 10.0)
    probe = gate.try_enter(now)
    assert probe > ORDINARY
    with running_elsewhere() as elsewhere:
        entered = elsewhere.line_up(gate)
        gate.leave(probe, now)
        assert entered.result(0.9) == ORDINARY


def test_a_grant_on_its_way_from_another_thread_to_a_caller_just_cancelled_goes_to_the_next() -> None:
    async def main() -> None:
        now = SYSTEM.monotonic()
        probe = gate.try_enter(now)
        gone, following = await stand(gate), await stand(gate)
        answering = threading.Thread(target=gate.leave, args=(probe, now))
        answering.start()
        answering.join(10)
        gone.cancel()
        assert await following == ORDINARY
        assert gone.cancelled()
        assert gate.snapshot(SYSTEM.monotonic()).used == 2

    gate = RateLimiter(TokenBucket(2, 2))
    gate._meter.close(0.0, 0.0)
    asyncio.run(main())


async def stand(gate: RateLimiter) -> asyncio.Task[int]:
    """A caller that stands in line when this returns."""
    task = asyncio.create_task(gate.enter(SYSTEM))
    await asyncio.sleep(0)
    return task


class Pretending(asyncio.SelectorEventLoop):
    """A loop that can say it runs when it does not."""

    pretends = False

    def is_running(self) -> bool:
        return self.pretends or super().is_running()


@pytest.fixture
def other_loop() -> Iterator[Pretending]:
    """A loop that stands still between two runs."""
    loop = Pretending()
    loop.set_exception_handler(lambda *_: None)  # it would report tasks that never end
    yield loop
    loop.pretends = False
    loop.close()


def test_a_closed_loop_does_not_block_the_others(other_loop: Pretending) -> None:
    async def main() -> None:
        waiting = await stand(gate)
        gate.put_back(held)
        gate.put_back(await waiting)

    gate, (held,) = full_gate(1)
    forgotten = other_loop.run_until_complete(stand(gate))
    other_loop.close()
    asyncio.run(main())
    assert not forgotten.done()
    assert gate.idle(SYSTEM.monotonic())


def test_a_caller_forgotten_with_its_loop_gives_nothing_back_twice(other_loop: Pretending) -> None:
    gate, (held,) = full_gate(1)
    forgotten = other_loop.run_until_complete(stand(gate))
    other_loop.close()
    gate.put_back(held)
    assert asyncio.run(gate.enter(SYSTEM)) == ORDINARY
    del forgotten
    gc.collect()
    assert gate.snapshot(SYSTEM.monotonic()).used == 1


def test_a_grant_that_a_dead_loop_never_took_is_given_back_with_its_caller(other_loop: Pretending) -> None:
    async def main() -> None:
        other_loop.pretends = True
        gate.put_back(held)
        with pytest.raises(LimiterTimeout):
            await gate.enter(SYSTEM, until=SYSTEM.monotonic() + 0.01)

    gate, (held,) = full_gate(1)
    forgotten = other_loop.run_until_complete(stand(gate))
    asyncio.run(main())
    assert gate.snapshot(SYSTEM.monotonic()).used == 1
    other_loop.pretends = False
    other_loop.close()
    del forgotten
    gc.collect()
    assert gate.snapshot(SYSTEM.monotonic()).used == 0


def test_a_loop_that_stands_still_is_passed_over_until_it_runs_again(other_loop: Pretending) -> None:
    async def main() -> None:
        waiting = await stand(gate)
        gate.put_back(grants[0])
        assert await waiting == ORDINARY

    gate, grants = full_gate(2)
    asleep = other_loop.run_until_complete(stand(gate))
    asyncio.run(main())
    assert not asleep.done()
    gate.put_back(grants[1])
    assert other_loop.run_until_complete(asleep) == ORDINARY
    assert gate.snapshot(SYSTEM.monotonic()).used == 2


def test_who_is_cancelled_while_passed_over_does_not_come_back(other_loop: Pretending) -> None:
    """Here nothing but the loop's own timer, long due, calls it back."""
    gate = RateLimiter(TokenBucket(6_000, 1))
    gate.try_enter(SYSTEM.monotonic())
    cancelled, asleep = (other_loop.run_until_complete(stand(gate)) for _ in range(2))
    assert asyncio.run(gate.enter(SYSTEM)) == ORDINARY
    cancelled.cancel()
    assert other_loop.run_until_complete(asleep) == ORDINARY
    assert cancelled.cancelled()
    assert gate.snapshot(SYSTEM.monotonic()).used == 3


def test_a_loop_closed_at_the_moment_of_its_grant_does_not_take_it_along(other_loop: Pretending) -> None:
    async def main() -> None:
        gate.put_back(held)
        assert await gate.enter(SYSTEM) == ORDINARY

    gate, (held,) = full_gate(1)
    other_loop.run_until_complete(stand(gate))
    other_loop.close()
    other_loop.pretends = True
    asyncio.run(main())
    assert gate.snapshot(SYSTEM.monotonic()).used == 1


def test_thirty_two_threads_share_one_gate_and_lose_no_grant() -> None:
    gate = RateLimiter(TokenBucket(1_000_000, 100))
    rounds, threads = 50, 32
    ready = threading.Barrier(threads)

    async def call() -> None:
        for number in range(rounds):
            grant = gate.try_enter(SYSTEM.monotonic()) or await gate.enter(SYSTEM)
            await asyncio.sleep(0)
            if number % 5 == 4:
                gate.put_back(grant)
            else:
                gate.leave(grant, SYSTEM.monotonic())

    def work() -> None:
        ready.wait(10)
        asyncio.run(call())

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work) for _ in range(threads)]:
            done.result(30)
    now = SYSTEM.monotonic()
    assert gate.snapshot(now).used == threads * rounds * 4 // 5
    assert gate.idle(now + 61.0)
