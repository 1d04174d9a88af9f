"""The real clock and chance."""

from __future__ import annotations

import os
import threading

import pytest

from payments_async import _runtime
from payments_async._runtime import SYSTEM, check_process, clock_with_suspension


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


@pytest.mark.parametrize(("platform", "counts"), [("linux", True), ("darwin", True), ("win32", False)])
def test_a_platform_without_a_clock_that_counts_suspension_says_so(platform: str, counts: bool) -> None:
    assert (clock_with_suspension(platform)() is not None) == counts


def test_a_child_is_renewed_once_and_all_its_threads_wait_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    began, free, seen = threading.Event(), threading.Event(), list[str]()

    def renew() -> None:
        began.set()
        free.wait(300)
        seen.append("renewed")

    def enter() -> None:
        check_process()
        seen.append("entered")

    monkeypatch.setattr(_runtime, "_renewals", [renew])
    monkeypatch.setattr(_runtime, "_renewing", {})
    monkeypatch.setattr(_runtime, "_pid", 0)
    threads = [threading.Thread(target=enter) for _ in range(3)]
    threads[0].start()
    assert began.wait(300)
    for thread in threads[1:]:
        thread.start()
    free.set()
    for thread in threads:
        thread.join()
    _runtime._renew()  # as a thread does that has compared the pid before
    assert seen == ["renewed", *["entered"] * 3]
    assert _runtime._pid == os.getpid()
