"""The queue at a rate limiter: order, deadlines, cancellation, and several event loops at once."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile

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


# One bucket: the pacer, the window behind it, and closing after a 429. Each fact is a line of time


# A fact, "requests a minute" x "at once", and what happens: the second, what, its figures. Grants are counted
# from 0, and a probe is waited for 120 seconds.
LINES = """
the bucket refills at the rate of the limit; 60 x 1
    10 takes one, 10.98 takes none, 11 takes one
the bucket fills no further than its capacity; 60 x 5
    0 uses 5, 59 takes_all 5
waiting the time that was named is enough; 600 x 3
    5 uses 3, 5 waits 0.099, 5.099000001 takes one
nothing is to be waited for while there is room; 60 x 5
    3 waits 0

a grant counts until a minute after its answer; 1 x 1
    0 takes one, 20 answers 0, 80 takes none, 80 waits 0.03125, 80.03125 takes one
an unanswered grant counts until a minute after it was given up; 1 x 1
    0 takes one, 30 gives_up 0, 90 takes none, 90.1 takes one
a grant under way counts however long it takes; 2 x 2
    0 takes_all 2, 100000 takes none, 100000 waits 60
the wait is known once an answer came; 1 x 1
    0 takes one, 1 answers 0, 2 waits 59.03125
an answer stamped by a slower reading of the clock counts in the newer slot; 2 x 2
    10 takes_all 2, 11 answers 0, 10.5 answers 1, 70.9 takes none, 71.1 takes_all 2
a lower limit holds at once and keeps what counts; 100 x 100
    0 uses 100, 0 resizes 10 10, 59.9 takes none, 70 takes_all 10
answers of several moments end one after the other, each once; 3 x 3
    0 takes one, 1 answers 0, 2 takes one, 3 answers 1, 62 takes_all 2, 63.1 takes one, 121 takes none
a grant that was never sent leaves no trace; 60 x 3
    7 takes one, 7 puts_back 0, 7 idles, 7 takes_all 3
a higher limit admits more; 1 x 1
    0 uses 1, 0 resizes 2 2, 59 takes one

after a 429 nothing is granted until the time it named; 60000 x 1000
    0 takes one, 0 refuses 0 10, 4 waits 6, 9.999 takes none, 10 takes probe
exactly one probe goes first; 60000 x 1000
    0 takes one, 0 refuses 0 10, 10 takes probe, 10 takes none, 69 takes none, 10 waits 1
the probe's answer opens the bucket; 60000 x 1000
    0 takes one, 0 refuses 0 10, 10 takes probe, 10.2 answers 1, 10.3 takes_all 1000, 12 takes one
a probe refused again closes the bucket anew; 60000 x 1000
    0 takes one, 0 refuses 0 10, 10 takes probe, 10.2 refuses 1 5, 15.1 takes none, 15.2 takes probe
    15.2 takes none
after a probe that got no answer the next caller is the probe; 60000 x 1000
    0 takes one, 0 refuses 0 10, 10 takes probe, 40 gives_up 1, 40 takes probe, 40 takes none
after a probe that was never sent the next caller is the probe; 60000 x 1000
    0 takes one, 0 refuses 0 10, 10 takes probe, 10 puts_back 1, 10 takes probe, 10 takes none
a probe that is lost makes way in the end; 60000 x 1000
    0 takes one, 0 refuses 0 10, 10 takes probe, 129.9 takes none, 130 takes probe, 131 answers 2
    132 answers 1, 133 takes one
answers of requests that left before the closing do not open it; 60000 x 1000
    0 takes one, 0 takes one, 0 takes one, 0.1 refuses 0 5, 0.2 answers 1, 1 takes none, 5.1 takes probe
    5.2 answers 2, 5.3 takes none
a probe of an earlier closing does not open a later one; 60000 x 1000
    0 takes one, 0 takes one, 0.1 refuses 0 5, 5.1 takes probe, 5.2 refuses 1 30, 5.3 answers 2
    35.1 takes none, 35.2 takes probe
