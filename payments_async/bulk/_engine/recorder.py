"""Records outcomes of rows in the ledger, many in one commit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Final

import attrs

from ..._runtime import Runtime, Timer
from ...errors import Effect
from .._ledger.ledger import Ledger
from .._protocol.records import LedgerRow, RowOutcome
from ..errors import BulkError
from ..ledger_errors import LedgerError

_DELAY: Final = 0.02
"""Seconds an outcome waits for others."""
_GROUP: Final = 200
_MOST: Final = 1000
"""Waiting outcomes; with more, `put` waits too."""


class OutcomesUnrecorded(BulkError):
    """The ledger could not record the outcomes of some rows: `.to_json()`. They stay in flight there.

    Nothing is lost: the next run sends them again under the same references and learns the same.
    """

    effects: ClassVar[tuple[Effect, ...]] = ("unknown",)
    remedy = "see to the ledger, then run the same batch again: it sends these rows under the same references"

    def __init__(self, cause: LedgerError, outcomes: Sequence[RowOutcome]) -> None:
        text = f"{cause}; {len(outcomes)} outcomes are not recorded, the next run will learn them again"
        super().__init__(text, effect="unknown")
        self.__cause__: BaseException | None = cause
        self.outcomes: tuple[RowOutcome, ...] = tuple(outcomes)
        """The unrecorded outcomes, without account data."""

    def to_json(self) -> str:
        """Encode the outcomes as JSON text, to be kept elsewhere."""
        fields = attrs.filters.exclude(
            "body_hash"
        )  # with the rest known, an account could be guessed from it
        return json.dumps([attrs.asdict(outcome, filter=fields) for outcome in self.outcomes])


class Recorder:
    """Commits outcomes in groups: of 200, or of all that came within 20 milliseconds."""

    def __init__(self, ledger: Ledger, runtime: Runtime) -> None:
        self._ledger, self._runtime = ledger, runtime
        self._waiting: list[RowOutcome] = []
        self._timer: Timer | None = None
        self._task: asyncio.Task[None] | None = None
        self._failure: LedgerError | None = None
        self.on_commit: Callable[[], object] = bool
        """Called after each commit."""
        self.on_failure: Callable[[LedgerError], object] = bool
        """Called once, when the ledger refuses."""

    async def put(self, outcome: RowOutcome) -> None:
        """Add an outcome; returns at once unless too many are waiting."""
        self._waiting.append(outcome)
        if len(self._waiting) >= _GROUP:
            self._start()
        elif self._timer is None:
            self._timer = self._runtime.call_later(_DELAY, self._start)
        if len(self._waiting) >= _MOST:
            await self.flush()

    async def record(self, outcomes: Iterable[RowOutcome]) -> tuple[LedgerRow, ...]:
        """Commit outcomes now. Returns no rows. A ledger that refuses ends the run, as ever."""
        for outcome in outcomes:
            await self.put(outcome)
        await self.flush()
        return ()

    async def flush(self) -> None:
        """Wait until all outcomes are recorded, or the ledger has refused."""
        while self._failure is None and (self._waiting or self._task is not None):
            await asyncio.shield(self._start())

    async def close(self) -> None:
        """Flush at the end of a run. Raises OutcomesUnrecorded when the ledger has refused."""
        await self.flush()
        self._stop_timer()
        if self._failure is not None:
            raise OutcomesUnrecorded(self._failure, self._waiting)

    def _start(self) -> asyncio.Task[None]:
        self._stop_timer()
        if self._task is None:
            self._task = asyncio.ensure_future(self._commit())
        return self._task

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _commit(self) -> None:
        try:
            while self._waiting and self._failure is None:
                group = self._waiting[:_MOST]
                await self._ledger.record(group)
                del self._waiting[: len(group)]
                self.on_commit()
        except LedgerError as error:
            self._failure = error
            self.on_failure(error)
        finally:
            self._task = None
