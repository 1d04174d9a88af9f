"""Runs that are cancelled at any event, with faults all along, and run again until complete."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from payments_async.bulk import PayoutBatch
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from tests.support.batches import Between, assert_true, in_process, items, paid, runtime_of, spread_faults

KINDS = (
    *("http:500", "http:409", "http:422", "429:30", "reset", "lost_request", "lost_response", "hang"),
    *("bad_json", "wrong_type", "slow:20s", "http:401"),
)
COUNT = 40


class Cancelling(Between):
    """A transport that cancels a task at the request of a given number, before it leaves or after."""

    task: asyncio.Task[Any] | None = None
    left = 0

    async def send(self, request: Any) -> Any:
        self._count()
        answer = await super().send(request)
        self._count()
        await asyncio.sleep(0)
        return answer

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0 and self.task is not None:
            self.task.cancel()


@pytest.mark.parametrize("seed", range(4))
async def test_a_run_cancelled_at_any_request_is_resumed_until_every_row_is_paid_once(
    tmp_path: Path, seed: int
) -> None:
    chance, rows = random.Random(seed), items(COUNT)
    profile = chance.choice(["observed", "hostile"])
    sandbox = Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off(), profile=profile, seed=seed)
    spread_faults(sandbox, COUNT, KINDS, 0.06, seed)
    async with in_process(sandbox, seed) as client:
        breaker = Cancelling(client)
        cancelled = 0
        for _ in range(40):
            breaker.left = chance.randrange(1, 60)
            breaker.task = asyncio.ensure_future(
                paid(tmp_path / "l", client, rows, concurrency=chance.randrange(1, 9))
            )
            try:
                report = await breaker.task
            except asyncio.CancelledError:
                cancelled += 1
            else:
                if report.is_complete:
                    break
            if chance.random() < 0.2:  # the next run is the next day: keys are too old by then
                runtime_of(client).advance(90_000.0)
                sandbox.advance(90_000.0)
        assert cancelled
        assert report.is_complete
        assert_true(report, sandbox, rows)


async def test_what_was_learned_before_a_cancellation_is_recorded(tmp_path: Path) -> None:
    sandbox = Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off())
    sandbox.on("payouts.create", description="row 5").respond("hang")
    async with in_process(sandbox) as client, PayoutBatch.open(tmp_path / "l", client) as batch:
        await batch.load(items(5))
        run = asyncio.ensure_future(batch.run(concurrency=5))
        while len(sandbox.books.payouts()) < 4:  # noqa: ASYNC110 - the sandbox has no event to wait for
            await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert (await batch.status()).counts["created"] == 4
        assert (await batch.status()).counts["under_way"] == 1
        assert (await batch.run()).exit_code == 0
    assert len(sandbox.books.payouts()) == 5
