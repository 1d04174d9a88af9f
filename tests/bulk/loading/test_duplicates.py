"""Names that came more than once are found, in memory that does not grow; a full disk is said to be."""

from __future__ import annotations

import os
import resource
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from string import ascii_lowercase, ascii_uppercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_async.bulk import BulkError
from payments_async.bulk._loading import duplicates
from payments_async.bulk._loading.duplicates import NameTable, SharedNames
from payments_async.bulk.sources import RowFault

NAMES = st.lists(st.sampled_from(["a", "A", "b", "B", "c", "ß", "ss", "SS"]), max_size=12)


def shared(keys: Iterable[str]) -> SharedNames:
    with closing(NameTable()) as table:
        for number, key in enumerate(keys, 1):
            table.add(RowFault(None, number, None, "", (), key, None))
        return table.shared()


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
def test_rows_with_an_earlier_row_s_name_are_found_and_no_others(keys: list[str]) -> None:
    found = shared(keys)
    assert found.faults == {
        number: {"row_key": f"is that of row {keys.index(key) + 1} too; make each unique"}
        for number, key in enumerate(keys, 1)
        if key in keys[: number - 1]
    }
    folded = [key.casefold() for key in keys]
    cased = [at for at, key in enumerate(keys) if key != keys[folded.index(folded[at])]]
    assert [warning.partition(",")[0] for warning in found.warnings] == [f"row {at + 1}" for at in cased]


def test_one_that_came_often_hides_no_other_and_of_case_the_first_are_named() -> None:
    found = shared([*["often"] * 500, "twice", "twice", *ascii_lowercase, *ascii_uppercase])
    assert Counter(text for faults in found.faults.values() for text in faults.values()) == {
        "is that of row 1 too; make each unique": 499,
        "is that of row 501 too; make each unique": 1,
    }
    assert len(found.warnings) == 20


def test_a_large_input_lies_on_the_disk_and_a_full_one_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "_CACHE", 16)

    def sizes() -> int:
        files = [os.path.join("/proc/self/fd", each) for each in os.listdir("/proc/self/fd")]
        return sum(os.stat(each).st_size for each in files if "etilqs" in os.path.realpath(each))

    def keys() -> Iterator[str]:
        yield from map(str, range(10_000))
        assert sizes() > 100_000

    assert shared(keys()) == SharedNames({}, ())
    assert sizes() == 0
    with room_for_files(1 << 15), pytest.raises(BulkError, match=r"no room for temporary files.*TMPDIR"):
        shared(map(str, range(10_000)))
