"""A service that has no pages as large as we would like them: gap D, the narrow way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from payments_async import UnprocessableError
from payments_async.bulk._engine.service import Service
from payments_async.sandbox import STRICT, Sandbox, VirtualClock
from tests.support.creations import PAYOUT
from tests.support.patience import until
from tests.support.surfaces import Connect
from tests.support.waits import Watched

FIELDS: dict[str, Any] = {**PAYOUT, "currency": "EUR"}
BULK = pytest.mark.parametrize("surface", ["async"], indirect=True)
"""Bulk's engine has one surface."""


@pytest.fixture
def world(connect: Connect) -> Iterator[Watched]:
    narrow = attrs.evolve(STRICT, max_page_size=50)
    with Sandbox(profile=narrow, clock=VirtualClock.frozen()) as sandbox:
        yield Watched(sandbox, connect)


def requested(world: Watched) -> list[tuple[bool, int]]:
    """For each request of the list: whether it named a size, and the answer's status."""
    return [("per_page" in each.path, each.status) for each in world.sandbox.requests if each.method == "GET"]


async def test_a_find_walks_in_the_services_own_pages(world: Watched) -> None:
    client = world.client()
    made = [await client.payouts.create(**FIELDS, reference=f"r-{number}") for number in range(7)]
    assert (await client.payouts.find("r-0")).id == made[0].id
    assert requested(world) == [(True, 422), (False, 200), (False, 200)]


async def test_a_wait_asks_for_a_size_once_only(world: Watched) -> None:
    client = world.client()
    made = await client.payouts.create(
        **FIELDS, reference="r-0", metadata={"sandbox_scenario": "complete after=60s"}
    )
    assert (await client.payouts.wait(made.id, deadline=3600.0)).is_successful
    assert requested(world)[0] == (True, 422)
    assert set(requested(world)[1:]) == {(False, 200)}


async def test_a_size_that_the_caller_names_is_sent_as_it_is(world: Watched) -> None:
    with pytest.raises(UnprocessableError, match="per_page"):
        await world.client().payouts.list(page_size=100)
    assert requested(world) == [(True, 422)]


async def test_any_other_refusal_is_raised(world: Watched) -> None:
    client = world.client()
    made = await client.payouts.create(**FIELDS, reference="r-0")
    world.sandbox.on("payouts.list").respond("http:422", times=None)
    for reading in (client.payouts.find("r-0"), client.payouts.wait(made.id, deadline=60.0)):
        with pytest.raises(UnprocessableError):
            await reading
    assert requested(world) == [(True, 422)] * 2


@BULK
async def test_any_other_refusal_is_raised_in_bulk(world: Watched) -> None:
    world.sandbox.on("payouts.list").respond("http:422", times=None)
    with pytest.raises(UnprocessableError):
        await Service(world.client()).page()


@BULK
async def test_readings_at_the_same_time_all_take_the_services_own_pages(world: Watched) -> None:
    service = Service(world.client())
    world.sandbox.on("payouts.list").respond("slow:60", times=2)  # both are asked before one is answered
    readings = asyncio.gather(service.page(), service.page())
    await until(lambda: len(world.sandbox.requests) == 2)
    world.sandbox.advance(60.0)
    await readings
    assert requested(world) == [(True, 422)] * 2 + [(False, 200)] * 2


@BULK
async def test_bulk_reads_in_the_services_own_pages(world: Watched) -> None:
    client = world.client()
    for number in range(7):
        await client.payouts.create(**FIELDS, reference=f"r-{number}")
    service = Service(client)
    first = await service.page()
    rest = await service.page(first.next_cursor)
    assert [len(first.items), len(rest.items)] == [5, 2]
    await service.check_access()
    assert requested(world) == [(True, 422), (False, 200), (False, 200), (True, 200)]
