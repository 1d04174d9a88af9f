"""The figures of runs: counted in memory until a commit stores them.

The database has each figure in several rows, which are called lanes. A process adds to one lane only, so that
processes do not wait for each other's commits; a reader sums the lanes up. A commit writes lanes last, after
chunks, entries and the batch, and in rising order, so that no two commits wait for one another.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from zlib import crc32

from .._protocol.attempts import NO_ATTEMPTS, RowAttempt, RowAttempts, one_attempt
from .._protocol.run_figures import (
    BOUNDS,
    ENDINGS,
    MOST_BUCKETS,
    SHORTENED,
    AnswerTimes,
    Ending,
    RunFigures,
    RunSeries,
    SeriesBucket,
    time_class,
    unreadable_figures,
)
from ..ledger_errors import LedgerDamaged, LedgerError
from .chunks import of_batch
from .statements import Rows
from .stored_rows import UnreadableRecord, readable
from .transactions import LedgerDatabase, Purpose, Snapshots, Transaction

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


_WHOLE_EVERY: Final = 60.0
"""Seconds between two readings of a whole series, and before one of them of what is read each time."""


async def write(transaction: Transaction, batch: int, session: str, figures: RunFigures) -> None:
    """Add the figures that a session has of a part of a run."""
    sql = transaction.sql
    own = batch, crc32(session.encode()) % sql.lanes
    transaction.lock(f"payments series {own}")
    found, ((buckets,),) = await transaction.read(
        of_batch(batch, sql.attempts, batch, sorted(figures.attempts)), (sql.count_buckets, own)
    )
    after = figures.attempts_after(_attempts(found))
    changed = ((number, after[number].text) for number in sorted(after))
    transaction.write(*(of_batch(batch, sql.set_attempts, batch, *each) for each in changed))
    series = figures.series
    if buckets + len(series.buckets) > MOST_BUCKETS:
        series = await _shortened(transaction, own, series)
    transaction.write(*((sql.add_bucket, (*own, *_values(bucket))) for bucket in series.buckets))
    times = sorted(figures.series.times.by_class().items())
    transaction.write(*((sql.add_times, (*own, class_, answers)) for class_, answers in times))


async def _shortened(transaction: Transaction, own: tuple[int, int], added: RunSeries) -> RunSeries:
    """Take the lane's buckets out, and merge neighbours of these and the added ones."""
    (found,) = await transaction.read((transaction.sql.own_buckets, own))
    transaction.write((transaction.sql.remove_buckets, own))
    buckets = (*map(SeriesBucket.read, found), *added.buckets)
    return RunSeries.of(buckets, AnswerTimes(), most=int(MOST_BUCKETS * SHORTENED))


def _values(bucket: SeriesBucket) -> tuple[Any, ...]:
    counts = (getattr(bucket, name) for name in ENDINGS)
    return bucket.at, bucket.seconds, *counts, bucket.limit, bucket.closed


class StoredSeries:
    """The series of a batch, over all processes: read whole once a minute, else only its end."""

    def __init__(self) -> None:
        self._head = RunSeries()  # without answer times
        self._since = 0
        self._read_at: float | None = None

    async def read(self, database: LedgerDatabase, batch: int, now: float) -> RunSeries:
        """Read it. Raises LedgerError, UnreadableRecord."""
        if self._read_at is not None and now - self._read_at < _WHOLE_EVERY:
            latest = await series(database, batch, self._since)
            if latest.seconds <= self._head.seconds:
                return self._head + latest
        whole = await series(database, batch)
        self._since, self._read_at = int(now - _WHOLE_EVERY) // whole.seconds * whole.seconds, now
        before = tuple(each for each in whole.buckets if each.at < self._since)
        self._head = RunSeries(before, AnswerTimes())
        return whole


async def series(database: Snapshots, batch: int, since: int = 0) -> RunSeries:
    """Read the buckets from a second on, and all answer times. Raises LedgerError, UnreadableRecord."""
    sql = database.sql
    buckets, times = await database.read(
        (sql.buckets, (batch, since)), (sql.times, (batch,)), purpose=Purpose.FIGURES
    )
    with readable("the figures of a run"):
        answers = Counter[int]()
        for class_, number in times:
            answers[class_] += number
        return RunSeries.of(map(SeriesBucket.read, buckets), AnswerTimes.of_classes(answers))


async def unreadable(database: Snapshots, batch: int) -> tuple[str, ...]:
    """Name the figures that cannot be read, for a check. Raises LedgerError when all is away."""
    has_series = has_attempts = True
    damaged: list[int] = []
    try:
        await series(database, batch)
    except (UnreadableRecord, LedgerDamaged):
        has_series = False
    try:
        last = -1
        while page := (await _page(database, batch, last)):
            damaged += [number for number, text in page if not RowAttempts.of_text(text).made]
            last, _ = page[-1]
    except LedgerDamaged:
        has_attempts = False
    return unreadable_figures(has_series, has_attempts, damaged)


async def _page(database: Snapshots, batch: int, after: int) -> Rows:
    reading = of_batch(batch, database.sql.attempts_after, batch, after)
    (page,) = await database.read(reading, purpose=Purpose.FIGURES)
    return page


async def attempts(
    database: LedgerDatabase, batch: int, numbers: Collection[int]
) -> Mapping[int, RowAttempts]:
    """Read the attempts of rows. Raises LedgerError."""
    statement = of_batch(batch, database.sql.attempts, batch, sorted(numbers))
    return _attempts((await database.read(statement, purpose=Purpose.FIGURES))[0])


def _attempts(found: Rows) -> dict[int, RowAttempts]:
    return {number: RowAttempts.of_text(text) for number, text in found}
