"""A test that stops the clock (freezegun) changes nothing for those before and after it, in any order."""

from __future__ import annotations

import freezegun
import pytest

from payments_async.sandbox import VirtualClock
from tests.sync.scenes import run

PROGRAM = """
import asyncio, sys
from datetime import datetime
from freezegun import freeze_time

def served():
    from payments_async import AsyncPayments, OutcomeUnknown, Payout
    from payments_async._codec import decode
    from payments_async.sandbox import Sandbox
    from payments_sync import Payments
    from tests.sync.scenes import payout

    def shown(record):
        made = record.created_at
        assert type(made).__module__ == "datetime", type(made)
        assert abs((made - datetime.now(made.tzinfo)).total_seconds()) < 600, made
        return record

    async def called():
        async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url) as client:
            await client.warm_up()
            sandbox.on("payouts.create").respond("lost_response", times=3)
            try:
                await client.payouts.create(**payout("a-1"), max_retries=0)
            except OutcomeUnknown as error:
                shown(await client.resolve(error))
            shown(await client.payment_intents.create(amount=50, currency="XOF"))

    with Sandbox() as sandbox, Payments(sandbox.api_key, base_url=sandbox.base_url) as client:
        for number in range(2):
            made = shown(client.payouts.create(**payout(f"r-{number}")))
            shown(client.checkouts.create(amount=50, currency="XOF").payment)
        assert decode.usual_answer(made.response.body, Payout, page=False).data == made
        assert [shown(each).reference for each in client.payouts.list()] == ["r-1", "r-0"]
        assert client.limits_snapshot()["write"].available > 900
        asyncio.run(called())

def stopped():
    with freeze_time("2024-01-01", real_asyncio=True):
        served()

def imported():
    import payments_async, payments_sync

for step in steps:
    step()
print("served")
"""


@pytest.mark.parametrize(
    "steps", ["stopped, served", "imported, stopped, served", "served, stopped, served, stopped"]
)
def test_calls_work_before_during_and_after_a_stopped_clock(steps: str) -> None:
    program = PROGRAM.replace("in steps", f"in ({steps})")
    assert run(program) == "served\n"


def test_a_sandboxs_clock_goes_on_while_the_tests_is_stopped() -> None:
    """It may serve tests before and after."""
    clock = VirtualClock.real()
    before = clock.now()
    with freezegun.freeze_time("2024-01-01"):
        during = clock.now()
    assert before <= during <= clock.now() < before + 3600.0
