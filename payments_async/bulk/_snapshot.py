"""What a reader shows of a batch, as of one moment: for a page, a board or a line."""

from __future__ import annotations

import attrs

from ._report import BatchReport
from .ledger.operators import ListedWorker
from .protocol.records import Header
from .protocol.run_figures import RunSeries, SpeedFigures


@attrs.frozen(kw_only=True)
class Snapshot:
    """A batch at one moment."""

    at: float = attrs.field(eq=False)
    """Seconds since 1970, on the client's clock; of a batch in a database on the database's."""
    header: Header
    """The batch, account and input that the ledger is bound to, and what was imported."""
    report: BatchReport
    """Counts, sums and, while this process works on the batch, its present activity."""
    series: RunSeries
    """The answers of all runs so far."""
    rule: str | None = None
    """Why the stop rules let no further row of a batch in a database be taken; None while they do."""
    workers: tuple[ListedWorker, ...] = attrs.field(default=(), eq=False)
    """The workers that hold rows of a batch in a database."""

    @property
    def speed(self) -> SpeedFigures:
        """How it is doing, in a few figures."""
        return SpeedFigures.of(self.series, self.at)
