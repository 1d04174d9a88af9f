"""Stores the figures of runs: each process adds to its own lane, and a reader sums over all.

Lanes keep processes from waiting for each other's commits. Their rows are written after chunks, entries and
the batch, in rising order, so that no two commits can wait for one another.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final
from zlib import crc32

from ...ledger_errors import LedgerDamaged
from ...protocol.attempts import RowAttempts
from ...protocol.run_figures import (
    ENDINGS,
    MOST_BUCKETS,
    SHORTENED,
    AnswerTimes,
    RunFigures,
    RunSeries,
    SeriesBucket,
    unreadable_figures,
)
from ..rows import UnreadableRecord, readable
from .driver.database import Database, Transaction
from .driver.session import Rows, Statement

_LANES: Final = 16
_WHOLE_EVERY: Final = 60.0
"""Seconds between two readings of a whole series, and before one of them of what is read each time."""
_SUMS: Final = ", ".join(f"{name} = s.{name} + excluded.{name}" for name in ENDINGS)
_ADDING: Final = (
    f"ON CONFLICT (batch, lane, at, seconds) DO UPDATE SET {_SUMS}, "
    "allowed = greatest(s.allowed, excluded.allowed), closed = least(s.closed + excluded.closed, s.seconds)"
)
_ADD_BUCKETS: Final = (
    "INSERT INTO payments.series AS s (batch, lane, at, seconds, created, refused, failed, no_answer, "
    "allowed, closed) SELECT %s, %s, * FROM unnest(%b::int8[], %b::int4[], %b::int4[], %b::int4[], "
    "%b::int4[], %b::int4[], %b::float8[], %b::float8[]) AS u(at) ORDER BY at "
    f"{_ADDING}"
)
_ADD_TIMES: Final = (
    "INSERT INTO payments.answer_times AS t (batch, lane, class, answers) "
    "SELECT %s, %s, * FROM unnest(%b::int2[], %b::int8[]) AS u(class) ORDER BY class "
    "ON CONFLICT (batch, lane, class) DO UPDATE SET answers = t.answers + excluded.answers"
)
_SET_ATTEMPTS: Final = (
    "INSERT INTO payments.attempts (batch, number, attempts) "
    "SELECT %s, * FROM unnest(%b::int4[], %b::text[]) AS u(number) ORDER BY number "
    "ON CONFLICT (batch, number) DO UPDATE SET attempts = excluded.attempts"
)
_OWN: Final = "FROM payments.series s WHERE s.batch = %s AND s.lane = %s"
_SHORTEN: Final = (
    f"WITH held AS (SELECT count(*) AS buckets, max(seconds) AS wide {_OWN}), "
    "merged AS (SELECT h.buckets, h.wide * CASE WHEN h.buckets <= %s THEN 1 "
    f"WHEN (SELECT count(DISTINCT s.at / h.wide) {_OWN}) > %s THEN 2 ELSE 1 END AS wide FROM held h), "
    "gone AS (DELETE FROM payments.series s USING merged m WHERE s.batch = %s AND s.lane = %s "
    "AND m.buckets > %s RETURNING s.*) "
    "INSERT INTO payments.series AS s SELECT g.batch, g.lane, g.at - g.at %% m.wide, m.wide, sum(g.created), "
    "sum(g.refused), sum(g.failed), sum(g.no_answer), max(g.allowed), least(sum(g.closed), m.wide) "
    f"FROM gone g, merged m GROUP BY 1, 2, 3, 4 {_ADDING}"
)
_READ_BUCKETS: Final = (
    "SELECT at, seconds, sum(created)::int8, sum(refused)::int8, sum(failed)::int8, sum(no_answer)::int8, "
    "max(allowed), least(sum(closed), seconds)::float8 FROM payments.series WHERE batch = %s "
    "AND at >= %s GROUP BY at, seconds"
)
_READ_TIMES: Final = (
    "SELECT class, sum(answers)::int8 FROM payments.answer_times WHERE batch = %s GROUP BY class"
)
_OF_BATCH: Final = "SELECT number, attempts FROM payments.attempts WHERE batch = %s"
_PAGE: Final = f"{_OF_BATCH} AND number > %s ORDER BY number LIMIT 500"
_READ_ATTEMPTS: Final = f"{_OF_BATCH} AND number = ANY(%b::int4[])"


def lane_of(session: str) -> int:
    """The lane that a session of a process writes to."""
    return crc32(session.encode()) % _LANES


async def write(transaction: Transaction, batch: int, lane: int, figures: RunFigures) -> None:
    """Add the figures of a part of a run."""
    if figures.attempts:
        (found,) = await transaction.read(_reading_attempts(batch, figures.attempts))
        after = figures.attempts_after(_attempts(found))
        texts = [each.text for each in after.values()]
        transaction.write((_SET_ATTEMPTS, (batch, list(after), texts)))
    left, own = int(MOST_BUCKETS * SHORTENED), (batch, lane)
    transaction.write((_ADD_BUCKETS, (*own, *_columns(figures.series))))
    transaction.write((_SHORTEN, (*own, MOST_BUCKETS, *own, left, *own, MOST_BUCKETS)))
    times = figures.series.times.by_class()
    values = (list(times), list(times.values()))
    transaction.write((_ADD_TIMES, (*own, *values)))


def _columns(series: RunSeries) -> tuple[list[Any], ...]:
    buckets = series.buckets
    return (
        [bucket.at for bucket in buckets],
        [bucket.seconds for bucket in buckets],
        *([getattr(bucket, name) for bucket in buckets] for name in ENDINGS),
        [bucket.limit for bucket in buckets],
        [bucket.closed for bucket in buckets],
    )


class StoredSeries:
    """The series of a batch, over all processes: read whole once a minute, else only its end."""

    def __init__(self) -> None:
        self._head = RunSeries()  # without answer times
        self._since = 0
        self._read_at: float | None = None

    async def read(self, database: Database, batch: int, now: float) -> RunSeries:
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


async def series(database: Database, batch: int, since: int = 0) -> RunSeries:
    """Read the buckets from a second on, and all answer times. Raises LedgerError, UnreadableRecord."""
    buckets, times = await database.read((_READ_BUCKETS, (batch, since)), (_READ_TIMES, (batch,)))
    with readable("the figures of a run"):
        answer_times = AnswerTimes.of_classes(dict(times))
        return RunSeries.of(map(SeriesBucket.read, buckets), answer_times)


async def unreadable(database: Database, batch: int) -> tuple[str, ...]:
    """Name the figures that cannot be read, for a check. Raises LedgerError when all is away."""
    has_series = has_attempts = True
    damaged: list[int] = []
    try:
        await series(database, batch)
    except (UnreadableRecord, LedgerDamaged):
        has_series = False
    try:
        last = -1
        while page := (await database.read((_PAGE, (batch, last))))[0]:
            damaged += [number for number, text in page if not RowAttempts.of_text(text).made]
            last = page[-1][0]
    except LedgerDamaged:
        has_attempts = False
    return unreadable_figures(has_series, has_attempts, damaged)


async def attempts(database: Database, batch: int, numbers: Collection[int]) -> Mapping[int, RowAttempts]:
    """Read the attempts of rows. Raises LedgerError."""
    (found,) = await database.read(_reading_attempts(batch, numbers))
    return _attempts(found)


def _reading_attempts(batch: int, numbers: Collection[int]) -> Statement:
    return _READ_ATTEMPTS, (batch, sorted(numbers))


def _attempts(found: Rows) -> dict[int, RowAttempts]:
    return {number: RowAttempts.of_text(text) for number, text in found}
