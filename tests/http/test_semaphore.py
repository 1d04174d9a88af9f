"""Slots: so many at a time, in order of arrival, and none is lost to whoever gave up."""

from __future__ import annotations

import asyncio

import pytest

from payments_async._http.concurrency import Semaphore


async def turns() -> None:
    """Let every task go as far as it can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def use(slots: Semaphore, name: str, seen: list[str], until: asyncio.Event) -> None:
    if not slots.take():
        await slots.wait()
    try:
        seen.append(name)
        await until.wait()
    finally:
        slots.give_back()


async def test_no_more_than_so_many_at_a_time_and_first_come_first_served() -> None:
    slots, seen = Semaphore(2), list[str]()
    gates = {name: asyncio.Event() for name in "abcde"}
    tasks = [asyncio.create_task(use(slots, name, seen, gates[name])) for name in "abcde"]
    await turns()
    assert seen == ["a", "b"]
    gates["b"].set()
    await turns()
    assert seen == ["a", "b", "c"]
    assert not slots.take()  # the freed one was handed over: a newcomer takes nobody's turn
    for gate in gates.values():
        gate.set()
    await asyncio.gather(*tasks)
    assert seen == list("abcde")
    assert [slots.take() for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize("handed_over", [False, True])
async def test_who_gives_up_waiting_takes_no_slot_along(handed_over: bool) -> None:
    slots = Semaphore(1)
    assert slots.take()
    impatient = asyncio.create_task(slots.wait())
    patient = asyncio.create_task(slots.wait())
    await turns()
    if handed_over:
        slots.give_back()  # to the impatient one, which is cancelled before it runs
        impatient.cancel()
    else:
        impatient.cancel()
        await turns()
        slots.give_back()
    await asyncio.wait([impatient, patient])
    assert (impatient.cancelled(), patient.cancelled()) == (True, False)
    slots.give_back()
    assert [slots.take(), slots.take()] == [True, False]
    assert not slots._line


async def test_a_slot_passes_over_a_waiter_that_was_cancelled_and_has_not_run_since() -> None:
    slots = Semaphore(1)
    assert slots.take()
    cancelled = asyncio.create_task(slots.wait())
    next_in_line = asyncio.create_task(slots.wait())
    await turns()
    cancelled.cancel()  # ends its future; the task itself runs only after the slot was given back
    slots.give_back()
    await asyncio.wait([cancelled, next_in_line])
    assert (cancelled.cancelled(), next_in_line.cancelled()) == (True, False)
    assert not slots.take()
    slots.give_back()
    assert [slots.take(), slots.take()] == [True, False]


async def test_a_wait_that_is_dropped_is_no_longer_in_line() -> None:
    slots = Semaphore(1)
    assert slots.take()
    dropped = slots.wait()
    dropped.send(None)
    dropped.close()
    slots.give_back()
    assert slots.take()
