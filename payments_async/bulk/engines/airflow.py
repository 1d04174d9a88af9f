"""Batches on Airflow 3: tasks for a DAG of yours, a mapped one a chunk. No extra brings Airflow.

    with DAG("payroll", schedule="0 2 * * *", start_date=datetime(2026, 6, 1), catchup=False):
        payroll_tasks(
            lambda: os.environ["PAYMENTS_LEDGER"],
            file="/in/{date}.csv",
            batch_id="payroll-{date}",
            confirm_from="/in/{date}.total",
            zone="Africa/Accra",
        )

Airflow may run a task twice, late or never: the ledger decides who may send, and what is done.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from functools import partial
from importlib.metadata import PackageNotFoundError
from threading import Event
from typing import Any, Final

import attrs

from ...client import AsyncPayments
from ...params import Money
from .. import _options
from .._leasing.step_ends import next_facts
from .._protocol.machines import LEASE
from .._protocol.outcomes import as_text
from ..errors import BulkError
from ..steps import BatchPlan, Done, Held, Never, Next, Now, StepEnd, StepFailed, Steps, Wait
from ._arguments import dated, plan_arguments, require_names, require_version, require_zone

__all__ = ["payroll_tasks"]

_TESTED: Final = ((3, 3), (4,))
_MOST: Final = 500
"""Mapped tasks of a batch: Airflow takes 1,024, and its page shows few well."""
_ASK_AGAIN: Final = 60.0
"""Seconds after which a held batch is asked again whether a person has acted."""
_PER_TASK: Final = 2.0
"""The same for each of many tasks, each of which is a process: one starts every two seconds."""
_RETRIES: Final = 100
"""Attempts of a task whose process was killed. Steps that have to wait use up none."""
Facts = dict[str, Any]
"""JSON values."""
_log = logging.getLogger("payments_async")


def payroll_tasks(
    address: Callable[[], str],
    *,
    file: str,
    batch_id: str,
    client: Callable[[], AsyncPayments] = AsyncPayments,
    confirm_total: Mapping[str, Money] | None = None,
    confirm_from: str | None = None,
    max_amount: Money | None = None,
    max_rows: int | None = None,
    max_failure_rate: float | None = None,
    lossy_standby: bool = False,
    zone: str | None = None,
    tasks: int = _MOST,
    pool: str = "default_pool",
    concurrency: int = 192,
    drain: float = 4.0,
    insecure_database: bool = False,
) -> None:
    """Add the tasks `plan`, `pay`, `settle`, `close` and `follow` of a batch to the DAG that is being made.

    Within a `@task_group` they can follow your own tasks. `{date}` in `file`, `batch_id` and `confirm_from`
    is the day, in `zone`, of the run's logical date. These three may also be templates of Airflow, such as
    `{{ params.file }}`.

    Args:
        address: gives the database, `postgresql://user@host/name`, in the process of a task. Airflow stores
            and shows the text of a DAG, which must hold no password.
        file: a path that every worker's host has.
        batch_id: the batch's name.
        client: makes the client of a task's process.
        confirm_total: see `Steps.plan`.
        confirm_from: see `Steps.plan`.
        max_amount: see `Steps.plan`.
        max_rows: see `Steps.plan`.
        max_failure_rate: see `Steps.plan`.
        lossy_standby: see `Steps.plan`.
        zone: the time zone of `{date}`, such as `Africa/Accra`.
        tasks: how many tasks `pay` has at most, up to 500. Of more chunks each task takes every n-th.
        pool: of `pay`; its slots are the chunks that are paid at a time.
        concurrency: see `Steps`.
        drain: see `Steps`. A task that is marked or cleared is killed by Airflow after 5 seconds.
        insecure_database: see `Steps`.

    Raises:
        BulkError: an argument is invalid, or looks like an account; this release of Airflow was not tested.
        ImportError: Airflow is not installed.
    """
    _require_airflow()
    from airflow.sdk import task

    if not callable(address):
        raise BulkError("address must be a function: Airflow stores and shows the text of a DAG")
    names = {"file": file, "batch_id": batch_id, **({"confirm_from": confirm_from} if confirm_from else {})}
    _require_day_zone(zone, names)
    _options.require_count("concurrency", concurrency)
    _options.require_count("tasks", tasks)
    if tasks > _MOST:
        raise BulkError(f"tasks must be at most {_MOST}")
    _options.require_seconds("drain", drain, allows_none=True)
    rules = plan_arguments(
        file,
        batch_id,
        confirm_total=confirm_total,
        confirm_from=confirm_from,
        max_amount=max_amount,
        max_rows=max_rows,
        max_failure_rate=max_failure_rate,
        lossy_standby=lossy_standby,
    )
    rules = {name: value for name, value in rules.items() if name not in names}
    pace = {"concurrency": concurrency, "drain": drain, "insecure_database": insecure_database}
    batch = _BatchTasks(address, client, zone or "UTC", tasks, rules, pace)
    options: Facts = {
        "multiple_outputs": False,
        "retries": _RETRIES,
        "retry_delay": timedelta(seconds=LEASE),  # the lease of a process that was killed is over then
        "retry_exponential_backoff": False,
        "trigger_rule": "none_failed",  # of a batch that is closed no chunk is mapped, and `pay` is skipped
    }
    shares = task(task_id="plan", **options)(batch.plan)(**names)
    pay = task(task_id="pay", pool=pool, map_index_template="{{ progress }}", **options)(batch.step)
    last = pay.partial(step="pay", batch_id=batch_id).expand(share=shares)
    for step in ("settle", "close", "follow"):
        following = task(task_id=step, **options)(batch.step)(step, batch_id)
        last >> following
        last = following


def _require_airflow() -> None:
    """Raise ImportError without Airflow, and BulkError for a release that was not tested."""
    try:
        require_version("apache-airflow-core", *_TESTED)
    except PackageNotFoundError as missing:
        raise ImportError("batches on Airflow need apache-airflow 3, with its constraints") from missing


def _require_day_zone(zone: str | None, names: Mapping[str, str]) -> None:
    """Raise BulkError for a time zone that is invalid, or is missing although a name has `{date}`."""
    if zone is not None:
        require_zone(zone)
    elif any("{date}" in name for name in names.values()):
        raise BulkError("zone must be given: the time zone of {date}, such as Africa/Accra")


@attrs.frozen
class _BatchTasks:
    """What the tasks of a batch do, each in a process of its own."""

    address: Callable[[], str]
    client: Callable[[], AsyncPayments]
    zone: str
    tasks: int
    """How many there are at most."""
    rules: Facts
    """The arguments of `Steps.plan` that are no names."""
    pace: Facts

    def plan(self, file: str, batch_id: str, confirm_from: str = "") -> list[Facts]:
        """Import a file as a batch; return which chunks each task pays: none of a batch that is closed."""
        path, batch, total = (self._dated(name) for name in (file, batch_id, confirm_from))
        require_names(batch, path, total)
        plans: list[BatchPlan] = []

        async def call(steps: Steps, stop: Event) -> Next:
            plan = await steps.plan(path, batch_id=batch, confirm_from=total or None, **self.rules)
            plans.append(plan)
            return Done() if isinstance(plan.next, Now) else plan.next

        following = self._called(call)
        facts = plans[0].facts() if plans else {"batch_id": batch}
        _finish({**facts, **next_facts(following)}, following)
        chunks = plans[0].chunks if isinstance(plans[0].next, Now) else 0
        tasks = min(chunks, self.tasks)
        return [{"first": first, "tasks": tasks, "chunks": chunks} for first in range(1, tasks + 1)]

    def step(self, step: str, batch_id: str, share: Mapping[str, int] | None = None) -> Facts:
        """Call a step of a batch, or `pay` for a share of its chunks. Returns what is done."""
        batch = self._dated(batch_id)
        require_names(batch)
        ends: list[StepEnd] = []

        async def call(steps: Steps, stop: Event) -> Next:
            ends.extend(await _ends(steps, step, batch, share, stop))
            return next((end.next for end in reversed(ends) if not isinstance(end.next, Done)), Done())

        following = self._called(call)
        facts = {"batch_id": batch, **(_figures(ends) if ends else {}), **next_facts(following)}
        _finish(facts, following, share["tasks"] if share else 1)
        return facts

    def _called(self, call: Callable[[Steps, Event], Awaitable[Next]]) -> Next:
        """Call steps on a loop of their own. Errors lose their causes: Airflow logs them."""

        async def opened(stop: Event) -> Next:
            async with self.client() as client, Steps(self.address(), client, **self.pace) as steps:
                return await call(steps, stop)

        try:
            with _stop_signal() as stop:
                return asyncio.run(opened(stop))
        except StepFailed as failure:
            return failure.next
        except BulkError as error:
            return Never(str(error))

    def _dated(self, name: str) -> str:
        """Put the day of the run in the place of `{date}`: a run that comes late, or again, has the same."""
        from airflow.sdk import get_current_context

        return dated(name, get_current_context().get("logical_date"), self.zone)


async def _ends(
    steps: Steps, step: str, batch_id: str, share: Mapping[str, int] | None, stop: Event
) -> list[StepEnd]:
    """Call a step, or `pay` for each chunk of a share until one must not be paid."""
    if share is not None:
        ends: list[StepEnd] = []
        for chunk in range(share["first"], share["chunks"] + 1, share["tasks"]):
            progress = partial(_log.info, "chunk %s: %s of %s rows decided", chunk)
            pay = partial(steps.pay, batch_id, chunk, stop=stop, on_progress=progress)
            ends.append(await _to_its_end(pay, stop))
            if not isinstance(ends[-1].next, Done | Wait):
                break
        return ends
    if step == "settle":
        settle = partial(steps.settle, batch_id, stop=stop)
        end = await _to_its_end(settle, stop)
        counts = {} if end.figures is None else end.figures.counts
        if isinstance(end.next, Wait) and any(counts.get(word) for word in ("not_started", "under_way")):
            # tasks were lost, or a person has marked them as a success
            all_chunks = {"first": 1, "tasks": 1, "chunks": end.chunks or 0}
            await _ends(steps, "pay", batch_id, all_chunks, stop)
            end = await _to_its_end(settle, stop)
        return [end]
    return [await _to_its_end(partial(steps.close, batch_id, follow=step == "follow", stop=stop), stop)]


async def _to_its_end(call: Callable[[], Awaitable[StepEnd]], stop: Event) -> StepEnd:
    """Call a step for as long as work is left that can be done now."""
    end = await call()
    while isinstance(end.next, Now) and not stop.is_set():
        end = await call()
    return end


@contextmanager
def _stop_signal() -> Iterator[Event]:
    """Set once the process is told to end."""
    stop = Event()
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _figures(ends: Sequence[StepEnd]) -> Facts:
    """The figures of a batch, or of a task's chunks together, amounts as text."""
    found = [end.figures for end in ends if end.figures is not None]
    sums: dict[str, Facts] = {}
    for currency in {currency: None for figures in found for currency in figures.sums}:
        parts = [figures.sums[currency] for figures in found if currency in figures.sums]
        words = ("asked", "arrived")
        sums[currency] = {word: as_text(sum((each[word] for each in parts), Decimal(0))) for word in words}
    return {
        "chunks": [end.chunk for end in ends if end.chunk is not None],
        "rows": sum(figures.rows for figures in found),
        "done": sum(figures.done for figures in found),
        "in_doubt": sum(figures.counts["in_doubt"] for figures in found),
        "sums": sums,
        "is_clean": ends[-1].is_clean,
    }


def _finish(facts: Facts, following: Next, tasks: int = 1) -> None:
    """Show how far a task is. Raises what fails it, or lets Airflow call it again, unless it is done."""
    from airflow.sdk import get_current_context, timezone
    from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException

    is_odd = facts.get("is_clean") is False
    reason = "the service's list does not agree with the ledger" if is_odd else facts.get("reason")
    rows = f"{facts['done']} of {facts['rows']} rows done" if "done" in facts else None
    line = "; ".join(filter(None, (facts["batch_id"], rows, reason or facts["next"])))
    context: Any = get_current_context()
    context["progress"] = line  # names a mapped task on the page
    is_quiet = isinstance(following, Done) and not is_odd
    _log.log(logging.INFO if is_quiet else logging.WARNING, "%s", line)
    if isinstance(following, Done):
        return
    context["ti"].xcom_push(key="progress", value=facts)
    if isinstance(following, Never):
        raise AirflowFailException(following.reason)
    seconds = following.seconds if isinstance(following, Wait) else 0.0
    if isinstance(following, Held):
        seconds = max(_ASK_AGAIN, _PER_TASK * tasks)
    raise AirflowRescheduleException(timezone.utcnow() + timedelta(seconds=seconds))
