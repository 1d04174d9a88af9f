"""Batches on Celery: a task a chunk, for the workers that you have. Extra `celery`.

    app = Celery("payroll", broker="redis://…", broker_transport_options={"visibility_timeout": 900})
    payroll = Payroll(app, "postgresql://…")  # in the module that the workers load

    payroll.start("june.csv", batch_id="june", confirm_total={"GHS": "1200.50"})

Celery may run a task twice, late or never: the ledger decides who may send. What the broker has lost is made
good by starting the batch once more. Pools `prefork`, `threads` and `solo`.
"""

from __future__ import annotations

import asyncio
import math
import mmap
import os
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final, TypeVar

import attrs

from ..._extras import needs

try:
    from celery import Celery, Task
    from celery.exceptions import Reject, SoftTimeLimitExceeded
    from celery.result import AsyncResult
    from celery.signals import worker_process_shutdown, worker_shutdown, worker_shutting_down
    from kombu.exceptions import OperationalError
except ImportError as _missing:
    raise ImportError(needs("batches on Celery need", "celery")) from _missing

from ..._runtime import Runtime
from ...client import AsyncPayments
from ...errors import PaymentsError
from ...params import Money
from .. import _options
from .._leasing.step_context import database_address
from .._leasing.step_ends import next_facts
from .._protocol.machines import LEASE
from ..errors import BulkError
from ..steps import (
    BatchPlan,
    Done,
    Held,
    HoldReason,
    Never,
    Next,
    Now,
    StepEnd,
    StepFailed,
    Steps,
    StopSignal,
    Wait,
)
from ._arguments import plan_arguments, require_version

__all__ = ["Payroll"]

_TESTED: Final = ((5, 6), (6,))
_LONG: Final = 900.0
"""Seconds of a visibility time-out above which a warning says how long a dead worker's chunk waits."""
_ASK_AGAIN: Final = 300.0
"""Seconds after which the ledger is asked again whether a person has acted."""
_UNUSABLE: Final = 60.0
"""Seconds after which a task is tried again whose process could not make its client."""
_DAY: Final = 86_400.0
_Result = TypeVar("_Result")
Facts = dict[str, Any]
"""JSON values."""
_Job = tuple[str, tuple[Any, ...], float]
"""(name of a step, its arguments, seconds until it is called)."""