a closing is extended and never shortened; 60000 x 1000
    0 takes one, 0 refuses 0 10, 1 closes 2, 9.9 takes none, 2 closes 20, 21.9 takes none, 22 takes probe
the patience with a probe does not extend the closing after it; 60000 x 1000
    0 takes one, 0 refuses 0 10, 10 takes probe, 10.1 refuses 1 1, 11.1 takes probe
a probe needs room in the window too; 1 x 1
    0 takes one, 0 refuses 0 10, 10 takes none, 60.1 takes probe

a bucket is idle when nothing counts; 60 x 10
    0 idles, 0 takes one, 1000 works, 1000 answers 0, 1060 works, 1060.1 idles
a closed bucket is not idle before its time; 60000 x 1000
    0 takes one, 0 refuses 0 300, 299 works, 300 idles
a snapshot tells limit, use, room and closing; 120 x 10
    0 shows 120 0 10 0, 0 takes one, 0 takes one, 0 takes one, 0 takes one, 0 shows 120 4 6 0
    0.5 shows 120 4 7 0, 0 refuses 0 30, 10 shows 120 4 0 20, 30 shows 120 4 1 0, 30 takes probe
    30 shows 120 5 0 0
a snapshot of a full window shows no room; 5 x 5
    0 uses 5, 59 shows 5 5 0 0, 59 resizes 3 3, 59 shows 3 5 0 0
"""
FACTS = [line for line in LINES.splitlines() if line and line[0] != " "]


def take_all(bucket: TokenBucket, now: float) -> list[int]:
    """The grants that the bucket gives at one moment."""
    grants = []
    while grant := bucket.take(now):
        grants.append(grant)
    return grants


@pytest.mark.parametrize("fact", FACTS)
def test_a_bucket_in_time(fact: str) -> None:
    limit, capacity = fact.partition("; ")[2].split(" x ")
    bucket, grants = TokenBucket(int(limit), int(capacity)), list[int]()
    indented = takewhile(lambda line: line.startswith(" "), LINES.partition(fact)[2].splitlines()[1:])
    for step in ", ".join(indented).split(", "):
        moment, what, *figures = step.split()
        play(bucket, grants, float(moment), what, figures)


def play(bucket: TokenBucket, grants: list[int], now: float, what: str, figures: list[str]) -> None:
    """Let one thing happen to the bucket, and compare it with what is expected."""
    match what, figures:
        case "takes", [kind]:
            grant = bucket.take(now)
            assert ("none", "one", "probe")[min(grant, 2)] == kind
            grants += [grant] if grant else []
        case "takes_all", [number]:
            grants += (given := take_all(bucket, now))
            assert len(given) == int(number)
        case "uses", [number]:
            for grant in (given := take_all(bucket, now)):
                bucket.settle(grant, now)
            assert len(given) == int(number)
        case "waits", [seconds]:
            assert bucket.wait(now) == pytest.approx(float(seconds), abs=1e-9)
        case "answers" | "gives_up", [grant]:
            bucket.settle(grants[int(grant)], now, answered=what == "answers")
        case "puts_back", [grant]:
            bucket.put_back(grants[int(grant)])
        case "refuses", [grant, seconds]:
            bucket.refuse(grants[int(grant)], now, float(seconds))
        case "closes", [seconds]:
            bucket.close(now, float(seconds))
        case "resizes", [limit, capacity]:
            bucket.resize(int(limit), int(capacity))
        case "idles" | "works", []:
            assert bucket.idle(now) is (what == "idles")
        case "shows", [limit, used, available, closed_for]:
            expected = LimitSnapshot(int(limit), int(used), int(available), float(closed_for))
            assert bucket.snapshot(now) == expected
        case _:
            raise AssertionError(what)


def test_what_was_answered_long_ago_is_forgotten() -> None:
    bucket = TokenBucket(60_000, 1_000)
    for second in range(10_000):
        bucket.settle(bucket.take(float(second)), second + 0.5)
    assert len(bucket._slots) <= 61
    assert bucket.snapshot(10_000.0).used <= 61
