"""How rounds of blocking calls are counted."""

from __future__ import annotations

import threading

import pytest

from benchmarks.contenders.blocking_rounds import WARM, Call, _told, measured


def test_latencies_of_all_threads_are_one_series() -> None:
    shown = _told(
        [[(0.001, 0.3)] + [(0.001, 0.01)] * 49, [(0.002, 0.02)] * 49 + [(0.5, 0.0)]], elapsed=2.0, cpu=0.2
    )
    assert (shown["calls"], shown["rate"], shown["cpu"]) == (100, 50.0, 0.002)
    assert (shown["p50"], shown["p99"], shown["p99_cpu"]) == (0.002, 0.5, 0.3)


def test_each_thread_has_a_call_of_its_own_and_warms_up_uncounted() -> None:
    made: list[list[int]] = []

    def new_call() -> Call:
        made.append([])
        mine = made[-1]
        return lambda: mine.append(threading.get_ident())

    shown = measured(new_call, threads=3, seconds=0.02)
    assert len(made) == 3
    assert all(len({*mine}) == 1 for mine in made), "a call went from one thread to another"
    assert shown["calls"] == sum(len(mine) for mine in made) - 3 * WARM


def test_a_call_that_fails_ends_the_round_with_its_failure() -> None:
    calls = [0]

    def call() -> None:
        calls[0] += 1
        if calls[0] > 1:
            raise OSError("no server")

    with pytest.raises(OSError, match="no server"):
        measured(lambda: call, threads=4, seconds=0.02)
