"""PostgreSQL, Valkey and the pure rule give the same numbers for the same sequence of events."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any, Protocol

import psycopg
import pytest
import pytest_asyncio
import redis.asyncio

from payments_async._rate_limit import store
from payments_async._rate_limit.store import LimitRow, LimitStore, PermitRequest, Reservation, State
from payments_async._rate_limit.store_postgresql import PostgresLimitStore
from payments_async._rate_limit.store_redis import RedisLimitStore

ROW = LimitRow("https://api.example/v1", "3f9a", "write")
EPOCH = 1_800_000_000.0
KEY = "payments:limit:{https://api.example/v1 3f9a write}"


class Bench(Protocol):
    """A store whose clock and rows are in the test's hands."""

    limits: LimitStore

    async def set_clock(self, seconds: float) -> None:
        """Set the store's clock."""

    async def empty(self) -> None:
        """Lose every row."""

    def on_its_own_clock(self) -> LimitStore:
        """Another connection, by the server's clock."""


class OnPostgres:
    def __init__(self, url: str) -> None:
        self.limits = PostgresLimitStore(url, clock="(SELECT seconds FROM test_clock)")
        self._url = url

    def on_its_own_clock(self) -> LimitStore:
        return PostgresLimitStore(self._url)

    async def open(self) -> None:
        self._control = await psycopg.AsyncConnection.connect(self._url, autocommit=True)
        await self._control.execute("CREATE TABLE test_clock AS SELECT 0::float8 AS seconds")

    async def set_clock(self, seconds: float) -> None:
        await self._control.execute("UPDATE test_clock SET seconds = %s", [seconds])

    async def empty(self) -> None:
        await self._control.execute("DELETE FROM payments.limits")

    async def aclose(self) -> None:
        await self.limits.aclose()
        await self._control.close()


class OnValkey:
    def __init__(self, url: str) -> None:
        self.limits = RedisLimitStore(url, clock="local clock = tonumber(redis.call('GET', 'test_clock'))")
        self._url = url
        self._control = redis.asyncio.Redis.from_url(url)

    def on_its_own_clock(self) -> LimitStore:
        return RedisLimitStore(self._url)

    async def open(self) -> None:
        await self._control.flushall()

    async def set_clock(self, seconds: float) -> None:
        await self._control.set("test_clock", repr(seconds))

    async def empty(self) -> None:
        await self._control.delete(KEY)

    async def aclose(self) -> None:
        await self.limits.aclose()
        await self._control.aclose()


@pytest_asyncio.fixture(params=["postgresql", "valkey"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    on: Any
    if request.param == "postgresql":
        on = OnPostgres(request.getfixturevalue("database"))
    else:
        on = OnValkey(request.getfixturevalue("valkey").url())
    await on.open()
    yield on
    await on.aclose()


class Pure:
    """The rule on a state of its own, as a store."""

    def __init__(self) -> None:
        self.state: State | None = None
        self.now = 0.0

    def reserve(self, ask: PermitRequest) -> Reservation:
        self.state, answer = store.reserve(self.state, ask, self.now)
        return answer

    def close_after_429(self, seconds: float, pause: float) -> None:
        if self.state is not None:
            self.state = store.close_after_429(self.state, seconds, pause, self.now)

    def end_probe(self, probe: float, *, answered: bool) -> None:
        if self.state is not None:
            self.state = store.end_probe(self.state, probe, answered=answered)


def asked(worker: str, wanted: int = 1, **more: Any) -> PermitRequest:
    """A reservation at the service's own limit for writes."""
    return PermitRequest(
        **{"worker": worker, "limit": 60_000, "wanted": wanted, "held": 0, "lifetime": 35.0, **more}
    )


class Sequence:
    """A random sequence of events, played on a store and on the pure rule."""

    def __init__(self, bench: Bench, seed: int) -> None:
        self._bench, self._pure = bench, Pure()
        self._chance = random.Random(seed)
        self._limit = self._chance.choice([6, 7, 60, 100, 600, 60_000])
        self._workers = [f"worker{number}" for number in range(self._chance.randint(1, 5))]
        self._last: dict[str, tuple[Reservation, float]] = {}
        self._real = 0.0
        self._skew = EPOCH
        self._probe = 0.0
        self.kinds: set[str] = set()

    async def step(self) -> None:
        """One event."""
        chance = self._chance
        self._real += chance.choices(
            (0.0, 0.001, 0.02, 0.3, 0.9, 7.0, 61.0, 130.0), (4, 9, 9, 9, 5, 4, 1, 1)
        )[0]
        events = (self._reserve, self._close, self._end_probe, self._empty, self._set_clock)
        event = chance.choices(events, (60, 5, 6, 2, 2))[0]
        self._pure.now = self._real + self._skew
        await self._bench.set_clock(self._pure.now)
        await event()

    async def _reserve(self) -> None:
        chance, worker = self._chance, self._chance.choice(self._workers)
        last, then = self._last.get(worker, (None, 0.0))
        ask = PermitRequest(
            worker=worker,
            limit=self._limit,
            wanted=chance.choice([0, 1, 1, 3, 80]),
            held=chance.choice([0, 0, 1, 5, self._limit // 12]),
            lifetime=35.0,
            interactive=chance.random() < 0.5,
            last=last,
            ago=self._real - then,
        )
        answer = self._pure.reserve(ask)
        assert await self._bench.limits.reserve(ROW, ask) == answer
        self._last[worker] = answer, self._real
        self._probe = answer.probe or self._probe
        self.kinds |= {"granted"} if answer.granted else {"refused"}
        self.kinds |= {"probe"} if answer.probe else set()

    async def _close(self) -> None:
        seconds = self._chance.choice([0.5, 3.0, 20.0])
        pause = self._chance.choice([0.0, seconds])
        self._pure.close_after_429(seconds, pause)
        await self._bench.limits.close_after_429(ROW, seconds, pause=pause)

    async def _end_probe(self) -> None:
        answered = self._chance.random() < 0.7
        self._pure.end_probe(self._probe, answered=answered)
        await self._bench.limits.end_probe(ROW, self._probe, answered=answered)

    async def _empty(self) -> None:
        if self._pure.state is not None:
            self._pure.state = None
            await self._bench.empty()

    async def _set_clock(self) -> None:
        self._skew += self._chance.choice([45.0, -3600.0, 0.3, -0.05])


@pytest.mark.parametrize("seed", range(4))
async def test_a_store_gives_the_numbers_of_the_rule(bench: Bench, seed: int) -> None:
    sequence = Sequence(bench, seed)
    for _ in range(80):
        await sequence.step()
    assert "granted" in sequence.kinds


async def test_reservations_of_many_processes_at_once_are_made_one_after_the_other(bench: Bench) -> None:
    made: list[tuple[PermitRequest, Reservation]] = []

    async def process(name: str) -> None:
        limits = bench.on_its_own_clock()
        for wanted in range(1, 21):
            ask = asked(name, wanted, held=wanted // 2)
            made.append((ask, await limits.reserve(ROW, ask)))
        await limits.aclose()

    await asyncio.gather(*(process(f"worker{number}") for number in range(6)))
    pure = Pure()
    for ask, answer in sorted(made, key=lambda each: each[1].at):
        pure.now = answer.at
        assert pure.reserve(ask) == answer
