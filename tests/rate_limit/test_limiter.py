"""The queue at a rate limiter: order, deadlines, cancellation, and several event loops at once."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from payments_async._rate_limit.limiter import ORDINARY, LimiterTimeout, RateLimiter, TokenBucket
from payments_async._rate_limit.limits import LimitSnapshot
from payments_async._rate_limit.waiters import Priority
from payments_async._runtime import SYSTEM, SystemRuntime, Timer
from tests.support.simulated import SimulatedRuntime, simulated


def full_limiter(places: int) -> tuple[RateLimiter, list[int]]:
    """A limiter with everything under way: a place gets free only when a grant is put back."""
    limiter = RateLimiter(TokenBucket(places, places))
    return limiter, [limiter.try_acquire(SYSTEM.monotonic()) for _ in range(places)]


async def settle_down() -> None:
    """Let every task that can run come to rest."""
    for _ in range(5):
        await asyncio.sleep(0)


# --- Passing and waiting -----------------------------------------------------------------------------


@simulated
async def test_a_newcomer_does_not_overtake_the_queue() -> None:
    runtime, limiter = SimulatedRuntime(), RateLimiter(TokenBucket(60, 1))
    limiter.try_acquire(0.0)
    waiting = asyncio.create_task(limiter.acquire(runtime))
    await settle_down()
    assert limiter.try_acquire(5.0) == 0
    await waiting


@simulated
async def test_interactive_callers_go_before_bulk_and_each_first_come_first_served() -> None:
    runtime, limiter = SimulatedRuntime(), RateLimiter(TokenBucket(60, 1))
    limiter.try_acquire(0.0)
    served: list[str] = []

    async def call(name: str, priority: Priority) -> None:
        await limiter.acquire(runtime, priority=priority)
        served.append(name)

    async with asyncio.TaskGroup() as group:
        for name in ("b1", "i1", "b2", "i2", "b3", "i3"):
            group.create_task(call(name, "bulk" if name[0] == "b" else "interactive"))
    assert served == ["i1", "i2", "i3", "b1", "b2", "b3"]


@simulated
async def test_a_loop_keeps_one_timer_however_many_wait() -> None:
    runtime, limiter = SimulatedRuntime(), RateLimiter(TokenBucket(60, 1))
    limiter.try_acquire(0.0)
    tasks = [asyncio.create_task(limiter.acquire(runtime)) for _ in range(500)]
    await settle_down()
    assert runtime.timers == 1
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@simulated
async def test_a_timer_is_no_finer_than_two_milliseconds_and_bursts_make_up_for_it() -> None:
    runtime, limiter = SimulatedRuntime(), RateLimiter(TokenBucket(60_000, 100))
    async with asyncio.TaskGroup() as group:
        for _ in range(2_100):
            group.create_task(limiter.acquire(runtime))
    assert runtime.monotonic() == pytest.approx(2.0, abs=0.01)
    assert runtime.timers <= 1_001


# --- Deadlines ---------------------------------------------------------------------------------------


@simulated
async def test_a_caller_whose_time_is_up_does_not_enter_even_where_there_is_room() -> None:
    limiter = RateLimiter(TokenBucket(60, 1))
    with pytest.raises(LimiterTimeout):
        await limiter.acquire(SimulatedRuntime(), until=0.0)
    assert limiter.snapshot(0.0).used == 0


@simulated
async def test_each_caller_waits_to_its_own_deadline_and_the_patient_go_on() -> None:
    runtime, limiter = SimulatedRuntime(), RateLimiter(TokenBucket(60, 1))
    limiter.try_acquire(0.0)
    ended: dict[str, tuple[str, float]] = {}

    async def call(name: str, until: float | None) -> None:
        try:
            await limiter.acquire(runtime, until=until)
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
    assert limiter.snapshot(2.0).used == 3


# --- Cancellation ------------------------------------------------------------------------------------


@simulated
async def test_a_cancelled_caller_leaves_the_line() -> None:
    runtime, limiter = SimulatedRuntime(), RateLimiter(TokenBucket(60, 1))
    held = limiter.try_acquire(0.0)
    gone, stays = (asyncio.create_task(limiter.acquire(runtime)) for _ in range(2))
    await settle_down()
    gone.cancel()
    granted = await stays
    assert gone.cancelled()
    assert runtime.monotonic() == pytest.approx(1.0, abs=0.02)
    assert limiter.snapshot(1.0).used == 2
    last = asyncio.create_task(limiter.acquire(runtime))
    await settle_down()
    assert not limiter.idle(1_000.0)
    last.cancel()
    await asyncio.gather(last, return_exceptions=True)
    for grant in (granted, held):
        limiter.put_back(grant)
    assert limiter.idle(1.0)


@simulated
async def test_a_grant_given_to_a_caller_that_is_cancelled_at_that_moment_goes_to_the_next() -> None:
    runtime = SimulatedRuntime()
    limiter = RateLimiter(TokenBucket(1, 1))
    held = limiter.try_acquire(0.0)
    gone, following = (asyncio.create_task(limiter.acquire(runtime)) for _ in range(2))
    await settle_down()
    limiter.put_back(held)
    await asyncio.sleep(0)
    assert limiter.snapshot(0.0).used == 1
    assert not gone.done()
    gone.cancel()
    assert await following == ORDINARY
    assert gone.cancelled()
    assert limiter.snapshot(0.0).used == 1


# --- Answers, refusals, other figures ----------------------------------------------------------------


@simulated
async def test_the_probes_answer_wakes_the_line_at_once() -> None:
    runtime, limiter = SimulatedRuntime(), RateLimiter(TokenBucket(600, 10))
    limiter.close_after_429(limiter.try_acquire(0.0), 0.0, 5.0)
    probe = await limiter.acquire(runtime)
    assert probe > ORDINARY
    assert runtime.monotonic() == pytest.approx(5.0)
    waiting = [asyncio.create_task(limiter.acquire(runtime)) for _ in range(3)]
    await runtime.sleep(0.3)
    assert not any(task.done() for task in waiting)
    limiter.release(probe, runtime.monotonic())
    assert await asyncio.gather(*waiting) == [ORDINARY] * 3
    assert runtime.monotonic() == pytest.approx(5.3)


@simulated
async def test_after_a_probe_that_got_no_answer_the_next_in_line_is_the_probe() -> None:
    runtime, limiter = SimulatedRuntime(), RateLimiter(TokenBucket(600, 10))
    limiter.close_after_429(limiter.try_acquire(0.0), 0.0, 1.0)
    probe = await limiter.acquire(runtime)
    waiting = [asyncio.create_task(limiter.acquire(runtime)) for _ in range(2)]
    await settle_down()
    limiter.release(probe, runtime.monotonic(), answered=False)
    await settle_down()
    assert [task.done() for task in waiting] == [True, False]
    limiter.release(waiting[0].result(), runtime.monotonic())
    await waiting[1]


@simulated
async def test_a_higher_limit_lets_the_line_go() -> None:
    runtime, limiter = SimulatedRuntime(), RateLimiter(TokenBucket(1, 1))
    limiter.try_acquire(0.0)
    task = asyncio.create_task(limiter.acquire(runtime))
    await runtime.sleep(1.0)
    limiter.resize(60_000, 1_000_000)
    await task
    assert runtime.monotonic() == pytest.approx(1.0)
    assert limiter.snapshot(1.0) == LimitSnapshot(60_000, 2, 59_998, 0.0)


# --- Several event loops -----------------------------------------------------------------------------


class Unhurried(SystemRuntime):
    """A clock whose longer timers do not ring: only a call from elsewhere ends a wait of half a second."""

    def call_later(self, delay: float, callback: Callable[[], object], *, background: bool = False) -> Timer:
        return super().call_later(delay if delay < 0.5 else 3600.0, callback)


@contextmanager
def running_elsewhere() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that runs in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(300)
        loop.close()


def line_up(
    loop: asyncio.AbstractEventLoop,
    limiter: RateLimiter,
    priority: Priority = "interactive",
    runtime: SystemRuntime = SYSTEM,
) -> concurrent.futures.Future[int]:
    """Wait in the queue on that loop; back as soon as it does."""
    entered = concurrent.futures.Future[int]()

    async def line_up() -> None:
        task = asyncio.create_task(limiter.acquire(runtime, priority=priority))
        task.add_done_callback(lambda done: entered.set_result(done.result()))
        await asyncio.sleep(0)

    asyncio.run_coroutine_threadsafe(line_up(), loop).result(60)
    return entered


def test_two_loops_in_two_threads_stand_in_one_line_in_which_bulk_callers_are_the_last() -> None:
    limiter, grants = full_limiter(8)
    with running_elsewhere() as one, running_elsewhere() as other:
        bulk = line_up(one, limiter, "bulk")
        entered = [line_up((one, other)[number % 2], limiter) for number in range(7)] + [bulk]
        for number, grant in enumerate(grants):
            limiter.put_back(grant)
            assert entered[number].result(60) == ORDINARY
            assert not any(later.done() for later in entered[number + 1 :])


@pytest.mark.parametrize(("limit", "capacity"), [(60_000, 1_000), (600, 1)])
def test_an_answer_on_one_loop_wakes_a_caller_on_another(limit: int, capacity: int) -> None:
    """It opens the limiter: the other loop is woken, or, with an empty bucket, has to set its timer anew."""
    limiter = RateLimiter(TokenBucket(limit, capacity))
    now = SYSTEM.monotonic()
    limiter.close_after_429(limiter.try_acquire(now - 10.0), now - 10.0, 10.0)
    probe = limiter.try_acquire(now)
    assert probe > ORDINARY
    with running_elsewhere() as elsewhere:
        entered = line_up(elsewhere, limiter, runtime=Unhurried())
        limiter.release(probe, now)
        assert entered.result(60) == ORDINARY


def test_a_grant_on_its_way_from_another_thread_to_a_caller_just_cancelled_goes_to_the_next() -> None:
    async def main() -> None:
        now = SYSTEM.monotonic()
        probe = limiter.try_acquire(now)
        gone, following = await stand(limiter), await stand(limiter)
        answering = threading.Thread(target=limiter.release, args=(probe, now))
        answering.start()
        answering.join(300)
        gone.cancel()
        assert await following == ORDINARY
        assert gone.cancelled()
        assert limiter.snapshot(SYSTEM.monotonic()).used == 2

    limiter = RateLimiter(TokenBucket(2, 2))
    limiter._bucket.close(0.0, 0.0)
    asyncio.run(main())


async def stand(limiter: RateLimiter) -> asyncio.Task[int]:
    """A caller that stands in line when this returns."""
    task = asyncio.create_task(limiter.acquire(SYSTEM))
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


def test_a_closed_loop_does_not_block_the_others_and_gives_nothing_back_twice(other_loop: Pretending) -> None:
    async def main() -> None:
        waiting = await stand(limiter)
        limiter.put_back(held)
        limiter.put_back(await waiting)

    limiter, (held,) = full_limiter(1)
    forgotten = other_loop.run_until_complete(stand(limiter))
    other_loop.close()
    asyncio.run(main())
    assert not forgotten.done()
    assert limiter.idle(SYSTEM.monotonic())
    del forgotten
    gc.collect()
    assert limiter.snapshot(SYSTEM.monotonic()).used == 0


def test_a_grant_that_a_dead_loop_never_took_is_given_back_with_its_caller(other_loop: Pretending) -> None:
    async def main() -> None:
        other_loop.pretends = True
        limiter.put_back(held)
        with pytest.raises(LimiterTimeout):
            await limiter.acquire(SYSTEM, until=SYSTEM.monotonic() + 0.01)

    limiter, (held,) = full_limiter(1)
    forgotten = other_loop.run_until_complete(stand(limiter))
    asyncio.run(main())
    assert limiter.snapshot(SYSTEM.monotonic()).used == 1
    other_loop.pretends = False
    other_loop.close()
    del forgotten
    gc.collect()
    assert limiter.snapshot(SYSTEM.monotonic()).used == 0


def test_a_loop_that_stands_still_is_passed_over_until_it_runs_again(other_loop: Pretending) -> None:
    async def main() -> None:
        waiting = await stand(limiter)
        limiter.put_back(grants[0])
        assert await waiting == ORDINARY

    limiter, grants = full_limiter(2)
    asleep = other_loop.run_until_complete(stand(limiter))
    asyncio.run(main())
    assert not asleep.done()
    limiter.put_back(grants[1])
    assert other_loop.run_until_complete(asleep) == ORDINARY
    assert limiter.snapshot(SYSTEM.monotonic()).used == 2


def test_a_loop_closed_at_the_moment_of_its_grant_does_not_take_it_along(other_loop: Pretending) -> None:
    async def main() -> None:
        waiting = await stand(limiter)
        other_loop.close()
        other_loop.pretends = True
        limiter.put_back(held)
        assert await waiting == ORDINARY

    limiter, (held,) = full_limiter(1)
    other_loop.run_until_complete(stand(limiter))
    asyncio.run(main())
    assert limiter.snapshot(SYSTEM.monotonic()).used == 1
