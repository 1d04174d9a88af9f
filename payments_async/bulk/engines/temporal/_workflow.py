"""The workflow of a batch, and the schedule that starts one a day."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from operator import sub
from typing import Any, Final

from temporalio import workflow
from temporalio.client import (
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleCalendarSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleRange,
    ScheduleSpec,
)
from temporalio.common import Priority, RetryPolicy, SearchAttributeKey

with workflow.unsafe.imports_passed_through():
    from ....params import Money
    from ..._protocol.machines import LEASE
    from ..._texts.quantities import money_text
    from ...errors import BulkError
    from ...steps import HoldReason
    from ._payroll import SEARCHED, Facts, Payroll

_IN_FLIGHT: Final = 20
"""Chunks of a workflow at a time, with those that wait for a slot: the chunks of the next batch queue behind
them. More are no faster, as one chunk can use the whole limit of a key."""
_ATTEMPT: Final = timedelta(days=7)
_RETRY: Final = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=30))
_SCHEDULED: Final = SearchAttributeKey.for_datetime("TemporalScheduledStartTime")


@workflow.defn(failure_exception_types=[BulkError])
class PayrollWorkflow:
    """Pays one batch, closes it, and follows its payouts until all are final. Returns its progress.

    Signals: `pause`, `resume`, `cancel_rest`, which change the batch in the ledger, and `confirm` with
    {currency: total}. Query: `progress`. A workflow that is cancelled or terminated can be started again.

    Histories, and workers of another host, may be an earlier release's: what a release adds to the facts of
    an activity or of `Payroll.reached` is read with a default, and a command that it adds is `patched`.
    """

    def __init__(self) -> None:
        self._payroll: Payroll | None = None
        self._shown: Facts = {}
        """The progress; empty until the batch is planned."""
        self._left: list[int] = []
        """Chunks that are not begun."""
        self._stopped: list[int] = []
        """Chunks of which the stop rules let no row be taken."""
        self._held: dict[str, list[int]] = {}
        """{chunk that was held: its rows done and in doubt, which are counted already}."""
        self._attributes: list[str] = []
        """The search attributes that the namespace has."""

    @workflow.run
    async def run(self, payroll: Payroll) -> Facts:
        """Pay a batch."""
        self._payroll = payroll = payroll.of(workflow.info().typed_search_attributes.get(_SCHEDULED))
        if payroll.reached is None:
            plan = await self._call("plan", payroll)
            counts = {"rows": plan["rows"], "done": 0, "in_doubt": 0, "asked": plan["sums"], "arrived": {}}
            self._attributes = plan.get("attributes", [])
            named = {"batch_id": plan["batch_id"], "page": plan.get("page")}
            self._show(**named, **counts, held=None, answer=None, clean=None)
            self._left = [] if plan["next"] == "done" else [*range(1, plan["chunks"] + 1)]
            if plan["next"] == "held":
                await self._person(plan["reason"])
        else:
            reached = payroll.reached
            self._shown, self._left, self._held = reached["shown"], reached["left"], reached["held"]
            self._attributes = reached.get("attributes", [])
            self._show()
        await self._pay()
        await self._finish("settle", False)
        await self._finish("close", False)
        await self._finish("close", True)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self.progress()

    @workflow.query
    def progress(self) -> Facts:
        """The batch, its rows and sums, and what holds it; empty until it is planned."""
        return self._shown

    @workflow.signal
    async def pause(self) -> None:
        """Let no worker begin another row."""
        await self._command("pause")

    @workflow.signal
    async def resume(self) -> None:
        """End a pause."""
        await self._command("resume")

    @workflow.signal
    async def cancel_rest(self) -> None:
        """Cancel every row that was not sent yet. It cannot be undone."""
        await self._command("cancel_rest")

    @workflow.signal
    async def confirm(self, total: dict[str, str]) -> None:
        """Confirm the total that the batch's rows come to."""
        payroll = await self._planned()
        try:
            confirmed = replace(payroll, confirm_total=total, confirm_from=None)
        except BulkError as error:
            self._show(answer=str(error))
        else:
            self._show(answer=(await self._call("plan", confirmed)).get("reason"))

    async def _pay(self) -> None:
        while self._left:
            tasks = [asyncio.ensure_future(self._pay_in_turn()) for _ in self._left[:_IN_FLIGHT]]
            try:
                await asyncio.gather(*tasks)
            finally:  # if one has failed, or the workflow is cancelled, the others record what is under way
                for task in tasks:
                    task.cancel()
                await workflow.wait(tasks)
            if self._left:
                await workflow.wait_condition(workflow.all_handlers_finished)
                reached = {
                    "shown": self._shown,
                    "left": [*self._left, *self._stopped],
                    "held": self._held,
                    "attributes": self._attributes,
                }
                workflow.continue_as_new(replace(await self._planned(), reached=reached))
            if self._stopped:
                await self._person("the stop rules let no further row be taken")
                self._left, self._stopped = self._stopped, []

    async def _pay_in_turn(self) -> None:
        """Pay one chunk after the other, until none is left or the history is too long."""
        while self._left and not workflow.info().is_continue_as_new_suggested():
            chunk = self._left.pop(0)
            end = await self._call("pay", self._shown["batch_id"], chunk)
            self._count(str(chunk), end)
            if end["next"] == "done":
                continue
            if end["by"] == HoldReason.STOP_RULE:
                self._stopped.append(chunk)
            else:
                self._left.insert(0, chunk)
                await self._person(end["reason"])

    async def _finish(self, step: str, argument: bool) -> None:
        while (end := await self._call(step, self._shown["batch_id"], argument))["next"] == "held":
            await self._person(end["reason"])
        self._show_figures(end)

    async def _person(self, reason: str) -> None:
        """Wait until a person has acted. One activity asks the ledger for all chunks."""
        if self._shown["held"] is None:
            self._show(held=reason)
            try:
                await self._once("settle", self._shown["batch_id"], True)
                await workflow.sleep(LEASE)  # rows that the stop rules let through may be under way
            finally:
                self._show(held=None)
        await workflow.wait_condition(lambda: self._shown["held"] is None)

    async def _command(self, name: str) -> None:
        await self._planned()
        arguments = [self._shown["batch_id"], name]  # a local activity: it needs none of the workers' slots
        minute = timedelta(minutes=1)
        answer = await workflow.execute_local_activity(
            "command", args=arguments, start_to_close_timeout=minute, retry_policy=_RETRY
        )
        self._show(answer=answer)

    async def _planned(self) -> Payroll:
        await workflow.wait_condition(lambda: bool(self._shown))
        assert self._payroll is not None  # it is planned
        return self._payroll

    async def _call(self, step: str, *arguments: Any) -> Facts:
        """Call a step until it is done or held."""
        while (end := await self._once(step, *arguments))["next"] == "wait":
            if step != "pay":  # whose figures are its chunk's
                self._show_figures(end)
            await workflow.sleep(end["seconds"])
        return end

    async def _once(self, step: str, *arguments: Any) -> Facts:
        assert self._payroll is not None
        chunk = f"chunk {arguments[1]}" if step == "pay" else None
        end: Facts = await workflow.execute_activity(
            step,
            args=arguments,
            start_to_close_timeout=_ATTEMPT,
            heartbeat_timeout=timedelta(seconds=self._payroll.heartbeat_timeout),
            retry_policy=_RETRY,
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            priority=Priority(priority_key=3 if step == "pay" else 1),  # no batch waits for another to end
            activity_id=chunk,
            summary=chunk,
        )
        return end

    def _count(self, chunk: str, end: Facts) -> None:
        """Show a chunk's rows, which may be called for once more, beside those of all others."""
        rows = [end["figures"]["done"], end["figures"]["rows"]["in_doubt"]]
        done, doubt = map(sub, rows, self._held.pop(chunk, (0, 0)))
        if end["next"] == "held":
            self._held[chunk] = rows
        self._show(done=self._shown["done"] + done, in_doubt=self._shown["in_doubt"] + doubt)

    def _show_figures(self, end: Facts) -> None:
        """Show the figures of the batch, where a step has seen them."""
        if figures := end.get("figures"):
            arrived = {currency: sums["arrived"] for currency, sums in figures["sums"].items()}
            doubt = figures["rows"]["in_doubt"]
            self._show(done=figures["done"], in_doubt=doubt, arrived=arrived, clean=end.get("is_clean"))

    def _show(self, **changes: Any) -> None:
        shown = self._shown = {**self._shown, **changes}
        sums = {
            name: money_text({currency: Decimal(amount) for currency, amount in shown[name].items()})
            for name in ("asked", "arrived")
            if shown[name]
        }
        facts = {**sums, **{name: shown[name] for name in ("held", "answer", "clean")}}
        status = f"`payments payouts status --batch-id {shown['batch_id']}`"
        page = shown.get("page")
        lines = [
            f"**{shown['batch_id']}**: {shown['done']:,} of {shown['rows']:,} rows done, "
            f"{shown['in_doubt']:,} in doubt",
            *(f"{name.title()}: {fact}" for name, fact in facts.items() if fact is not None),
            f"[Page of the batch]({page})" if page else status,
        ]
        workflow.set_current_details("\n\n".join(lines))
        self._set_attributes()

    def _set_attributes(self) -> None:
        """Set the search attributes that are others now."""
        shown, now = self._shown, workflow.info().typed_search_attributes
        values = (
            shown["batch_id"],
            shown["rows"],
            shown["done"],
            shown["in_doubt"],
            shown["held"] is not None,
        )
        changes = [
            key.value_set(value)
            for key, value in zip(SEARCHED, values, strict=True)
            if key.name in self._attributes and now.get(key) != value
        ]
        if changes:
            workflow.upsert_search_attributes(changes)