class Payroll:
    """Pays batches by tasks of a Celery app: `payroll.plan`, `.pay`, `.settle`, `.close` and `.follow`.

    A task returns how its step ended, and fails if the step can never succeed. `payroll.follow`, with a batch
    id, reads the list once for payouts of a closed batch that are not final: let `beat` call it daily.
    """

    def __init__(
        self,
        app: Celery,
        address: str,
        *,
        client: Callable[[], AsyncPayments] = AsyncPayments,
        time_limit: float = 300.0,
        concurrency: int = 192,
        drain: float = 30.0,
        insecure_database: bool = False,
    ) -> None:
        """Register the tasks, and let the app's workers fetch no task before they can run it.

        Args:
            app: configured, its broker's visibility time-out too.
            address: the database, `postgresql://user@host/name`.
            client: makes the client of a worker process.
            time_limit: seconds until Celery kills a task. `drain` and 30 seconds before, `pay` begins
                no further row, and queues its chunk again. Importing a file, and reading the service's list,
                must end within it. The broker's visibility time-out must be twice as long.
            concurrency: see `Steps`.
            drain: see `Steps`.
            insecure_database: see `Steps`.

        Raises:
            BulkError: an argument is invalid, or the broker delivers a task again that may still run.
        """
        address = database_address(address)  # first: tracebacks may show it
        require_version("celery", *_TESTED)
        _options.require_seconds("time_limit", time_limit)
        _options.require_seconds("drain", drain, allows_none=True)
        _options.require_count("concurrency", concurrency)
        self._attempt: float = time_limit - drain - 2 * LEASE
        """Seconds after which `pay` begins no further row."""
        if self._attempt <= 0:
            raise BulkError(f"time_limit must be more than {drain + 2 * LEASE:g} seconds: `drain` and 30")
        if "payroll.plan" in app.tasks:
            raise BulkError("an app has one Payroll")
        self._longest: float = _visibility_timeout(app, time_limit) / 3
        """Seconds that a message may be held back: it ages, and its task has to run as well."""
        own = {"concurrency": concurrency, "drain": drain, "insecure_database": insecure_database}
        self._open = partial(_Process, client, address, patience=self._attempt / 2, **own)
        self._process: _Process | None = None
        self._opening = threading.Lock()
        # shared by the processes of a pool: only the first one is told that the worker ends
        self._is_shutting_down = mmap.mmap(-1, 1)
        app.conf.worker_prefetch_multiplier = 1
        options: Facts = {
            "shared": False,  # with other apps of the process
            "acks_late": True,
            "acks_on_failure_or_timeout": False,  # a process that was killed has not done its task
            "reject_on_worker_lost": True,
            "time_limit": time_limit,
            "soft_time_limit": time_limit - LEASE,
        }
        self._tasks: dict[str, Task[..., Any]] = {}
        for name in ("plan", "pay", "settle", "close", "follow"):
            self._tasks[name] = app.task(name=f"payroll.{name}", **options)(self._step(name))
        worker_shutting_down.connect(self._note_shutdown, weak=False)
        for signal in (worker_process_shutdown, worker_shutdown):
            signal.connect(self._leave, weak=False)

    def start(
        self,
        file: str | os.PathLike[str],
        *,
        batch_id: str,
        confirm_total: Mapping[str, Money] | None = None,
        confirm_from: str | os.PathLike[str] | None = None,
        max_amount: Money | None = None,
        max_rows: int | None = None,
        max_failure_rate: float | None = None,
        pay_again: bool = False,
        lossy_standby: bool = False,
    ) -> AsyncResult[Any]:
        """Let the workers pay a file, and close its batch. It can be called again at any time.

        The file is read by a worker, on whose host it has to be. For the arguments see `Steps.plan`. Without
        a confirmed total a live batch waits for `payments payouts confirm`. Returns the task that imports.

        Raises:
            BulkError: an argument is invalid, or looks like an account.
        """
        options = plan_arguments(
            os.fspath(file),
            batch_id,
            confirm_total=confirm_total,
            confirm_from=None if confirm_from is None else os.fspath(confirm_from),
            max_amount=max_amount,
            max_rows=max_rows,
            max_failure_rate=max_failure_rate,
            pay_again=pay_again,
            lossy_standby=lossy_standby,
        )
        name = options.pop("batch_id")
        return self._tasks["plan"].delay(name, options.pop("file"), options)

    def _step(self, name: str) -> Callable[..., Facts]:
        """Make the function of a task, which makes a step and queues what follows it."""

        def task(*arguments: Any) -> Facts:
            try:
                following, facts = self._ended(name, arguments)
                for then, its, seconds in _follow_ups(name, arguments, following, facts):
                    self._tasks[then].apply_async(its, countdown=min(seconds, self._longest))
            except (SoftTimeLimitExceeded, OperationalError) as error:  # too slow; or the broker is away
                raise Reject(type(error).__name__, requeue=True) from None
            return facts

        return task

    def _ended(self, name: str, arguments: tuple[Any, ...]) -> tuple[Next, Facts]:
        """Make a step on the process's own loop: what follows, and the facts of its end."""
        try:
            with self._opening:
                process = self._process = self._process or self._open()
        except (ImportError, PaymentsError) as error:
            following = Wait(_UNUSABLE, str(error))
            return following, next_facts(following)
        seconds = self._attempt if name == "pay" else math.inf
        stop = _Stop(process.runtime, self._is_shutting_down, process.runtime.monotonic() + seconds)
        call = process.begin(_call(process.steps, name, arguments, stop))
        try:
            end = call.result()
        except StepFailed as failure:
            return failure.next, next_facts(failure.next)
        except BulkError as error:
            return Never(str(error)), {}
        finally:
            call.cancel()  # if it is too slow: it records what is under way
        return end.next, end.facts()

    def _note_shutdown(self, **_: Any) -> None:
        self._is_shutting_down[0] = 1

    def _leave(self, **_: Any) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None


