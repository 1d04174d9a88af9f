"""A payroll on Temporal: activities take turns at a batch. Start this on as many hosts as you like."""

import asyncio
import os
from datetime import timedelta
from signal import SIGTERM
from zoneinfo import ZoneInfo

from temporalio import activity, client, common, worker, workflow

from payments_async import AsyncPayments
from payments_async.bulk import PayoutBatch

LEDGER, WIDTH, ZONE = os.environ["PAYMENTS_LEDGER"], 2, ZoneInfo("Africa/Accra")
DUE, MINUTE = common.SearchAttributeKey.for_datetime("TemporalScheduledStartTime"), timedelta(minutes=1)
TURN = workflow.ActivityConfig(start_to_close_timeout=60 * MINUTE, heartbeat_timeout=MINUTE)


@activity.defn
async def turn(batch_id: str) -> float | None:
    async with AsyncPayments() as account, PayoutBatch.open(LEDGER, account, batch_id=batch_id) as batch:
        await batch.load(f"{os.environ['PAYROLL_FILES']}/{batch_id}.csv")  # once; then it does nothing
        asyncio.ensure_future(activity.wait_for_worker_shutdown()).add_done_callback(lambda _: batch.stop())
        return (await batch.run(lambda figures: activity.heartbeat(figures.done), for_seconds=60)).next


@workflow.defn(sandboxed=False)
class Payroll:
    @workflow.run
    async def run(self, batch_id: str) -> None:
        if due := workflow.info().typed_search_attributes.get(DUE):  # a schedule has started it
            batch_id = batch_id.format(date=due.astimezone(ZONE).date())
        waits = await asyncio.gather(*(workflow.start_activity(turn, batch_id, **TURN) for _ in range(WIDTH)))
        if None not in waits:
            await workflow.sleep(min(filter(None, waits)))
            workflow.continue_as_new(batch_id)


async def main() -> None:
    server = await client.Client.connect(os.environ["TEMPORAL_ADDRESS"])
    payroll = worker.Worker(
        server, task_queue="payroll", workflows=[Payroll], activities=[turn], graceful_shutdown_timeout=MINUTE
    )
    asyncio.get_running_loop().add_signal_handler(SIGTERM, lambda: asyncio.ensure_future(payroll.shutdown()))
    await payroll.run()


if __name__ == "__main__":
    asyncio.run(main())
