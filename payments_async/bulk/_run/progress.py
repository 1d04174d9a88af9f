"""The figures of a batch while it runs: read now and then, and kept up to date by what this process does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Final

import attrs

from ..._emitter import logger
from ..._runtime import Runtime, Timer
from .._ledger import figures
from .._ledger.figures import Figures
from .._ledger.ledger import Ledger
from .._protocol.answers import Word
from .._protocol.outcomes import Outcome, add_rows, count_rows
from .._protocol.records import LedgerRow
from ..report import Activity, BatchFigures, batch_figures_of
from .service import Service

_EVERY: Final = 5.0  # seconds between two reports of progress, and two readings of figures, at most
_SHARE: Final = 20
"""The time between two readings of the figures is at least so many times that of the last one."""


class Progress:
    def __init__(
        self, ledger: Ledger, service: Service, on_progress: Callable[[BatchFigures], object] | None
    ) -> None:
        self._ledger, self._service, self._hook = ledger, service, on_progress
        self._totals: dict[tuple[Outcome, str], tuple[int, Decimal]] = {}
        self.figures: Figures | None = None  # as they were read last
        self._due = 0.0
        self.activity: Activity = Activity(doing="paying")

    @property
    def environment(self) -> str:
        """Of an outbox, whose rows count."""
        return self._service.account.environment if self._ledger.known.is_outbox else ""

    async def refresh(self) -> Figures:
        """Read the figures anew. Raises LedgerError."""
        began = self._service.runtime.monotonic()
        self.figures = await figures.figures(self._ledger, self.environment)
        self._totals = dict(self.figures.totals)
        ended = self._service.runtime.monotonic()
        self._due = ended + max(_EVERY, _SHARE * (ended - began))
        return self.figures

    def count(self, outcome: Outcome) -> int:
        """Count the rows of an outcome, as they were read last and changed by this process."""
        return count_rows(self._totals, outcome)

    async def refresh_if_due(self) -> None:
        """Read them anew if that is a while ago. Raises LedgerError."""
        if self._hook is not None and self._service.runtime.monotonic() >= self._due:
            await self.refresh()
            self.tell()

    def taken(self, rows: Sequence[LedgerRow]) -> None:
        """Count rows as under way."""
        for row in rows:
            before = Outcome.IN_DOUBT if row.doubted else Outcome.NOT_STARTED
            self._move(row, before, Outcome.UNDER_WAY)

    def spoken(self, words: Sequence[Word]) -> None:
        for word in words:
            self._move(word.row, Outcome.UNDER_WAY, word.outcome)
        self.tell()

    def _move(self, row: LedgerRow, before: Outcome, after: Outcome) -> None:
        if self._totals.get((before, row.currency), (0, 0))[0]:
            add_rows(self._totals, (before, row.currency), -1, row.amount.copy_negate())
            add_rows(self._totals, (after, row.currency), 1, row.amount)

    def doing(self, activity: Activity) -> None:
        if activity != self.activity:
            self.activity = activity
            self.tell()

    def tell(self) -> None:
        """Call the caller's hook. It cannot break the run."""
        if self._hook is None or self.figures is None:
            return
        totals = {place: total for place, total in self._totals.items() if total[0]}
        activity = attrs.evolve(self.activity, listed=self._service.listed)
        told = batch_figures_of(totals, self.figures.extra, activity)
        try:
            self._hook(told)
        except Exception as error:
            logger.warning("on_progress failed: %s", type(error).__name__)


@contextmanager
def repeated(runtime: Runtime, report: Callable[[], object]) -> Iterator[None]:
    """Call `report` every five seconds of the runtime's time."""
    timer: Timer

    def beat() -> None:
        nonlocal timer
        timer = runtime.call_later(_EVERY, beat, background=True)
        report()

    timer = runtime.call_later(_EVERY, beat, background=True)
    try:
        yield
    finally:
        timer.cancel()