class _Process:
    """The event loop of a worker process, on a thread of its own, with its client and its steps."""

    def __init__(self, client: Callable[[], AsyncPayments], address: str, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._stack = AsyncExitStack()
        self._thread = threading.Thread(target=self._loop.run_forever, name="payroll", daemon=True)
        self._thread.start()
        try:
            self.begin(self._opened(client, address, options)).result()
        except BaseException:
            self.close()
            raise

    async def _opened(self, client: Callable[[], AsyncPayments], address: str, options: Facts) -> None:
        own = await self._stack.enter_async_context(client())
        self.runtime: Runtime = own._internal.runtime
        self.steps = await self._stack.enter_async_context(Steps(address, own, **options))

    def begin(self, call: Coroutine[Any, Any, _Result]) -> Future[_Result]:
        """Begin a call on the loop."""
        return asyncio.run_coroutine_threadsafe(call, self._loop)

    def close(self) -> None:
        """Give leases back, and close all connections."""
        self.begin(self._stack.aclose()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@attrs.frozen
class _Stop:
    """Set once the worker is to end, or at a time."""

    runtime: Runtime
    is_shutting_down: mmap.mmap
    at: float

    def is_set(self) -> bool:
        return bool(self.is_shutting_down[0]) or self.runtime.monotonic() >= self.at


def _call(
    steps: Steps, name: str, arguments: tuple[Any, ...], stop: StopSignal
) -> Coroutine[Any, Any, StepEnd | BatchPlan]:
    """Call the step of a task. Only `pay` and `settle` have got further when they are stopped."""
    batch_id = arguments[0]
    match name:
        case "plan":
            return steps.plan(arguments[1], batch_id=batch_id, **arguments[2])
        case "pay":
            return steps.pay(batch_id, arguments[1], stop=stop)
        case "settle":
            return steps.settle(batch_id, stop=stop)
    return steps.close(batch_id, follow=name == "follow", stop=stop)


def _follow_ups(name: str, arguments: tuple[Any, ...], following: Next, facts: Facts) -> Iterator[_Job]:
    """Decide which tasks follow the end of one. Pure. Raises BulkError if the step can never succeed.

    Every chunk that is paid asks for `settle` once. The import asks for the one that is repeated until all
    rows are settled and the batch is closed: copies that repeat themselves would add up.
    """
    batch_id = arguments[0]
    match name, following:
        case _, Never(reason):
            raise BulkError(reason)
        case "plan", Held(HoldReason.TOTAL, reason) if (
            "confirm_total" in arguments[2] or "confirm_from" in arguments[2]
        ):
            raise BulkError(reason)  # nobody can change the total that this task brings
        case "plan", Now():
            yield from (("pay", (batch_id, chunk), 0.0) for chunk in range(1, facts["chunks"] + 1))
            yield "settle", (batch_id, True), 0.0
        case "pay", Done():
            yield "settle", (batch_id, False), 0.0
        case "settle", Done():
            yield "close", arguments, 0.0
        case "settle" | "close", _ if not arguments[1]:
            pass
        case _, Now():
            yield name, arguments, 0.0
        case _, Held():
            yield name, arguments, _ASK_AGAIN
        case _, Wait(seconds) if seconds < _DAY:
            yield name, arguments, seconds


def _visibility_timeout(app: Celery, time_limit: float) -> float:
    """Seconds after which the broker delivers a task again that is not acknowledged. Raises BulkError.

    RabbitMQ notices at once that a worker has died, and closes the connection of one that is too slow.
    """
    kind = app.connection_for_write().transport.driver_type
    given = app.conf.broker_transport_options.get("visibility_timeout")
    seconds = float(given or (3600.0 if kind == "redis" else 1800.0))  # as kombu, and RabbitMQ
    how = 'set broker_transport_options={"visibility_timeout": …}'
    if seconds < 2 * time_limit:
        raise BulkError(
            f"a task is delivered again after {seconds:g} seconds, and may run for {time_limit:g}: {how} to "
            f"{2 * time_limit:g} or more, or a shorter time_limit"
        )
    if seconds > _LONG and kind != "amqp":
        warnings.warn(
            f"the chunk of a worker that dies waits for {seconds:g} seconds: {how} to "
            f"{max(_LONG, 2 * time_limit):g}",
            RuntimeWarning,
            stacklevel=3,
        )
    return seconds
