"""Stores the figures of runs: each process adds to its own lane, and a reader sums over all.

Lanes keep processes from waiting for each other's commits. Their rows are written after chunks, entries and
the batch, in rising order, so that no two commits can wait for one another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, Final
from zlib import crc32

from ..ledger_errors import LedgerDamaged
from ..protocol.attempts import RowAttempts
from ..protocol.run_figures import (
    ENDINGS,
    MOST_BUCKETS,
    SHORTENED,
    AnswerTimes,
    RunFigures,
    RunSeries,
    SeriesBucket,
    unreadable_figures,
)
from .database import LedgerDatabase, Purpose, Transaction
from .rows import UnreadableRecord, readable
from .statements import Rows

_WHOLE_EVERY: Final = 60.0
"""Seconds between two readings of a whole series, and before one of them of what is read each time."""


async def write(transaction: Transaction, batch: int, session: str, figures: RunFigures) -> None:
    """Add the figures that a session has of a part of a run."""
    sql = transaction.sql
    own = batch, crc32(session.encode()) % sql.lanes
    transaction.lock(f"payments series {own}")
    found, ((buckets,),) = await transaction.read(
        (sql.attempts, (batch, sorted(figures.attempts))), (sql.count_buckets, own)
    )
    after = figures.attempts_after(_attempts(found))
    for number in sorted(after):
        transaction.write((sql.set_attempts, (batch, number, after[number].text)))
    series = figures.series
    if buckets + len(series.buckets) > MOST_BUCKETS:
        series = await _shortened(transaction, own, series)
    for bucket in series.buckets:
        transaction.write((sql.add_bucket, (*own, *_values(bucket))))
    for class_, answers in sorted(figures.series.times.by_class().items()):
        transaction.write((sql.add_times, (*own, class_, answers)))


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


async def series(database: LedgerDatabase, batch: int, since: int = 0) -> RunSeries:
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


async def unreadable(database: LedgerDatabase, batch: int) -> tuple[str, ...]:
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


async def _page(database: LedgerDatabase, batch: int, after: int) -> Rows:
    (page,) = await database.read((database.sql.attempts_after, (batch, after)), purpose=Purpose.FIGURES)
    return page


async def attempts(
    database: LedgerDatabase, batch: int, numbers: Collection[int]
) -> Mapping[int, RowAttempts]:
    """Read the attempts of rows. Raises LedgerError."""
    statement = (database.sql.attempts, (batch, sorted(numbers)))
    return _attempts((await database.read(statement, purpose=Purpose.FIGURES))[0])


def _attempts(found: Rows) -> dict[int, RowAttempts]:
    return {number: RowAttempts.of_text(text) for number, text in found}
