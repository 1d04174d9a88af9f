"""Stores the figures of runs: buckets and counts are added to those that are there."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from aiosqlite import Connection

from ...protocol.attempts import RowAttempts
from ...protocol.run_figures import (
    MOST_BUCKETS,
    SHORTENED,
    AnswerTimes,
    RunFigures,
    RunSeries,
    SeriesBucket,
    unreadable_figures,
)
from ..rows import UnreadableRecord, readable
from .driver import run, run_many
from .rows import listed
from .schema import FIGURES

_BUCKETS: Final = ("at", "seconds", "created", "refused", "failed", "no_answer", "limit", "closed")
_READ_BUCKETS: Final = 'SELECT at, seconds, created, refused, failed, no_answer, "limit", closed FROM series'
_INSERT_BUCKETS: Final = "INSERT INTO series VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_BUCKETS: Final = """
    INSERT INTO series VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (at, seconds) DO UPDATE SET
        created = created + excluded.created,
        refused = refused + excluded.refused,
        failed = failed + excluded.failed,
        no_answer = no_answer + excluded.no_answer,
        "limit" = coalesce(max("limit", excluded."limit"), "limit", excluded."limit"),
        closed = min(closed + excluded.closed, seconds)
"""
_ADD_TIMES: Final = """
    INSERT INTO answer_times VALUES (?, ?)
    ON CONFLICT (class) DO UPDATE SET answers = answers + excluded.answers
"""
_SET_ATTEMPTS: Final = """
    INSERT INTO attempts VALUES (?, ?) ON CONFLICT (number) DO UPDATE SET attempts = excluded.attempts
"""
_PAGE: Final = "SELECT number, attempts FROM attempts WHERE number > ? ORDER BY number LIMIT 500"
_OF_ROWS: Final = """
    SELECT number, attempts FROM attempts WHERE number IN (SELECT value FROM json_each(?))
"""
_TABLES: Final = """
    SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('series', 'answer_times', 'attempts')
"""


async def save(db: Connection, figures: RunFigures) -> None:
    """Add the figures of a part of a run."""
    if not await _are_there(db):
        for table in FIGURES:
            await run(db, table)
    after = figures.attempts_after(await attempts(db, figures.attempts))
    texts = [(number, each.text) for number, each in after.items()]
    for statement, rows in (
        (_ADD_BUCKETS, _values(figures.series.buckets)),
        (_ADD_TIMES, [*figures.series.times.by_class().items()]),
        (_SET_ATTEMPTS, texts),
    ):
        if rows:
            await run_many(db, statement, rows)
    await _shorten(db)


async def _are_there(db: Connection) -> bool:
    """True if the tables were made, with the first figures."""
    ((tables,),) = await run(db, _TABLES)
    return bool(tables == len(FIGURES))


async def _shorten(db: Connection) -> None:
    """Merge neighbouring buckets once there are too many."""
    ((buckets,),) = await run(db, "SELECT count(*) FROM series")
    if buckets > MOST_BUCKETS:
        merged = RunSeries.of(await _buckets(db), AnswerTimes(), most=int(MOST_BUCKETS * SHORTENED))
        await run(db, "DELETE FROM series")
        await run_many(db, _INSERT_BUCKETS, _values(merged.buckets))


async def _buckets(db: Connection) -> list[SeriesBucket]:
    return [SeriesBucket.read(values) for values in await run(db, _READ_BUCKETS)]


def _values(buckets: Iterable[SeriesBucket]) -> list[tuple[Any, ...]]:
    return [tuple(getattr(bucket, name) for name in _BUCKETS) for bucket in buckets]


async def series(db: Connection) -> RunSeries:
    """Read the series. Raises UnreadableRecord."""
    if not await _are_there(db):
        return RunSeries()
    with readable("the figures of a run"):
        found = await run(db, "SELECT class, answers FROM answer_times")
        times = AnswerTimes.of_classes(dict(map(tuple, found)))
        return RunSeries.of(await _buckets(db), times)


async def unreadable(db: Connection) -> tuple[str, ...]:
    """Name the figures that cannot be read, for a check. Reads all of them, a page of rows at a time."""
    has_series = has_attempts = True
    damaged: list[int] = []
    try:
        await series(db)
    except (UnreadableRecord, sqlite3.Error):
        has_series = False
    try:
        last = -1
        while await _are_there(db) and (page := await run(db, _PAGE, last)):
            damaged += [number for number, text in page if not RowAttempts.of_text(text).made]
            last = page[-1][0]
    except sqlite3.Error:
        has_attempts = False
    return unreadable_figures(has_series, has_attempts, damaged)


async def attempts(db: Connection, numbers: Collection[int]) -> Mapping[int, RowAttempts]:
    """Read the attempts of rows, at most a thousand."""
    if not (numbers and await _are_there(db)):
        return {}
    found = await run(db, _OF_ROWS, listed(numbers))
    return {number: RowAttempts.of_text(text) for number, text in found}
