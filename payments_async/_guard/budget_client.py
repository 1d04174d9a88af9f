"""Carries the sums of one guard to a store, on the store client's thread, for callers on any loop.

All that waits goes in one exchange: reservations at once, outcomes within a second. Takes no lock, so that
the garbage collector may end a call in the middle of anything.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final

import attrs

from .._rate_limit.store import LimitRow
from .._rate_limit.waiters import NEVER
from .._runtime import Runtime
from ..errors import ConfigurationError, LimitStoreUnavailable
from ._state.compare_and_set import LimitStore
from ._state.store_client import StoreClient
from .budgets import BUDGETS, MOST_REFUSALS, REFUSALS, Limits, Outcome, Shortage, WriteAmount
from .serial import Serial

PATIENCE: Final = 5.0
"""Seconds after which a state that is away refuses."""
REPORT_AFTER: Final = 1.0
"""Seconds within which outcomes are reported."""

Granted = tuple[int, Shortage | None]
"""How many amounts were reserved, and why the next was not."""


@attrs.frozen(eq=False)
class Question:
    """Amounts that a caller wants to reserve."""

    amounts: Sequence[WriteAmount]
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Granted]

    def tell(self, granted: Granted | ConfigurationError) -> None:
        """Pass the answer on, from any thread. A caller that is gone needs none."""
        with suppress(RuntimeError):  # its loop was closed meanwhile
            self.loop.call_soon_threadsafe(self._set, granted)

    def _set(self, granted: Granted | ConfigurationError) -> None:
        if self.answer.done():
            return
        if isinstance(granted, ConfigurationError):
            self.answer.set_exception(granted)
        else:
            self.answer.set_result(granted)


class BudgetClient:
    """The sums of one guard in a store (`store_client.StoreUser`)."""

    def __init__(self, store: StoreClient, row: LimitRow, runtime: Runtime) -> None:
        self._store, self._row, self._runtime = store, row, runtime
        self.limits: Limits = {}
        path = store.address.removeprefix("sqlite:")
        self._has_wall_clock = path == store.address  # a file's clock cannot be set
        self._serial = None if self._has_wall_clock else Serial(path, f"{row.address} {row.fingerprint}")
        self._last: tuple[Sequence[float], float] | None = None
        self._begin_anew()

    async def reserve(self, amounts: Sequence[WriteAmount], seconds: float) -> Granted:
        """Reserve amounts in order, within so many seconds.

        Raises LimitStoreUnavailable, TimeoutError where less time was given than a store may take, and
        ConfigurationError for a wrong state.
        """
        loop = asyncio.get_running_loop()
        question = Question(amounts, loop, loop.create_future())
        timer = self._runtime.call_later(min(seconds, PATIENCE), question.answer.cancel, background=True)
        self._asked.append(question)
        self._store.call(self)
        try:
            return await question.answer
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
        finally:
            timer.cancel()
        outage = self._store.outage
        if outage is None and seconds < PATIENCE:
            raise TimeoutError
        why = "it did not answer" if outage is None else outage.reason
        raise LimitStoreUnavailable(f"the guard's sums cannot be read: {why}", retry_after=PATIENCE)

    def settle(self, amount: WriteAmount, outcome: Outcome) -> None:
        """Report an outcome within a second."""
        self._report(self._outcomes, (amount.name, outcome, amount.claim))

    def note_refusal(self, refusal: Mapping[str, Any]) -> None:
        """Report a refusal within a second, for `payments guard show`."""
        self._report(self._refused, refusal)

    def end(self) -> None:
        """End the store's thread as soon as all is reported."""
        self._store.end()

    def forked(self) -> None:
        """Begin anew in a forked child: what waits is the parent's."""
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._asked: deque[Question] = deque()
        self._outcomes: deque[tuple[str, Outcome, int]] = deque()
        self._refused: deque[Mapping[str, Any]] = deque(maxlen=MOST_REFUSALS)
        self._report_at = NEVER

    def _report(self, queue: deque[Any], fact: Any) -> None:
        queue.append(fact)
        if self._report_at == NEVER:
            self._report_at = self._runtime.monotonic() + REPORT_AFTER
            self._store.call(self)

    # For the store client

    @property
    def has_waiters(self) -> bool:
        """True if something is to be asked or reported."""
        return bool(self._asked) or self.has_reports

    @property
    def has_reports(self) -> bool:
        """True if an outcome or a refusal is to be reported."""
        return bool(self._outcomes or self._refused)

    def plan(self, now: float) -> float:
        """When to ask or report next; `NEVER` while there is nothing."""
        return now if self._asked else self._report_at

    def dismiss(self) -> None:
        """Nothing is planned: the next outcome calls the store client."""
        self._report_at = NEVER

    def lose(self, now: float, *, again: bool = False) -> None:
        """The store cannot be reached: callers wait for `PATIENCE`, unless it has to be corrected."""
        outage = self._store.outage
        if outage is not None and outage.is_refusal:
            for question in _taken(self._asked):
                question.tell(ConfigurationError(f"the guard's sums cannot be read: {outage.reason}"))

    async def exchange(self, store: LimitStore, monotonic: Callable[[], float]) -> None:
        """Reserve and report all that waits. Raises StoreUnavailable, ConfigurationError."""
        self._report_at = NEVER
        questions = [each for each in _taken(self._asked) if not each.answer.done()]
        outcomes, refused = _taken(self._outcomes), _taken(self._refused)
        try:
            if questions or outcomes:
                values = self._values(questions, outcomes, monotonic())
                answer, _ = await store.change(self._row, BUDGETS, "exchange", values)
                # from the answer, not the question: what was slow must not look like a clock set back
                self._last = answer["last"], monotonic()
                self._note(answer["last"])
                for question, granted in zip(questions, answer["granted"], strict=True):
                    question.tell(_granted(granted))
                questions, outcomes = [], []
            if refused:
                row = attrs.evolve(self._row, kind="refusals")
                await store.change(row, REFUSALS, "add", {"refusals": refused})
                refused = []
        finally:
            for queue, left in (
                (self._asked, questions),
                (self._outcomes, outcomes),
                (self._refused, refused),
            ):
                queue.extendleft(reversed(left))
            if outcomes or refused:
                self._report_at = monotonic() + REPORT_AFTER

    async def begin(self, store: LimitStore) -> None:
        """Trust the windows from now on. Raises StoreUnavailable, ConfigurationError."""
        values = self._values([], [], self._runtime.monotonic())
        answer, _ = await store.change(self._row, BUDGETS, "begin", values)
        self._note(answer["last"])

    async def show(self, store: LimitStore) -> tuple[list[Any], list[Any]]:
        """Of each sum what was paid, held and from when it is known; and the last refusals."""
        shown, now = await store.change(
            self._row, BUDGETS, "show", self._values([], [], self._runtime.monotonic())
        )
        row = attrs.evolve(self._row, kind="refusals")
        refusals, _ = await store.change(row, REFUSALS, "add", {"refusals": []})
        return [(*each, now) for each in shown["used"]], refusals

    def _note(self, last: Sequence[float]) -> None:
        if self._serial is not None:
            self._serial.note(last)

    def _values(self, questions: Sequence[Question], outcomes: Sequence[Any], now: float) -> dict[str, Any]:
        sums = [
            (currency, seconds, str(most))
            for currency, windows in self.limits.items()
            for seconds, most in windows
        ]
        last = None if self._last is None else [*self._last[0], now - self._last[1]]
        groups = [
            [(name, currency, str(amount), claim) for name, currency, amount, claim in question.amounts]
            for question in questions
        ]
        return {
            "sums": sums,
            "worker": self._store.worker,
            "wall": self._runtime.now().timestamp() if self._has_wall_clock else None,
            "last": last,
            "reached": self._serial.reached() if self._serial is not None and last is None else None,
            "outcomes": outcomes,
            "groups": groups,
        }


def _taken(queue: deque[Any]) -> list[Any]:
    taken = []
    while queue:
        taken.append(queue.popleft())
    return taken


def _granted(values: Sequence[Any]) -> Granted:
    count, short = values
    if short is None:
        return count, None
    currency, seconds, most, used, wait, is_known = short
    return count, Shortage(currency, seconds, Decimal(most), Decimal(used), wait, is_known)
