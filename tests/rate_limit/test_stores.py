"""What a store does with a row, the same in PostgreSQL, in Valkey and in the tests' own: a table of steps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import attrs
import pytest
import pytest_asyncio

from tests.support.limit_stores import BlockRequest, MemoryStore, StoreServer, open_store
from tests.support.simulated import SYSTEM

Connect = Callable[[], Any]


@pytest_asyncio.fixture(params=["postgresql", "valkey", "memory"])
async def connect(request: pytest.FixtureRequest) -> AsyncIterator[Connect]:
    """Opens connections to one empty store."""
    opened: list[Any] = []
    server = StoreServer(SYSTEM)

    def connect() -> Any:
        if request.param == "memory":
            opened.append(MemoryStore(server))
        elif request.param == "postgresql":
            opened.append(open_store(request.getfixturevalue("database")))
        else:
            opened.append(open_store(request.getfixturevalue("valkey").url(database=3)))
        return opened[-1]

    yield connect
    for store in opened:
        await store.aclose()


def asked(wanted: int = 1, *, pause: float = 0.0, ahead: float = 35.0) -> BlockRequest:
    """A request of permits that arrive every ten seconds, three of which may be reserved ahead.

    Five seconds that pass meanwhile change nothing that is granted.
    """
    return BlockRequest(wanted=wanted, pause=pause, step=10.0, saved=10.0, ahead=ahead)


async def steps(store: Any, place: str, *requests: BlockRequest) -> list[Any]:
    """The answers to requests, one soon after the other."""
    return [await store.reserve(place, request) for request in requests]


@pytest.mark.parametrize(
    ("name", "requests", "granted", "waits"),
    [
        ("what is asked for", [asked(1), asked(1)], [1, 1], [10.0, 20.0]),
        ("no more than may be reserved ahead", [asked(9), asked(1)], [3, 0], [30.0, 5.0]),
        (
            "less to bulk",
            [asked(9, ahead=15.0), asked(1, ahead=15.0), asked(1)],
            [1, 0, 1],
            [10.0, 5.0, 20.0],
        ),
        ("nothing after a 429", [asked(1), asked(0, pause=40.0), asked(1)], [1, 0, 0], [10.0, 5.0, 5.0]),
        ("nothing for a minute at most", [asked(0, pause=900.0), asked(1)], [0, 0], [865.0, 25.0]),
        ("a pause shortens nothing", [asked(3), asked(0, pause=1.0), asked(1)], [3, 0, 0], [30.0, 5.0, 5.0]),
    ],
)
async def test_a_new_row_has_nothing_saved_up_and_grants(
    connect: Connect, name: str, requests: list[BlockRequest], granted: list[int], waits: list[float]
) -> None:
    answers = await steps(connect(), name, *requests)
    assert [answer.granted for answer in answers] == granted
    assert [answer.wait for answer in answers] == pytest.approx(waits, abs=5.0)


async def test_what_is_saved_up_may_be_used_at_once(connect: Connect) -> None:
    store, place = connect(), "saved"
    small = BlockRequest(wanted=3, pause=0.0, step=1e-6, saved=3.5e-6, ahead=0.0)
    _, answer = await steps(store, place, small, small)  # no two of them come within four microseconds
    assert (answer.granted, answer.wait) == (3, 0.0)


async def test_a_row_from_before_the_clock_was_set_back_begins_anew(connect: Connect) -> None:
    store, place = connect(), "set back"
    await steps(store, place, BlockRequest(wanted=0, pause=0.0, step=1.0, saved=3600.0, ahead=0.0))
    (answer,) = await steps(store, place, asked())
    assert (answer.granted, answer.wait) == (1, 0.0)


async def test_no_permit_is_granted_twice_to_processes_that_ask_at_once(connect: Connect) -> None:
    starts: list[float] = []

    async def process() -> None:
        store = connect()
        for _ in range(20):
            answer = await store.reserve("contended", attrs.evolve(asked(4), step=0.1, ahead=59.0))
            assert answer.granted == 4
            starts.append(SYSTEM.monotonic() + answer.wait)

    began = SYSTEM.monotonic()
    await asyncio.gather(*(process() for _ in range(6)))
    assert max(starts) - began >= 480 * 0.1
