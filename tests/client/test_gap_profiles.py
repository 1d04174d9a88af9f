"""The places where the interface is silent, filled in four ways: the client keeps the money safe in each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from payments_async import (
    ConflictError,
    DuplicateReference,
    IdempotencyConflict,
    OutcomeUnknown,
    PaymentsError,
    Payout,
    ResponseMismatch,
    UnprocessableError,
)
from payments_async.sandbox import Sandbox, VirtualClock
from tests.support.creations import PAYOUT
from tests.support.patience import PATIENCE
from tests.support.surfaces import Connect, error_of
from tests.support.waits import Watched

FIELDS: dict[str, Any] = {**PAYOUT, "currency": "EUR"}


@pytest.fixture(params=["observed", "strict", "alternate", "hostile"])
def profile(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def sandbox(profile: str) -> Iterator[Sandbox]:
    with Sandbox(profile=profile, clock=VirtualClock.frozen()) as sandbox:
        yield sandbox


@pytest.fixture
def world(sandbox: Sandbox, connect: Connect) -> Watched:
    return Watched(sandbox, connect)


@pytest.mark.fact("idempotency.replayed-header", "idempotency.post-retries-keyed", "open.success-codes")
async def test_a_lost_answer_is_fetched_again_and_pays_once(world: Watched) -> None:
    world.sandbox.on("payouts.create").respond("lost_response")
    made = await world.client().payouts.create(**FIELDS, reference="r-1")
    assert made.response.replayed
    assert [entry.id for entry in world.sandbox.books.payouts()] == [made.id]


async def test_a_late_answer_is_never_paid_for_twice(world: Watched, profile: str) -> None:
    """The retry arrives while the first request is still being answered: its answer, or a vague 409."""
    for number, seconds in enumerate(PATIENCE):  # a busy machine may send nothing within the first
        reference = f"r-{number}"
        world.sandbox.on("payouts.create", reference=reference).respond("slow:3600")
        client = world.client(timeout=seconds, max_retries=1 if profile == "strict" else 6)
        ended = await asyncio.gather(
            client.payouts.create(**FIELDS, reference=reference), return_exceptions=True
        )
        if isinstance(ended[0], OutcomeUnknown if profile == "strict" else Payout):
            break
    assert profile == "strict" or ended[0].response.replayed
    (entry,) = (each for each in world.sandbox.books.payouts() if each.reference == reference)
    assert (await client.with_options(timeout=60.0).payouts.find(reference)).id == entry.id


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        ("observed", IdempotencyConflict),
        ("strict", IdempotencyConflict),
        ("alternate", ResponseMismatch),
        ("hostile", ConflictError),
    ],
)
async def test_one_key_under_two_bodies_pays_once(world: Watched, told: type[PaymentsError]) -> None:
    """Two programs that know nothing of each other, so that neither can refuse by itself."""
    one, other = world.client(), world.client()
    key = {"idempotency_key": "key-of-the-caller"}
    await one.payouts.create(**FIELDS, reference="r-1", **key)
    caught = await error_of(told, other.payouts.create(**{**FIELDS, "amount": 51, "reference": "r-2"}, **key))
    assert caught.idempotency_key == "key-of-the-caller"
    assert caught.effect == "unknown"
    assert len(world.sandbox.books.payouts()) == 1


@pytest.mark.fact("request.payouts.reference.unique", "error.409.duplicate-reference")
async def test_a_reference_is_used_once(world: Watched) -> None:
    client = world.client()
    await client.payouts.create(**FIELDS, reference="r-1")
    caught = await error_of(DuplicateReference, client.payouts.create(**FIELDS, reference="r-1"))
    assert (caught.status, caught.effect, bool(caught.message)) == (409, "none", True)
    assert len(world.sandbox.books.payouts()) == 1


@pytest.mark.fact("error.422", "open.422-errors")
async def test_what_the_service_refuses_is_told_by_field(world: Watched) -> None:
    with pytest.raises(UnprocessableError) as caught:
        await world.client().payouts.create(
            **{**FIELDS, "instrument": {"type": "phone", "phone_number": "+22990000000"}}, reference="r-1"
        )
    assert list(caught.value.errors) == ["instrument.country"]
    assert "required" in caught.value.errors["instrument.country"][0]
