"""Batches on Procrastinate: jobs in PostgreSQL, one for each chunk. Extra `procrastinate`.

    app.add_tasks_from(payroll("postgresql://…", client), namespace="payroll")
    await start(app, "june.csv", batch_id="june", confirm_total={"GHS": "1200.50"})

A worker may be killed, and a job run twice: the ledger decides who may send.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any, Final, TypeVar
from zoneinfo import ZoneInfo

import attrs

from ..._extras import needs

try:
    from procrastinate import App, BaseRetryStrategy, Blueprint, JobContext, RetryDecision
    from procrastinate.exceptions import AlreadyEnqueued, ConnectorException, UniqueViolation
    from procrastinate.job_context import AbortReason
    from procrastinate.jobs import Job, Status
    from procrastinate.worker import Worker
except ImportError as _missing:
    raise ImportError(needs("batches on Procrastinate need", "procrastinate")) from _missing

from ...client import AsyncPayments
from ...params import Money
from .. import _options
from .._protocol.machines import LEASE
from ..errors import BulkError
from ..steps import BatchPlan, Done, Held, Never, Now, StepEnd, StepFailed, Steps, StopSignal, Wait
from ._arguments import dated, plan_arguments, require_names, require_version, require_zone

__all__ = ["Nightly", "payroll", "start"]

_TESTED: Final = ((3, 10), (4,))
_ASK_AGAIN: Final = 60.0
"""Seconds after which a held batch is asked again whether a person has acted."""
_RETRY: Final = 10
"""Seconds after which a job that broke off is tried again."""
_REAP: Final = "* * * * * */30"
"""When jobs of dead workers are looked for: every 30 seconds."""
_FOLLOWING: Final = {
    "plan": "settle",
    "resume": "settle",
    "pay": "settle",
    "settle": "close",
    "close": "follow",
}
"""{task: the one that is asked for once its step is done}."""
_End = TypeVar("_End", StepEnd, BatchPlan)
_log = logging.getLogger("payments_async")


@attrs.frozen(kw_only=True)
class Nightly:
    """A batch a day. `{date}` in its names is the day, in `zone`, of the time for which it is scheduled.

    For the other arguments see `Steps.plan`. Raises BulkError: one is invalid, or looks like an account.
    """

    file: str
    batch_id: str
    hour: int
    zone: str
    minute: int = 0
    confirm_from: str | None = None
    max_amount: Money | None = None
    max_rows: int | None = None
    max_failure_rate: float | None = None
    lossy_standby: bool = False

    def __attrs_post_init__(self) -> None:
        if "{date}" not in self.batch_id:
            raise BulkError("batch_id must hold {date}: every night has a batch of its own")
        require_zone(self.zone)
        try:
            time(self.hour, self.minute)
        except (TypeError, ValueError) as error:
            raise BulkError(f"hour and minute must be a time of day: {error}") from error
        self._arguments()

    def facts(self) -> dict[str, Any]:
        """The arguments as JSON values."""
        amount = None if self.max_amount is None else str(self.max_amount)
        return attrs.asdict(attrs.evolve(self, max_amount=amount))

    def cron(self, today: date) -> str:
        """The times of day in UTC, all that Procrastinate knows, that are this hour in the zone in a year."""
        hour = time(self.hour, self.minute, tzinfo=ZoneInfo(self.zone))
        days = (datetime.combine(today, hour) + timedelta(days=number) for number in range(400))
        times = {at.astimezone(UTC).time() for at in days}
        minutes, hours = {at.minute for at in times}, {at.hour for at in times}
        return f"{','.join(map(str, sorted(minutes)))} {','.join(map(str, sorted(hours)))} * * *"

    def plan(self, timestamp: int) -> dict[str, Any] | None:
        """The arguments of the plan for a scheduled time; None when it is another hour in the zone."""
        at = datetime.fromtimestamp(timestamp, ZoneInfo(self.zone))
        hour = time(self.hour, self.minute, tzinfo=at.tzinfo)
        if datetime.combine(at.date(), hour).timestamp() != timestamp:
            return None
        names = ("file", "batch_id", "confirm_from")
        filled = {name: dated(text, at, self.zone) for name in names if (text := getattr(self, name))}
        return {**self._arguments(), **filled}

    def _arguments(self) -> dict[str, Any]:
        other = ("file", "batch_id", "hour", "zone", "minute")
        options = {name: value for name, value in attrs.asdict(self).items() if name not in other}
        return plan_arguments(self.file, self.batch_id, **options)


async def start(
    app: App,
    file: str,
    *,
    batch_id: str,
    confirm_total: Mapping[str, Money] | None = None,
    confirm_from: str | None = None,
    max_amount: Money | None = None,
    max_rows: int | None = None,
    max_failure_rate: float | None = None,
    pay_again: bool = False,
    lossy_standby: bool = False,
    namespace: str = "payroll",
    queue: str = "payroll",
) -> None:
    """Ask for a batch to be planned and paid. The app need not have the tasks; it is open.

    Asked again, it makes good jobs that were lost or cancelled. Procrastinate stores and shows all arguments,
    so that a name that looks like an account is refused. For them see `Steps.plan`. Raises BulkError.
    """
    arguments = plan_arguments(
        file,
        batch_id,
        confirm_total=confirm_total,
        confirm_from=confirm_from,
        max_amount=max_amount,
        max_rows=max_rows,
        max_failure_rate=max_failure_rate,
        pay_again=pay_again,
        lossy_standby=lossy_standby,
    )
    await app.configure_task(f"{namespace}:plan", queue=queue, priority=1).defer_async(**arguments)


def payroll(
    address: str,
    client: AsyncPayments,
    *,
    nightly: Sequence[Nightly] = (),
    queue: str = "payroll",
    stalled_after: float = 2 * LEASE,
    concurrency: int = 192,
    drain: float = 30.0,
    insecure_database: bool = False,
) -> Blueprint:
    """Make the tasks that pay batches, for `App.add_tasks_from`. Each worker process makes its own.

    Jobs carry the names of a batch and its file, a chunk's number, totals and stop rules. The task `reap`
    lets jobs of dead workers begin again, and only jobs of these tasks.

    Args:
        address: the ledger's database, see `Steps`.
        client: pays, and stays open.
        nightly: batches that are planned every night.
        queue: the queue of all jobs.
        stalled_after: seconds without a sign of life after which a worker is dead: more than the worker's
            `update_heartbeat_interval`.
        concurrency: see `Steps`.
        drain: see `Steps`.
        insecure_database: see `Steps`.

    Raises:
        BulkError: an argument is invalid, or this release of Procrastinate was not tested.
    """
    require_version("procrastinate", *_TESTED)
    _options.require_seconds("stalled_after", stalled_after)
    if stalled_after < LEASE:
        raise BulkError(f"stalled_after must be at least {LEASE:g} seconds, as long as a lease")
    pace = {"concurrency": concurrency, "drain": drain, "insecure_database": insecure_database}
    steps = Steps(address, client, **pace)  # type: ignore[arg-type] # mypy merges their types
    tasks = _ProcessTasks(steps, queue, stalled_after)
    for night in nightly:
        tasks.repeat(night, client._internal.runtime.now().date())
    return tasks.blueprint


class _Retry(BaseRetryStrategy):
    """Tries a job again that broke off, and none that has failed or was aborted."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        if isinstance(exception, BulkError | TypeError | asyncio.CancelledError):
            return None  # a TypeError: the job was given other arguments than the task's
        return RetryDecision(retry_in={"seconds": _RETRY})


