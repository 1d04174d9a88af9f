"""Counts what comes back during a run, in memory, until the ledger stores it after a commit."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from ..ledger_errors import LedgerDamaged, LedgerError
from ..protocol.attempts import NO_ATTEMPTS, RowAttempt, RowAttempts, one_attempt
from ..protocol.run_figures import (
    BOUNDS,
    AnswerTimes,
    Ending,
    RunFigures,
    RunSeries,
    SeriesBucket,
    time_class,
)

_log = logging.getLogger("payments_async")
_EVERY: Final = 1.0
"""Seconds between two commits that store figures."""


class RunRecorder:
    """The figures of a run that the ledger has not stored yet. Times are seconds since 1970."""

    def __init__(self) -> None:
        self._series = RunSeries()
        self._attempts: dict[int, RowAttempts] = {}
        self._bucket: dict[str, int] = {}
        self._second = 0
        self._times = [0] * (len(BOUNDS) + 1)
        self._limit: float | None = None
        self._closed = 0.0, 0.0  # from and until when, without what is in the series
        self._taken_at = 0.0
        self._is_stored, self._is_noted = True, False

    def add(self, at: float, ending: Ending, seconds: float) -> bool:
        """Count a request that ended now, after so many seconds. True if it is the first of its second."""
        bucket, second = self._bucket, int(at)
        is_first = second != self._second
        if is_first:
            self._keep()
            self._note_closed(at)
            bucket, self._second = self._bucket, second
        bucket[ending] = bucket.get(ending, 0) + 1
        if ending != "no_answer":
            self._times[time_class(seconds)] += 1
        return is_first

    def attempt(self, number: int, attempt: RowAttempt) -> None:
        """Keep an attempt of a row."""
        self._attempts[number] = self._attempts.get(number, NO_ATTEMPTS) + one_attempt(attempt)

    def limit(self, at: float, per_second: float, closed_for: float) -> None:
        """Note the limit in force, and for how many seconds it is closed."""
        self._limit = per_second
        self._note_closed(at)
        begin, end = self._closed
        self._closed = max(begin, at), max(end, at + closed_for)

    def pending(self, at: float = 0.0) -> RunFigures:
        """The figures that are not stored yet; of a closed limit, the part that has passed by then."""
        self._keep()
        self._note_closed(at)
        return RunFigures(self._series, dict(self._attempts))

    def added_to(
        self, stored: Mapping[int, RowAttempts], numbers: Iterable[int]
    ) -> Mapping[int, RowAttempts]:
        """Add the attempts of these rows that are not stored yet to the stored ones."""
        pending = {number: self._attempts[number] for number in numbers if number in self._attempts}
        return {**stored, **RunFigures(attempts=pending).attempts_after(stored)}

    def due(self, at: float) -> RunFigures | None:
        """Take the figures to store with a commit now; None when the last ones were stored just before."""
        if not self._is_stored or abs(at - self._taken_at) < _EVERY:
            return None
        self._taken_at = at
        return self.take(at)

    def take(self, at: float = 0.0) -> RunFigures | None:
        """Take the figures to store now; None when there are none, or storing them has failed."""
        if not self._is_stored:
            return None
        taken = self.pending(at)
        self._series, self._attempts = RunSeries(), {}
        return None if taken.is_empty else taken

    @contextmanager
    def storing(self, figures: RunFigures) -> Iterator[None]:
        """Where figures cannot be stored, keep this run's in memory from now on; nothing fails."""
        try:
            yield
        except Exception as error:
            self._note(error)
            both = figures + self.pending()
            self._series, self._attempts, self._is_stored = both.series, dict(both.attempts), False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Where stored figures cannot be read, go on without them. Raises LedgerError when all is away."""
        try:
            yield
        except Exception as error:
            if isinstance(error, LedgerError) and not isinstance(error, LedgerDamaged):
                raise
            self._note(error)

    def _note(self, error: Exception) -> None:
        if not self._is_noted:
            self._is_noted = True
            kind = type(error).__name__
            _log.warning(
                "the figures of this run cannot be stored or read (%s); nothing depends on them", kind
            )

    def _keep(self) -> None:
        """Add the bucket of this second to the series."""
        if self._bucket:
            no_answer = self._bucket.get("no_answer", 0)
            bucket = SeriesBucket(self._second, limit=self._limit, **self._bucket)
            self._series += RunSeries((bucket,), AnswerTimes(tuple(self._times), no_answer))
            self._bucket, self._times = {}, [0] * len(self._times)

    def _note_closed(self, at: float) -> None:
        """Add what has passed of a closed limit to the series: the rest may never pass in a run."""
        begin, until = self._closed
        end = min(until, at)
        if end > begin:
            self._closed = end, until
            places = range(int(begin), math.ceil(end))
            closed = [SeriesBucket(at, closed=min(at + 1.0, end) - max(at, begin)) for at in places]
            self._series += RunSeries.of(closed, AnswerTimes())