def nightly(
    *,
    file: str,
    batch_id: str,
    hour: int,
    zone: str,
    minute: int = 0,
    confirm_from: str | None = None,
    max_amount: Money | None = None,
    max_rows: int | None = None,
    max_failure_rate: float | None = None,
    task_queue: str = "payroll",
) -> Schedule:
    """Make the schedule of a batch a day, for `create_schedule`. Raises BulkError.

    `{date}` in the names is the day in `zone` for which the schedule starts the workflow, whenever a worker
    gets to it. A day that Temporal was down for is made up for.
    """
    if "{date}" not in batch_id:
        raise BulkError("batch_id must hold {date}: every night has a batch of its own")
    rules = {"max_amount": max_amount, "max_rows": max_rows, "max_failure_rate": max_failure_rate}
    payroll = Payroll(file, batch_id, confirm_from=confirm_from, zone=zone, **rules)  # type: ignore[arg-type] # mypy merges their types
    at = ScheduleCalendarSpec(hour=[ScheduleRange(hour)], minute=[ScheduleRange(minute)])
    return Schedule(
        action=ScheduleActionStartWorkflow(
            PayrollWorkflow.run,
            payroll,
            id=batch_id.replace("{date}", "nightly"),
            task_queue=task_queue,
        ),
        spec=ScheduleSpec(calendars=[at], time_zone_name=zone),
        # the last one may follow its payouts for days
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.ALLOW_ALL),
    )