async def _note_stop(call_next: Callable[[], Awaitable[Any]], context: JobContext, worker: Worker) -> Any:
    """Give a job the event that is set once its worker is to end; no public name has it."""
    context.additional_context["stop"] = getattr(worker, "_stop_event", None)
    return await call_next()


class _ProcessTasks:
    """The tasks of one process.

    A step that is to be called again is asked for by a new job, which a queueing lock keeps single, and not
    by a retry: a retry that meets a waiting copy would stay "doing" for as long as its worker lives.
    """

    def __init__(self, steps: Steps, queue: str, stalled_after: float) -> None:
        self._steps, self._queue, self._stalled_after = steps, queue, stalled_after
        self._open: asyncio.Task[None] | None = None
        self.blueprint = Blueprint()
        self._tasks: dict[str, Any] = {}
        self._add("plan", self._plan)
        self._add("pay", partial(self._step, steps.pay), priority=0)  # others do not wait behind chunks
        self._add("settle", partial(self._step, steps.settle))
        self._add("resume", partial(self._step, steps.settle))
        self._add("close", partial(self._step, steps.close))
        self._add("follow", partial(self._step, partial(steps.close, follow=True)))
        self._add("reap", self._reap)
        self.blueprint.periodic(cron=_REAP, queueing_lock=f"{queue} reap")(self._tasks["reap"])
        self._add("nightly", self._nightly)

    def repeat(self, night: Nightly, today: date) -> None:
        """Plan a batch every night."""
        options: dict[str, Any] = {"periodic_id": night.batch_id[:128], "task_kwargs": night.facts()}
        self.blueprint.periodic(cron=night.cron(today), **options)(self._tasks["nightly"])

    def _add(self, name: str, function: Callable[..., Awaitable[str]], *, priority: int = 1) -> None:
        async def job(context: JobContext, /, **arguments: Any) -> str:
            if self._open is None or self._open.done():
                self._open = asyncio.ensure_future(self._keep_open())
            try:
                return await function(context, name, **arguments)
            except asyncio.CancelledError:
                if context.abort_reason() is AbortReason.SHUTDOWN:  # another worker goes on
                    await self._ask(name, arguments)
                raise

        options: dict[str, Any] = {"priority": priority, "retry": _Retry(), "task_middleware": [_note_stop]}
        make = self.blueprint.task(name=name, queue=self._queue, pass_context=True, **options)
        self._tasks[name] = make(job)

    async def _keep_open(self) -> None:
        """Keep the connections until the loop ends, which cancels this."""
        async with self._steps:
            await asyncio.Event().wait()

    async def _plan(self, context: JobContext, name: str, **arguments: Any) -> str:
        """Import a file as a batch, and ask for its chunks to be paid."""
        given = plan_arguments(**arguments)
        options = {key: value for key, value in given.items() if key != "file"}
        end = await _ended(partial(self._steps.plan, given["file"], **options))
        return await self._go_on(name, given, end)

    async def _step(
        self, step: Callable[..., Awaitable[StepEnd]], context: JobContext, name: str, **arguments: Any
    ) -> str:
        """Call a step of a batch or a chunk, and ask for what follows."""
        require_names(arguments.get("batch_id"))
        stop: StopSignal | None = context.additional_context["stop"]
        end = await _ended(partial(step, **arguments, stop=stop))
        while isinstance(end.next, Now) and not (stop is None or stop.is_set()):
            end = await _ended(partial(step, **arguments, stop=stop))
        return await self._go_on(name, arguments, end)

    async def _go_on(
        self, name: str, arguments: Mapping[str, Any], end: StepEnd | BatchPlan | StepFailed
    ) -> str:
        """Ask for what follows a step; in words. Raises BulkError when it can never succeed."""
        batch = {"batch_id": arguments["batch_id"]}
        has_failed, begins = isinstance(end, StepFailed), name in ("plan", "resume")
        match end.next:
            case Never(reason):
                raise BulkError(reason)
            case Held(_, reason):
                await self._ask("resume", batch, _ASK_AGAIN)
            case Wait(seconds, reason) if has_failed or not begins:
                await self._ask(name, arguments, seconds)
            case Done():
                reason = "done"
                if name in _FOLLOWING:
                    await self._ask(_FOLLOWING[name], batch)
            case _ if isinstance(end, StepEnd | BatchPlan) and begins:
                reason = "its chunks are to be paid"
                for chunk in range(1, (end.chunks or 0) + 1):
                    await self._ask("pay", {**batch, "chunk": chunk})
                await self._ask("settle", batch, LEASE)
            case _:
                reason = "it goes on"
                await self._ask(name, arguments)
        disagrees = isinstance(end, StepEnd) and end.is_clean is False
        if disagrees:
            reason = "the service's list does not agree with the ledger"
        if has_failed or disagrees or isinstance(end.next, Held):
            _log.warning("%s of %s: %s", name, arguments["batch_id"], reason)
        figures = end.figures if isinstance(end, StepEnd) else None
        return reason if figures is None else f"{figures.done} of {figures.rows} rows done; {reason}"

    async def _ask(self, name: str, arguments: Mapping[str, Any], seconds: float = 0.0) -> None:
        """Ask for a task to be run, unless it waits already. Plans may differ in totals: each one is run."""
        task = self._tasks[name]
        key = [str(arguments[key]) for key in ("batch_id", "chunk", "timestamp") if key in arguments]
        options: dict[str, Any] = {} if name == "plan" else {"queueing_lock": " ".join([task.name, *key])}
        if seconds:
            options["schedule_in"] = {"milliseconds": math.ceil(seconds * 1000)}
        with suppress(AlreadyEnqueued):
            await task.configure(**options).defer_async(**arguments)

    async def _nightly(self, context: JobContext, name: str, timestamp: int, **night: Any) -> str:
        """Ask for the plan of a scheduled time."""
        arguments = Nightly(**night).plan(timestamp)
        if arguments is None:
            return "it is another hour in the zone"
        await self._ask("plan", arguments)
        return str(arguments["batch_id"])

    async def _reap(self, context: JobContext, name: str, timestamp: int) -> str:
        """Let jobs of these tasks begin again whose workers are dead."""
        own, manager = {task.name for task in self._tasks.values()}, context.app.job_manager
        for job in await manager.get_stalled_jobs(seconds_since_heartbeat=self._stalled_after):
            if job.task_name not in own:  # whether another task can be run twice, only its author knows
                continue
            with suppress(ConnectorException):  # it has ended after all
                try:
                    await manager.retry_job(job)
                except UniqueViolation:  # a copy waits
                    await manager.finish_job(job, Status.ABORTED, delete_job=False)
        return "done"


async def _ended(step: Callable[[], Awaitable[_End]]) -> _End | StepFailed:
    """Call a step. Its errors lose their causes: Procrastinate logs them."""
    try:
        return await step()
    except StepFailed as error:
        return error
    except BulkError as error:
        reason = str(error)
    raise BulkError(reason)
