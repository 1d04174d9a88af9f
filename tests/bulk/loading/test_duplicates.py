"""Numbers that came more than once are found, whatever lies on the disk, and in memory that does not grow."""

from __future__ import annotations

import io
import random
import tempfile
import tracemalloc
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_async.bulk.loading.duplicates import RUN, RepeatFinder

NUMBERS = st.lists(st.integers(0, 40) | st.integers(0, 2**64 - 1), max_size=60)


@given(NUMBERS, st.integers(1, 9))
def test_what_came_more_than_once_is_found_and_nothing_else(numbers: list[int], run: int) -> None:
    with RepeatFinder(run) as repeats:
        for number in numbers:
            repeats.extend((number,))
        found = repeats.found(100)
        assert repeats.found(100) == found
    assert found == {number for number, times in Counter(numbers).items() if times > 1}


def test_no_more_are_told_than_asked_for() -> None:
    with RepeatFinder(4) as repeats:
        repeats.extend([*range(50), *range(50)])
        assert len(repeats.found(10)) == 10


def test_a_number_that_came_very_often_hides_no_other() -> None:
    with RepeatFinder(4) as repeats:
        repeats.extend([5] * 200)
        repeats.extend([7, 7, 9])
        assert repeats.found(2) == {5, 7}


def peak_of(numbers: int) -> int:
    """Bytes at most while so many different numbers are looked through."""
    some = random.Random(numbers)
    tracemalloc.start()
    try:
        with RepeatFinder() as repeats:
            for _ in range(numbers // 64):
                repeats.extend(some.getrandbits(64) for _ in range(64))
            assert repeats.found(100) == set()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_numbers() -> None:
    few, many = peak_of(2 * RUN), peak_of(5 * RUN)
    assert many < 1.3 * few, (few, many)
    assert many < 3 << 20


class Full(io.BytesIO):
    """A file on a disk that has room for so many writes."""

    room = 0

    def write(self, data: Any, /) -> int:
        """All of it, or what there is room for."""
        if self.room:
            self.room -= 1
            return super().write(bytes(data))
        return super().write(bytes(data)[:3])


@pytest.mark.parametrize("room", [0, 1, 3])
def test_a_full_disk_loses_nothing(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    file = Full()
    file.room = room
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: file)
    with RepeatFinder(4) as repeats:
        for number in [*range(20), 3, 17, *range(30, 40)]:
            repeats.extend((number,))
        assert repeats.found(100) == {3, 17}


def test_without_a_folder_for_temporary_files_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(**_: Any) -> None:
        raise FileNotFoundError("no usable temporary directory found")

    monkeypatch.setattr(tempfile, "TemporaryFile", none)
    with RepeatFinder(2) as repeats:
        repeats.extend([1, 2])
        repeats.extend([3, 1])
        assert repeats.found(100) == {1}
