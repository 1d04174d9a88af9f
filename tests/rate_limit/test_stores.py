"""What PostgreSQL and Valkey do alike with a row: compare, set, keep requests, tell the time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any, Protocol

import attrs
import psycopg
import pytest
import pytest_asyncio
import redis.asyncio

from payments_async import ConfigurationError
from payments_async._rate_limit.compare_and_set import CompareAndSetStore, RowRead, RowWrite
from payments_async._rate_limit.store import LimitRow, PermitRequest, Reservation
from payments_async._rate_limit.store_postgresql import PostgresLimitStore
from payments_async._rate_limit.store_redis import RedisLimitStore

ROW = LimitRow("https://api.example/v1", "3f9a", "write")
EPOCH = 1_800_000_000.0


class Bench(Protocol):
    """A store whose clock and rows are in the test's hands."""

    limits: CompareAndSetStore

    async def set_clock(self, seconds: float) -> None:
        """Set the store's clock."""

    async def is_durable(self, row: LimitRow) -> bool:
        """Whether the server keeps a row for good."""

    def connect(self) -> CompareAndSetStore:
        """Another connection."""


class OnPostgres:
    def __init__(self, url: str) -> None:
        self._url = url
        self.limits = self.connect()

    def connect(self) -> CompareAndSetStore:
        return PostgresLimitStore(self._url, clock="(SELECT seconds FROM test_clock)")

    async def open(self) -> None:
        self._control = await psycopg.AsyncConnection.connect(self._url, autocommit=True)
        await self._control.execute("CREATE TABLE test_clock AS SELECT 0::float8 AS seconds")

    async def set_clock(self, seconds: float) -> None:
        await self._control.execute("UPDATE test_clock SET seconds = %s", [seconds])

    async def is_durable(self, row: LimitRow) -> bool:
        found = await self._control.execute(
            "SELECT c.relpersistence FROM (SELECT tableoid, kind FROM payments.limits UNION ALL "
            "SELECT tableoid, kind FROM payments.budgets) r JOIN pg_class c ON c.oid = r.tableoid "
            "WHERE kind = %s",
            [row.kind],
        )
        return await found.fetchall() == [("p",)]

    async def aclose(self) -> None:
        await self.limits.aclose()
        await self._control.close()


class OnValkey:
    def __init__(self, url: str) -> None:
        self._url = url
        self.limits = self.connect()
        self._control = redis.asyncio.Redis.from_url(url)

    def connect(self) -> CompareAndSetStore:
        return RedisLimitStore(self._url, clock="local clock = tonumber(redis.call('GET', 'test_clock'))")

    async def open(self) -> None:
        await self._control.flushall()

    async def set_clock(self, seconds: float) -> None:
        await self._control.set("test_clock", repr(seconds))

    async def is_durable(self, row: LimitRow) -> bool:
        left = await self._control.ttl(f"payments:limit:{{{row.address} {row.fingerprint} {row.kind}}}")
        assert left == -1 or 7_000 < left <= 7_200
        return bool(left == -1)

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


def asked(worker: str, wanted: int = 1, **more: Any) -> PermitRequest:
    """A reservation at the service's own limit for writes."""
    values = {"worker": worker, "limit": 60_000, "wanted": wanted, "held": 0, "lifetime": 35.0, **more}
    return PermitRequest(**values)


