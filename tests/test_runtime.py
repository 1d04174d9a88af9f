"""The real clock and chance."""

from __future__ import annotations

import os

import pytest

from payments_async._runtime import SYSTEM, clock_with_suspension


def drawn() -> bytes:
    """Three numbers for jitter, as text."""
    return repr([SYSTEM.random() for _ in range(3)]).encode()


def test_jitter_is_a_number_from_0_to_below_1() -> None:
    numbers = {SYSTEM.random() for _ in range(100)}
    assert len(numbers) == 100
    assert all(0 <= number < 1 for number in numbers)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded, use of fork:DeprecationWarning")
def test_forked_children_do_not_draw_the_same_jitter() -> None:
    draws = []
    for _ in range(2):
        receiving, sending = os.pipe()
        if not (child := os.fork()):
            os.write(sending, drawn())
            os._exit(0)
        os.waitpid(child, 0)
        draws.append(os.read(receiving, 1000))
        os.close(receiving)
        os.close(sending)
    assert b"" not in draws
    assert len({*draws, drawn()}) == 3


def test_the_clock_with_suspension_never_runs_behind_the_one_without() -> None:
    now, later = SYSTEM.boottime(), SYSTEM.boottime()
    assert now is not None
    assert later is not None
    assert later >= now


@pytest.mark.parametrize(("platform", "counts"), [("linux", True), ("darwin", True), ("win32", False)])
def test_a_platform_without_a_clock_that_counts_suspension_says_so(platform: str, counts: bool) -> None:
    assert (clock_with_suspension(platform)() is not None) == counts
