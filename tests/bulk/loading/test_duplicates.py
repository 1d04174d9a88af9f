"""Names that came more than once are found, in memory that does not grow, on a full disk too."""

from __future__ import annotations

import os
import resource
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_async.bulk._loading import duplicates
from payments_async.bulk._loading.duplicates import NameTable
from payments_async.bulk._loading.new_rows import RowIdentifiers
from payments_async.bulk._loading.survey import survey
from payments_async.bulk.sources import IterableSource, RowFault
from payments_async.params import PayoutRequest
from tests.support.batches import item

NAMES = st.lists(st.sampled_from(["a", "A", "b", "B", "c", "ß", "ss", "SS"]), max_size=12)


def noted(table: NameTable, keys: Iterable[str]) -> None:
    """Add a row for each key."""
    for number, key in enumerate(keys, 1):
        table.add(RowFault(None, number, None, "", (), key, None))


@contextmanager
def room_for_files(size: int) -> Iterator[None]:
    """Within it, no file can grow beyond so many bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@given(NAMES)
def test_names_that_came_more_than_once_are_found_and_no_others(keys: list[str]) -> None:
    with closing(NameTable()) as table:
        noted(table, keys)
        found = table.repeated()
    twice = {key for key, times in Counter(keys).items() if times > 1}
    folded = Counter(key.casefold() for key in set(keys))
    assert found.same == {hash(("row_key", key)) for key in twice}
    assert found.cased == {hash(("row_key", key)) for key, ways in folded.items() if ways > 1}
    assert bool(found) is bool(found.same or found.cased)


def test_the_first_hundred_are_looked_at_and_one_that_came_often_hides_no_other() -> None:
    with closing(NameTable()) as table:
        noted(table, [*["often"] * 500, *map(str, range(150)), *map(str, range(150))])
        assert table.repeated().same == {hash(("row_key", key)) for key in ["often", *map(str, range(99))]}
    with closing(NameTable()) as table:
        noted(table, [*["often"] * 500, "twice", "twice"])
        assert table.repeated().same == {hash(("row_key", key)) for key in ("often", "twice")}


def test_a_large_input_lies_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "_CACHE", 16)

    def sizes() -> int:
        files = [os.path.join("/proc/self/fd", each) for each in os.listdir("/proc/self/fd")]
        return sum(os.stat(each).st_size for each in files if "etilqs" in os.path.realpath(each))

    with closing(NameTable()) as table:
        noted(table, map(str, range(10_000)))
        assert sizes() > 100_000
        assert not table.repeated()
    assert sizes() == 0


@pytest.mark.parametrize("size", [0, 1 << 15])
async def test_a_full_disk_loses_nothing(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(duplicates, "_CACHE", 16)
    request = item(1)[1]
    source = IterableSource([(key, request) for key in [*map(str, range(1500)), "3", "17", "x", "X"]])
    with room_for_files(size):
        found = await survey(source, RowIdentifiers("sandbox", "june"))
    assert found.reading.good == 1504
    assert found.repeated.same == {hash(("row_key", key)) for key in ("3", "17")}
    assert found.repeated.cased == {hash(("row_key", "x"))}


async def test_an_error_of_the_input_itself_is_raised_at_once() -> None:
    readings = []

    class Cursor:
        def __iter__(self) -> Iterator[PayoutRequest]:
            readings.append(self)
            yield item(1)[1]
            raise sqlite3.OperationalError("database is locked")

    with pytest.raises(sqlite3.OperationalError, match="locked"):
        await survey(IterableSource(Cursor()), RowIdentifiers("sandbox", "june"))
    assert len(readings) == 1, "it was taken for a full disk, and the input read again"