async def test_a_change_is_made_of_the_version_that_it_is_based_on_and_else_kept_beside_the_row(
    bench: Bench,
) -> None:
    exchange = bench.limits.exchange
    await bench.set_clock(EPOCH + 0.125)
    read = await exchange(ROW, RowWrite("a", "a 1", "ask a"))
    assert read == RowRead("a 1", "", {"a": (EPOCH + 0.125, "ask a")}, EPOCH + 0.125)
    await bench.set_clock(EPOCH + 1)
    await exchange(ROW, RowWrite("b", "b 1", "ask b"))
    won = RowWrite("a", "a 2", "ask a", based_on="a 1", content="content", served=["a"])
    assert await exchange(ROW, won) == RowRead("a 2", "content", {"b": (EPOCH + 1, "ask b")}, EPOCH + 1)
    lost = RowWrite("b", "b 2", "ask b again", based_on="a 1", content="other", served=["b"])
    kept = RowRead("a 2", "content", {"b": (EPOCH + 1, "ask b again")}, EPOCH + 1)
    assert await exchange(ROW, lost) == kept
    late = RowWrite("d", "d 1", "ask d", based_on="a 2", content="late", served=["b"])
    assert await exchange(attrs.evolve(ROW, kind="read"), late) == RowRead(
        "d 1", "", {"d": (EPOCH + 1, "ask d")}, EPOCH + 1
    )


async def test_a_reservation_a_closing_and_its_probe(bench: Bench) -> None:
    await bench.set_clock(EPOCH)
    new = await bench.limits.reserve(ROW, asked("a", 1000))
    assert (new.granted, new.at, new.born) == (125, EPOCH, EPOCH)
    await bench.limits.close_after_429(ROW, 20.0, pause=20.0)
    closed = await bench.limits.reserve(ROW, asked("b", last=new))
    assert (closed.granted, closed.closed_for, closed.pause) == (0, 20.0, 20.0)
    await bench.set_clock(EPOCH + 20)
    probe = await bench.limits.reserve(ROW, asked("b", last=closed, ago=20.0))
    assert (probe.granted, probe.probe) == (1, EPOCH)
    await bench.limits.end_probe(ROW, probe.probe, answered=True)
    assert (await bench.limits.reserve(ROW, asked("a", 10))).granted == 10


async def test_a_row_that_cannot_be_read_is_named(bench: Bench) -> None:
    await bench.set_clock(EPOCH)
    await bench.limits.exchange(ROW, RowWrite("b", "b 1", "ask b"))
    damage = RowWrite("b", "b 2", "ask b", based_on="b 1", content="{", served=["b"])
    await bench.limits.exchange(ROW, damage)
    with pytest.raises(ConfigurationError, match=r"^the limit store \w+://127.0.0.1.* cannot be read"):
        await bench.limits.reserve(ROW, asked("a"))


@pytest.mark.parametrize(
    ("kind", "is_durable"), [("write", False), ("read", False), ("guard", True), ("refusals", True)]
)
async def test_rows_that_count_money_are_durable(bench: Bench, kind: Any, *, is_durable: bool) -> None:
    await bench.set_clock(EPOCH)
    row = attrs.evolve(ROW, kind=kind)
    assert row.is_durable is is_durable
    first = await bench.limits.exchange(row, RowWrite("a", "a 1", "ask a"))
    won = RowWrite("a", "a 2", "ask a", based_on=first.version, content="content", served=["a"])
    assert (await bench.limits.exchange(row, won)).content == "content"
    assert await bench.is_durable(row) is is_durable


async def test_a_lost_row_stays_open(bench: Bench) -> None:
    await bench.set_clock(EPOCH)
    await bench.limits.close_after_429(ROW, 20.0)
    await bench.limits.end_probe(ROW, EPOCH, answered=False)
    assert (await bench.limits.reserve(ROW, asked("a"))).closed_for == 0.0


async def test_no_permit_is_granted_twice_to_processes_that_ask_at_once(bench: Bench) -> None:
    made: list[Reservation] = []
    await bench.set_clock(EPOCH)

    async def process(name: str) -> None:
        limits = bench.connect()
        for number in range(20):
            made.append(await limits.reserve(ROW, asked(name, 4, held=4 * number, lifetime=600.0)))
        await limits.aclose()

    await asyncio.gather(*(process(f"worker{number}") for number in range(6)))
    assert len({answer.born for answer in made}) == 1
    starts = sorted((answer.at + answer.wait, answer.granted) for answer in made)
    for (earlier, _), (later, granted) in pairwise(starts):
        assert later - earlier >= 0.999 * granted / ((60_000 - 500) / 60)
