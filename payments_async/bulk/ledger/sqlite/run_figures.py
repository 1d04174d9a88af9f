"""Stores the figures of runs: buckets and counts are added to those that are there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from sqlalchemy import Insert, bindparam, delete, func, insert, inspect, select
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.schema import CreateTable

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
from .driver import ManyStatements, execute_many
from .rows import UnreadableRow, readable
from .schema import ANSWER_TIMES, ATTEMPTS, FIGURES, SERIES


def _adding_buckets() -> Insert:
    adding = upsert(SERIES)
    new, old = adding.excluded, SERIES.c
    sums: dict[str, Any] = {name: old[name] + new[name] for name in ENDINGS}
    sums["limit"] = func.coalesce(func.max(old["limit"], new["limit"]), old["limit"], new["limit"])
    sums["closed"] = func.min(old.closed + new.closed, old.seconds)
    return adding.on_conflict_do_update(index_elements=["at", "seconds"], set_=sums)


def _adding_times() -> Insert:
    adding = upsert(ANSWER_TIMES)
    sums = {"answers": ANSWER_TIMES.c.answers + adding.excluded.answers}
    return adding.on_conflict_do_update(index_elements=["class"], set_=sums)


def _replacing_attempts() -> Insert:
    adding = upsert(ATTEMPTS)
    return adding.on_conflict_do_update(
        index_elements=["number"], set_={"attempts": adding.excluded.attempts}
    )


_BUCKETS: Final = tuple(SERIES.c.keys())
_ADD_BUCKETS: Final = ManyStatements(_adding_buckets(), _BUCKETS)
_INSERT_BUCKETS: Final = ManyStatements(insert(SERIES), _BUCKETS)
_ADD_TIMES: Final = ManyStatements(_adding_times(), tuple(ANSWER_TIMES.c.keys()))
_SET_ATTEMPTS: Final = ManyStatements(_replacing_attempts(), tuple(ATTEMPTS.c.keys()))
_COUNT: Final = select(func.count()).select_from(SERIES)
_LATER: Final = select(ATTEMPTS).where(ATTEMPTS.c.number > bindparam("last"))
_PAGE: Final = _LATER.order_by(ATTEMPTS.c.number).limit(500)
_OF_ROWS: Final = select(ATTEMPTS).where(ATTEMPTS.c.number.in_(bindparam("numbers", expanding=True)))


async def save(db: AsyncConnection, figures: RunFigures) -> None:
    """Add the figures of a part of a run."""
    if not await _are_there(db):
        for table in FIGURES:
            await db.execute(CreateTable(table, if_not_exists=True))
    after = figures.attempts_after(await attempts(db, figures.attempts))
    texts = [(number, each.text) for number, each in after.items()]
    for statement, rows in (
        (_ADD_BUCKETS, _values(figures.series.buckets)),
        (_ADD_TIMES, [*figures.series.times.by_class().items()]),
        (_SET_ATTEMPTS, texts),
    ):
        if rows:
            await execute_many(db, statement, rows)
    await _shorten(db)


async def _are_there(db: AsyncConnection) -> bool:
    """True if the tables were made, with the first figures."""
    names = {table.name for table in FIGURES}
    return await db.run_sync(lambda sync: names <= set(inspect(sync).get_table_names()))


async def _shorten(db: AsyncConnection) -> None:
    """Merge neighbouring buckets once there are too many."""
    if (await db.execute(_COUNT)).scalar_one() > MOST_BUCKETS:
        merged = RunSeries.of(await _buckets(db), AnswerTimes(), most=int(MOST_BUCKETS * SHORTENED))
        await db.execute(delete(SERIES))
        await execute_many(db, _INSERT_BUCKETS, _values(merged.buckets))


async def _buckets(db: AsyncConnection) -> list[SeriesBucket]:
    return [SeriesBucket.read(values) for values in await db.execute(select(SERIES))]


def _values(buckets: Iterable[SeriesBucket]) -> list[tuple[Any, ...]]:
    return [tuple(getattr(bucket, name) for name in _BUCKETS) for bucket in buckets]


async def series(db: AsyncConnection) -> RunSeries:
    """Read the series. Raises UnreadableRow."""
    if not await _are_there(db):
        return RunSeries()
    with readable("the figures of a run"):
        found = await db.execute(select(ANSWER_TIMES))
        times = AnswerTimes.of_classes(dict(map(tuple, found)))
        return RunSeries.of(await _buckets(db), times)


async def unreadable(db: AsyncConnection) -> tuple[str, ...]:
    """Name the figures that cannot be read, for a check. Reads all of them, a page of rows at a time."""
    has_series = has_attempts = True
    damaged: list[int] = []
    try:
        await series(db)
    except (UnreadableRow, DBAPIError):
        has_series = False
    try:
        last = -1
        while await _are_there(db) and (page := (await db.execute(_PAGE, {"last": last})).all()):
            damaged += [number for number, text in page if not RowAttempts.of_text(text).made]
            last = page[-1][0]
    except DBAPIError:
        has_attempts = False
    return unreadable_figures(has_series, has_attempts, damaged)


async def attempts(db: AsyncConnection, numbers: Collection[int]) -> Mapping[int, RowAttempts]:
    """Read the attempts of rows, at most a thousand."""
    if not (numbers and await _are_there(db)):
        return {}
    found = await db.execute(_OF_ROWS, {"numbers": sorted(numbers)})
    return {number: RowAttempts.of_text(text) for number, text in found}
