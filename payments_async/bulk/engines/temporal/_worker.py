"""The worker: the steps of one process as activities, and what Temporal hears of how they end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import quote

from temporalio import activity
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError
from temporalio.worker import Worker

from ...._runtime import Timer
from ....client import AsyncPayments
from ..._options import require_count
from ..._protocol.machines import LEASE
from ...errors import BulkError
from ...ledger_errors import LedgerUnavailable
from ...shared_batch import SharedBatch
from ...steps import Held, Never, Now, OnProgress, StepEnd, StepFailed, Steps, Wait
from .._arguments import require_page, require_version
from ._payroll import SEARCHED, Facts, Payroll

_TESTED: Final = ((1, 30), (2,))
_BEAT: Final = 5.0
_SHOWN: Final = 60.0
"""Seconds of a wait that the workflow makes itself, and shows; shorter ones are between two attempts."""
_ASK_AGAIN: Final = 20.0
"""Seconds after which the ledger is asked again whether a person has acted."""
_SHUTDOWN: Final = SimpleNamespace(is_set=activity.is_worker_shutdown)
"""Set once the worker that runs an activity is to end."""


class Activities:
    """The steps of one process, as activities."""

    def __init__(
        self, steps: Steps, client: AsyncPayments, page: str | None, attributes: list[str], **database: Any
    ) -> None:
        self._steps, self._runtime, self._database = steps, client._internal.runtime, database
        self._page, self._attributes = page, attributes

    @activity.defn
    async def plan(self, payroll: Payroll) -> Facts:
        with self._alive():
            plan = await self._steps.plan(payroll.file, **payroll.options())
        page = self._page and self._page.replace("{batch_id}", quote(payroll.batch_id, safe=""))
        return {**plan.facts(), "page": page, "attributes": self._attributes}

    @activity.defn
    async def pay(self, batch_id: str, chunk: int) -> Facts:
        return await self._made(lambda **beat: self._steps.pay(batch_id, chunk, **beat))

    @activity.defn
    async def settle(self, batch_id: str, is_held: bool) -> Facts:
        return await self._made(lambda **beat: self._steps.settle(batch_id, **beat), is_held=is_held)

    @activity.defn
    async def close(self, batch_id: str, follow: bool) -> Facts:
        return await self._made(lambda **beat: self._steps.close(batch_id, follow=follow, **beat))

    @activity.defn
    async def command(self, batch_id: str, name: str) -> str | None:
        """Pause, resume, or cancel the rest of a batch. Returns the reason why that was refused."""
        try:
            async with SharedBatch.open(batch_id=batch_id, **self._database) as batch:
                await {"pause": batch.pause, "resume": batch.resume, "cancel_rest": batch.cancel_rest}[name]()
        except LedgerUnavailable as error:
            raise ApplicationError(str(error), type="LedgerUnavailable") from None
        except BulkError as error:
            return str(error)
        return None

    async def _made(self, step: Callable[..., Awaitable[StepEnd]], *, is_held: bool = False) -> Facts:
        """Call a step until it is done, a person has to act, or there is a long wait.

        With `is_held` a person has to act already, and that is waited for. Temporal tries again for each
        error that is raised here.
        """
        with self._alive() as on_progress:
            while True:
                end = await step(stop=_SHUTDOWN, on_progress=on_progress)
                match end.next:
                    case Never(reason):
                        raise ApplicationError(reason, type="Never", non_retryable=True)
                    case Now() if activity.is_worker_shutdown():
                        raise _again("another worker goes on", 1.0)
                    case Now():
                        continue
                    case Wait(seconds, reason) if seconds < _SHOWN and not is_held:
                        raise _again(reason, seconds)
                    case Held(_, reason) if is_held:
                        raise _again(reason, _ASK_AGAIN)
                return end.facts()

    @contextmanager
    def _alive(self) -> Iterator[OnProgress]:
        """Context of a call: it sends heartbeats, and its errors are Temporal's, without their causes."""
        shown: tuple[str, ...] = ()
        timer: Timer

        def note(*progress: int) -> None:
            nonlocal shown
            shown = (f"{' of '.join(f'{rows:,}' for rows in progress)} rows",)

        def beat() -> None:
            nonlocal timer
            activity.heartbeat(*shown)
            timer = self._runtime.call_later(_BEAT, beat, background=True)

        beat()
        try:
            yield note
        except StepFailed as error:
            if isinstance(error.next, Wait):
                delay = timedelta(seconds=error.next.seconds)
                raise ApplicationError(error.reason, type=error.cause, next_retry_delay=delay) from None
            raise ApplicationError(error.reason, type=error.cause, non_retryable=True) from None
        except BulkError as error:
            raise ApplicationError(str(error), type="Never", non_retryable=True) from None
        finally:
            timer.cancel()


def _again(reason: str, seconds: float) -> ApplicationError:
    """Make the error after which Temporal tries an activity again; it is no failure to log."""
    benign = ApplicationErrorCategory.BENIGN
    return ApplicationError(reason, type="Wait", next_retry_delay=timedelta(seconds=seconds), category=benign)


async def _registered(temporal: Client) -> list[str]:
    """The names of `SEARCHED` that the namespace has; none where that cannot be asked.

    A workflow that sets another name would wait until an operator registers it.
    """
    asked = ListSearchAttributesRequest(namespace=temporal.namespace)
    try:
        found = (await temporal.operator_service.list_search_attributes(asked)).custom_attributes
    except RPCError:
        return []
    return [key.name for key in SEARCHED if found.get(key.name) == int(key.indexed_value_type)]


@asynccontextmanager
async def payroll_worker(
    temporal: Client,
    address: str,
    client: AsyncPayments,
    *,
    task_queue: str = "payroll",
    slots: int = 2,
    concurrency: int = 192,
    drain: float = 30.0,
    insecure_database: bool = False,
    page: str | None = None,
) -> AsyncIterator[Worker]:
    """Context of a running worker. When it ends, rows under way are recorded, and no further one is begun.

    `slots`: chunks that it pays at a time. `page`: address of a page about the batch, to which Temporal's
    page links; `{batch_id}` in it is the batch's name. For the other arguments see `Steps`. Raises BulkError.
    """
    require_version("temporalio", *_TESTED)
    require_count("slots", slots)
    require_page(page)
    attributes = await _registered(temporal)
    database: dict[str, Any] = {"address": address, "insecure_database": insecure_database}
    from ._workflow import PayrollWorkflow  # which loads this

    async with Steps(client=client, concurrency=concurrency, drain=drain, **database) as steps:
        own = Activities(steps, client, page, attributes, **database)
        async with Worker(
            temporal,
            task_queue=task_queue,
            workflows=[PayrollWorkflow],
            activities=[own.plan, own.pay, own.settle, own.close, own.command],
            max_concurrent_activities=slots,
            max_heartbeat_throttle_interval=timedelta(seconds=_BEAT),  # an answer may say: it is cancelled
            graceful_shutdown_timeout=timedelta(seconds=drain + LEASE),
        ) as worker:
            yield worker
