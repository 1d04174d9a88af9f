"""Waiting for records to become final, against the service, as it is and at its most hostile (Polling)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from payments_async import Checkout, InvalidRequest, NotFoundError, PaymentIntent, Payout, WaitTimeout
from payments_async.sandbox import Sandbox, VirtualClock
from tests.support.motion import INTENT, PAYOUT, play
from tests.support.scripted import answer
from tests.support.surfaces import Connect
from tests.support.waits import Watched, gaps

ATTEMPT = {
    "method_code": "mtn_bj",
    "country_code": "BJ",
    "phone": {"number": "+22990112233", "country": "BJ"},
}


@pytest.fixture
def sandbox(surface: str) -> Iterator[Sandbox]:
    """Each surface with another gap profile: pairs, as neither depends on the other."""
    profile = {"async": "hostile", "sync": "observed"}[surface]
    with Sandbox(profile=profile, clock=VirtualClock.frozen()) as sandbox:
        yield sandbox


@pytest.fixture
def world(sandbox: Sandbox, connect: Connect) -> Watched:
    return Watched(sandbox, connect)


@pytest.mark.fact("polling.normal-endpoint-first", "polling.stops-at-final")
@pytest.mark.parametrize(("outcome", "successful"), [("complete", True), ("fail:NO_FUNDS", False)])
async def test_a_payout_is_given_back_once_it_is_final(
    world: Watched, outcome: str, successful: bool
) -> None:
    world.sandbox.on("payouts.create").outcome(f"{outcome} after=42s")
    client = world.client()
    payout = await client.payouts.create(**PAYOUT)
    assert not payout.is_final
    final = await client.payouts.wait(payout)
    assert (final.id, final.is_final, final.is_successful) == (payout.id, True, successful)
    assert (final.failure is not None) is not successful
    assert 42.0 <= world.seconds <= 42.0 + 20.0
    reads = list(world.reads())
    assert {operation for _, operation in reads} == {"payouts.list"}
    world.sandbox.advance(3600.0)
    assert list(world.reads()) == reads


async def test_what_is_final_already_is_given_back_without_a_request(world: Watched) -> None:
    client = world.client()
    world.sandbox.on("payouts.create").outcome("complete immediate")
    payout = await client.payouts.wait(await client.payouts.create(**PAYOUT))
    checkout = await client.checkouts.create(**INTENT)
    world.sandbox.pay(checkout.id)
    checkout = await client.checkouts.retrieve(checkout.id)
    before = len(world.sandbox.requests)
    assert await client.payouts.wait(payout) is payout
    assert await client.checkouts.wait(checkout) is checkout
    assert len(world.sandbox.requests) == before


@pytest.mark.fact("polling.five-seconds", "polling.jitter", "polling.lengthens", "states.non-final")
async def test_unchanged_readings_come_ever_more_rarely_and_never_under_five_seconds(world: Watched) -> None:
    world.sandbox.on("payouts.create").outcome("manual")
    client = world.client()
    payout = await client.payouts.create(**PAYOUT)
    with pytest.raises(WaitTimeout) as caught:
        await client.payouts.wait(payout, deadline=1200.0)
    assert (caught.value.last.id, caught.value.last.is_final) == (payout.id, False)
    assert str(caught.value).startswith("the payout was not final in time; wait again with error.token")
    waited = gaps([at for at, _ in world.reads()])
    assert min(waited) >= 5.0
    assert waited[0] < 9.1 < 45.0 < min(waited[-5:])
    assert max(waited) <= 72.0
    assert len({round(gap, 3) for gap in waited[-5:]}) == 5, "jittered"


async def test_a_wait_goes_on_in_another_client_by_its_token(world: Watched) -> None:
    world.sandbox.on("payouts.create").outcome("complete after=100s")
    client = world.client()
    payout = await client.payouts.create(**PAYOUT)
    with pytest.raises(WaitTimeout) as caught:
        await client.payouts.wait(payout, deadline=30.0)
    assert json.loads(caught.value.token)["id"] == payout.id
    assert (await world.client().payouts.wait(caught.value.token)).is_successful
    assert (await world.client().payouts.wait(payout.id)).is_successful


async def test_a_record_that_is_in_no_list_is_waited_for_until_the_end(world: Watched) -> None:
    with pytest.raises(WaitTimeout) as caught:
        await world.client().payouts.wait("po_nobody", deadline=60.0)
    assert caught.value.last is None
    assert caught.value.effect == "none"
    assert "; it was never seen: check its id and the environment; " in str(caught.value)
    assert "reading failed" not in str(caught.value)


@pytest.mark.fact("service.return-is-not-proof")
@pytest.mark.parametrize("by", ["record", "id"])
async def test_a_checkout_is_given_back_once_its_payment_was_made(world: Watched, by: str) -> None:
    client = world.client()
    checkout = await client.checkouts.create(**INTENT)
    world.after(60.0, lambda: world.sandbox.pay(checkout.id))
    final = await client.checkouts.wait(checkout if by == "record" else checkout.id)
    assert (final.id, final.payment.is_final, final.payment.is_successful) == (checkout.id, True, True)
    assert final.payment.status is not None
    operations = {operation for _, operation in world.reads()}
    assert operations == {"payment_intents.list", "checkouts.retrieve"}
    assert min(gaps([at for at, _ in world.reads()])[:-1]) >= 5.0


async def test_a_checkout_that_is_not_paid_in_time_is_told_as_it_was_last_read(world: Watched) -> None:
    client = world.client()
    checkout = await client.checkouts.create(**INTENT)
    with pytest.raises(WaitTimeout) as caught:
        await client.checkouts.wait(checkout.id, deadline=60.0)
    assert caught.value.last.id == checkout.id
    world.sandbox.pay(checkout.id)
    assert (await client.checkouts.wait(caught.value.token)).payment.is_successful


@pytest.mark.fact("endpoint.live-operations-not-for-reading", "polling.five-seconds")
@pytest.mark.parametrize(("outcome", "successful"), [("complete", True), ("fail:NO_FUNDS", False)])
async def test_an_attempt_is_given_back_once_it_is_over(
    world: Watched, outcome: str, successful: bool
) -> None:
    world.sandbox.on("payment_intents.create").outcome(f"{outcome} after=42s")
    client = world.client()
    intent = await client.payment_intents.create(**INTENT, attempt=ATTEMPT)
    final = await client.payment_intents.wait_attempt(intent.id, intent.active_attempt.id)
    assert (final.is_final, final.is_successful) == (True, successful)
    assert {name for _, name in world.reads()} == {"payment_intents.list", "payment_intents.retrieve_attempt"}
    assert min(gaps([at for at, _ in world.reads()])[:-1]) >= 5.0


async def test_an_attempt_goes_on_being_waited_for_by_its_token(world: Watched) -> None:
    world.sandbox.on("payment_intents.create").outcome("complete manual")
    client = world.client()
    intent = await client.payment_intents.create(**INTENT, attempt=ATTEMPT)
    attempt = intent.active_attempt.id
    with pytest.raises(WaitTimeout) as caught:
        await client.payment_intents.wait_attempt(intent.id, attempt, deadline=600.0)
    assert caught.value.last.id == attempt
    waited = gaps([at for at, _ in world.reads()])
    assert waited[0] >= 5.0
    assert waited[-1] > 25.0
    world.sandbox.settle(attempt, "complete")
    assert (await client.payment_intents.wait_attempt(caught.value.token)).is_successful


@pytest.mark.parametrize("fault", ["http:503", "429:2", "reset", "cut_body", "http:500"])
async def test_failures_of_the_reading_that_pass_do_not_end_a_wait(world: Watched, fault: str) -> None:
    for operation in ("payouts.list", "payment_intents.list", "checkouts.retrieve"):
        world.sandbox.on(operation).respond(fault, times=7)
    client = world.client()
    payout = await client.payouts.create(**PAYOUT)
    assert (await client.payouts.wait(payout)).is_successful
    checkout = await client.checkouts.create(**INTENT)
    world.after(world.seconds + 30.0, lambda: world.sandbox.pay(checkout.id))
    assert (await client.checkouts.wait(checkout.id)).payment.is_successful


async def test_a_wait_that_only_met_failures_says_which(world: Watched) -> None:
    world.sandbox.on("*.list").respond("http:503", times=None)
    world.sandbox.on("checkouts.retrieve").respond("http:503", times=None)
    client = world.client()
    payout = await client.payouts.create(**PAYOUT)
    for wait in (client.payouts.wait(payout, deadline=60.0), client.checkouts.wait("cs_1", deadline=60.0)):
        with pytest.raises(WaitTimeout) as caught:
            await wait
        assert caught.value.__cause__.status == 503
        assert f"; the latest reading failed ({caught.value.__cause__}); " in str(caught.value)
        assert "it was never seen" in str(caught.value)


async def test_an_attempt_that_does_not_exist_ends_a_wait(world: Watched) -> None:
    with pytest.raises(NotFoundError):
        await world.client().payment_intents.wait_attempt("pi_nobody", "pa_nobody")


def token(**changes: object) -> str:
    return json.dumps({"v": 1, "kind": "payout", "id": "po_1", "attempt": None, "at": None, **changes})


ANOTHER = "is not the token of a payout's wait"
PAYOUTS: list[tuple[object, str, str]] = [
    ("", "payout_id", ""),
    (".", "payout_id", ""),
    ("..", "payout_id", ""),
    ("a\n", "payout_id", ""),
    (None, "payout_id", ""),
    (7, "payout_id", "not int"),
    (Checkout(), "payout_id", "a Payout, its id or a WaitTimeout's token, not Checkout"),
    ("{", "token", ANOTHER),
    ("{}", "token", ANOTHER),
    ("{" * 100_000, "token", ANOTHER),
    (token(v=2), "token", ANOTHER),
    (token(kind="checkout"), "token", ANOTHER),
    (token(id=".."), "token", ANOTHER),
    (token(id=7), "token", ANOTHER),
    (token(id=None), "token", ANOTHER),
    (token(at="yesterday"), "token", ANOTHER),
    (token(at=7), "token", ANOTHER),
]
BAD: list[tuple[Callable[[Any], Any], list[str], str]] = [
    *((lambda c, given=given: c.payouts.wait(given), [name], text) for given, name, text in PAYOUTS),
    (lambda c: c.payouts.wait("po_1", deadline=0), ["deadline"], ""),
    (lambda c: c.payouts.wait("po_1", deadline=float("inf")), ["deadline"], ""),
    (lambda c: c.payouts.wait("po_1", deadline=None), ["deadline"], ""),
    (lambda c: c.checkouts.wait(""), ["checkout_id"], ""),
    (lambda c: c.checkouts.wait(Payout(id="po_1")), ["checkout_id"], "must be a Checkout, its id"),
    (lambda c: c.checkouts.wait(token(), deadline=5), ["token"], "the token of a checkout's wait"),
    (
        lambda c: c.payment_intents.wait_attempt(PaymentIntent(id="pi_1"), "pa_1"),
        ["payment_intent_id"],
        "the payment's id or a WaitTimeout's token, not PaymentIntent",
    ),
    (lambda c: c.payment_intents.wait_attempt("pi_1", ".."), ["attempt_id"], ""),
    (lambda c: c.payment_intents.wait_attempt("pi_1"), ["attempt_id"], "is required"),
    (lambda c: c.payment_intents.wait_attempt(".."), ["payment_intent_id", "attempt_id"], ""),
    (lambda c: c.payment_intents.wait_attempt(token(kind="attempt")), ["token"], "of an attempt's wait"),
]


@pytest.mark.parametrize("surface", ["async"], indirect=True)  # the mirror checks nothing itself
async def test_a_wait_for_nothing_is_refused(connect: Connect) -> None:
    played = play(connect, answer(200))
    for wait, faults, message in BAD:
        with pytest.raises(InvalidRequest) as caught:
            await wait(played.client)
        assert list(caught.value.errors) == faults
        assert message in caught.value.errors[faults[-1]][0]
    assert played.transport.requests == []
