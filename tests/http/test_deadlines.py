"""Deadlines of attempts, on simulated time."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from payments_async._http.transport import Deadlines
from tests.support.simulated import SimulatedRuntime, run_simulated


async def attempt(deadlines: Deadlines, seconds: float, work: float) -> tuple[str, float]:
    """What became of `work` seconds of work, and when."""
    task = deadlines.start(seconds)
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(work)
    return deadlines.stop(task), asyncio.get_running_loop().time()


@pytest.mark.parametrize(
    ("seconds", "cancelled_at", "closed_at", "ended", "requests"),
    [
        (7, None, None, ("undisturbed", 6), 0),
        (5, None, None, ("overdue", 5), 0),  # its own cancellation is taken back
        (0, None, None, ("overdue", 0), 0),
        (-1, None, None, ("overdue", 0), 0),
        (7, None, 1, ("closed", 1), 0),
        (5, 1, None, ("cancelled", 1), 1),
        (5, 5, None, ("cancelled", 5), 1),  # at the same moment: the other's wins
        (7, 1, 1, ("cancelled", 1), 1),
        (5, 0, None, ("cancelled", 0), 1),  # before the attempt: it arrives where the task next waits
    ],
)
def test_six_seconds_of_work_end_at_their_deadline_or_by_a_cancellation(
    seconds: float,
    cancelled_at: float | None,
    closed_at: float | None,
    ended: tuple[str, float],
    requests: int,
) -> None:
    async def work() -> tuple[tuple[str, float], int]:
        task, deadlines = asyncio.current_task(), Deadlines(SimulatedRuntime())
        assert task is not None
        if closed_at is not None:
            asyncio.get_running_loop().call_later(closed_at, deadlines.close)
        if cancelled_at == 0:
            task.cancel()
        elif cancelled_at is not None:
            asyncio.get_running_loop().call_later(cancelled_at, task.cancel)
        return await attempt(deadlines, seconds, 6), task.cancelling()

    async def main() -> tuple[tuple[str, float], int]:
        return await asyncio.ensure_future(work())

    assert run_simulated(main()) == (ended, requests)


def test_all_attempts_share_one_timer() -> None:
    async def main() -> int:
        runtime = SimulatedRuntime()
        deadlines = Deadlines(runtime)
        await asyncio.gather(*(attempt(deadlines, 30, 0.1 + number / 1000) for number in range(200)))
        return runtime.timers

    assert run_simulated(main()) == 1
