"""Deadlines of attempts, on simulated time."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from payments_async._http.deadlines import TICK, Deadlines
from tests.support.simulated import SimulatedRuntime, run_simulated


def now() -> float:
    return asyncio.get_running_loop().time()


async def attempt(deadlines: Deadlines, seconds: float, work: float) -> tuple[str, float]:
    """What became of `work` seconds of work, and when."""
    task = deadlines.start(seconds)
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(work)
    return deadlines.stop(task), now()


def test_work_that_ends_in_time_is_left_alone() -> None:
    async def main() -> tuple[str, float]:
        return await attempt(Deadlines(SimulatedRuntime()), 5, 4)

    assert run_simulated(main()) == ("undisturbed", 4)


@pytest.mark.parametrize("seconds", [5.0, 0.0])
def test_work_is_ended_at_its_deadline(seconds: float) -> None:
    async def main() -> tuple[str, float]:
        return await attempt(Deadlines(SimulatedRuntime()), seconds, 6)

    assert run_simulated(main()) == ("overdue", seconds)


def test_a_deadline_in_the_past_ends_work_at_once() -> None:
    async def main() -> tuple[str, float]:
        return await attempt(Deadlines(SimulatedRuntime()), -1, 6)

    assert run_simulated(main()) == ("overdue", 0)


def test_each_of_many_deadlines_is_kept_to_within_a_tick() -> None:
    seconds = [3.0, 1.0, 2.0, 1.001, 1.002, 7.0, 0.5]

    async def main() -> list[tuple[str, float]]:
        deadlines = Deadlines(SimulatedRuntime())
        return await asyncio.gather(*(attempt(deadlines, limit, 10) for limit in seconds))

    for limit, (ended, when) in zip(seconds, run_simulated(main()), strict=True):
        assert ended == "overdue"
        assert limit <= when <= limit + TICK


def test_all_attempts_share_one_timer() -> None:
    class CountingRuntime(SimulatedRuntime):
        timers = 0

        def call_later(self, delay: float, callback: object) -> asyncio.TimerHandle:
            self.timers += 1
            return super().call_later(delay, callback)  # type: ignore[arg-type, return-value] # a pass-through

    async def main() -> int:
        runtime = CountingRuntime()
        deadlines = Deadlines(runtime)
        await asyncio.gather(*(attempt(deadlines, 30, 0.1 + number / 1000) for number in range(200)))
        return runtime.timers

    assert run_simulated(main()) == 1


def test_the_timer_ends_with_the_last_attempt() -> None:
    async def main() -> tuple[str, float]:
        deadlines = Deadlines(SimulatedRuntime())
        await attempt(deadlines, 1, 0.5)
        await asyncio.sleep(10)  # the timer finds nobody
        return await attempt(deadlines, 1, 2)

    assert run_simulated(main()) == ("overdue", 11.5)


def test_a_cancellation_by_others_is_not_taken_for_the_deadline() -> None:
    async def main() -> tuple[str, float]:
        task = asyncio.ensure_future(attempt(Deadlines(SimulatedRuntime()), 5, 10))
        asyncio.get_running_loop().call_later(1, task.cancel)
        return await task

    assert run_simulated(main()) == ("cancelled", 1)


def test_a_cancellation_at_the_same_moment_as_the_deadline_wins() -> None:
    async def main() -> tuple[tuple[str, float], int]:
        async def work() -> tuple[tuple[str, float], int]:
            ended = await attempt(Deadlines(SimulatedRuntime()), 5, 10)
            current = asyncio.current_task()
            assert current is not None
            return ended, current.cancelling()

        task = asyncio.ensure_future(work())
        asyncio.get_running_loop().call_later(5, task.cancel)
        return await task

    assert run_simulated(main()) == (("cancelled", 5), 1)


def test_an_outer_timeout_stays_the_outer_ones() -> None:
    async def main() -> None:
        async with asyncio.timeout(1):
            deadlines = Deadlines(SimulatedRuntime())
            task = deadlines.start(5)
            try:
                await asyncio.sleep(10)
            finally:
                assert deadlines.stop(task) == "cancelled"

    with pytest.raises(TimeoutError):
        run_simulated(main())


def test_its_own_cancellation_is_taken_back() -> None:
    async def main() -> int:
        deadlines = Deadlines(SimulatedRuntime())
        assert await attempt(deadlines, 1, 2) == ("overdue", 1)
        current = asyncio.current_task()
        assert current is not None
        return current.cancelling()

    assert run_simulated(main()) == 0


def test_closing_ends_the_attempts_under_way_and_no_later_one() -> None:
    async def main() -> list[tuple[str, float]]:
        deadlines = Deadlines(SimulatedRuntime())
        asyncio.get_running_loop().call_later(1, deadlines.close)
        together = await asyncio.gather(*(attempt(deadlines, 2, 3) for _ in range(2)))
        return [*together, await attempt(deadlines, 5, 4)]

    assert run_simulated(main()) == [("closed", 1), ("closed", 1), ("undisturbed", 5)]


def test_a_cancellation_from_before_the_attempt_stays() -> None:
    async def main() -> tuple[str, float]:
        async def work() -> tuple[str, float]:
            current = asyncio.current_task()
            assert current is not None
            current.cancel()  # arrives where the task next waits
            return await attempt(Deadlines(SimulatedRuntime()), 5, 10)

        return await asyncio.ensure_future(work())

    assert run_simulated(main()) == ("cancelled", 0)
