"""What a client says of money is true: each fault, gap and clock, held against the books of a service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from payments_async import (
    ConflictError,
    DecodeError,
    DuplicateReference,
    IdempotencyConflict,
    OutcomeUnknown,
    PaymentsError,
    Payout,
    ResponseMismatch,
    UnprocessableError,
)
from payments_async.sandbox import Sandbox, VirtualClock
from tests.campaigns import hostile, outcomes
from tests.support import creations
from tests.support.motion import INTENT, PAYOUT, REPLAYED, jumping, payout_answer, play, refusal
from tests.support.patience import PATIENCE
from tests.support.scripted import answer, lost, unsent
from tests.support.surfaces import Connect, error_of
from tests.support.waits import Watched

FAULTS = [
    *("http:500", "http:503", "http:501", "http:422", "http:409", "http:404", "429:3", "reset"),
    *("lost_request", "lost_response", "cut_body", "bad_json", "wrong_type", "empty"),
]
SLOW_FAULTS = ["hang", "slow:60"]
"""Each costs its attempt the whole timeout in real time."""
CREATES: dict[str, Callable[[Any], Any]] = {
    "payouts.create": lambda client: client.payouts.create(**PAYOUT),
    "payment_intents.create": lambda client: client.payment_intents.create(**INTENT),
    "checkouts.create": lambda client: client.checkouts.create(**INTENT),
}


def made(sandbox: Sandbox) -> int:
    return len(sandbox.books.payouts()) + len(sandbox.books.payments())


async def check(client: Any, sandbox: Sandbox, operation: str) -> None:
    """One creation: its effect must be what the books say, and a doubt must be resolvable."""
    error: PaymentsError | None = None
    try:
        await CREATES[operation](client)
    except PaymentsError as failure:
        error = failure
    assert made(sandbox) <= 1
    if error is None or error.effect == "happened":
        assert made(sandbox) == 1
    elif error.effect == "none":
        assert made(sandbox) == 0
    else:
        assert isinstance(error, OutcomeUnknown) or error.attempts[-1].status == 409
        sandbox.clear_rules()
        if isinstance(error, OutcomeUnknown):
            assert (await client.with_options(timeout=60.0).resolve(error)).id
            assert made(sandbox) == 1


@pytest.mark.parametrize(
    ("surface", "operation"),
    [*(("async", operation) for operation in CREATES), ("sync", "payouts.create")],
    indirect=["surface"],
)
@pytest.mark.parametrize("fault", FAULTS)
async def test_the_effect_is_true_under_every_fault(connect: Connect, fault: str, operation: str) -> None:
    for times in range(1, 5):
        with Sandbox(clock=VirtualClock.frozen()) as sandbox:
            sandbox.on(operation).respond(fault, times=times)
            await check(jumping(connect, sandbox), sandbox, operation)


@pytest.mark.parametrize("fault", SLOW_FAULTS)
@pytest.mark.parametrize("times", range(1, 5))
async def test_late_answers_are_in_doubt(connect: Connect, sandbox: Sandbox, fault: str, times: int) -> None:
    sandbox.on("payouts.create").respond(fault, times=times)
    await check(jumping(connect, sandbox, timeout=0.04), sandbox, "payouts.create")


async def test_a_refusal_that_got_lost_is_given_by_resolving(connect: Connect, sandbox: Sandbox) -> None:
    client = jumping(connect, sandbox)
    sandbox.on("payouts.create").respond("lost_response", times=3)
    caught = await error_of(
        OutcomeUnknown, client.payouts.create(**PAYOUT, gateway_options={"nobody": {"knows": 1}})
    )
    refused = await error_of(UnprocessableError, client.resolve(caught))
    assert (refused.effect, made(sandbox)) == ("none", 0)


MAIN_ROWS: list[tuple[list[Any], type[PaymentsError] | None, str, list[str]]] = [
    ([unsent()] * 3, None, "none", ["not_sent"] * 3),
    ([unsent("tls")], None, "none", ["not_sent"]),
    ([lost("timeout"), unsent(), unsent()], OutcomeUnknown, "unknown", ["in_doubt", "not_sent", "not_sent"]),
    ([refusal(503)] * 3, OutcomeUnknown, "unknown", ["in_doubt"] * 3),
    ([lost("too_large")], OutcomeUnknown, "unknown", ["in_doubt"]),
    ([refusal(501)], OutcomeUnknown, "unknown", ["in_doubt"]),
    ([refusal(302, {"Location": "/"})], OutcomeUnknown, "unknown", ["in_doubt"]),
    ([refusal(422)], UnprocessableError, "none", ["not_executed"]),
    ([lost(), refusal(422)], OutcomeUnknown, "unknown", ["in_doubt", "not_executed"]),
    ([refusal(429), refusal(422)], UnprocessableError, "none", ["not_executed"] * 2),
    ([answer(200, [])] * 3, OutcomeUnknown, "unknown", ["in_doubt"] * 3),
    ([payout_answer(status=201, fee_amount=7)], DecodeError, "happened", ["executed"]),
    ([lost(), payout_answer(fee_amount=7)], DecodeError, "happened", ["in_doubt", "executed"]),
    ([payout_answer(reference="r-9")], ResponseMismatch, "unknown", ["in_doubt"]),
    ([unsent(), payout_answer(reference="r-9")], ResponseMismatch, "unknown", ["not_sent", "in_doubt"]),
    ([payout_answer(reference="r-9", amount=7)] * 3, OutcomeUnknown, "unknown", ["in_doubt"] * 3),
    ([lost(), payout_answer(reference="r-9")], OutcomeUnknown, "unknown", ["in_doubt"] * 2),
    ([refusal(409)], DuplicateReference, "none", ["not_executed"]),
    ([refusal(409, REPLAYED)], OutcomeUnknown, "unknown", ["in_doubt"]),
    ([lost(), refusal(409)], OutcomeUnknown, "unknown", ["in_doubt", "not_executed"]),
    ([refusal(503), refusal(409, message="It is in progress.")], OutcomeUnknown, "unknown", ["in_doubt"] * 2),
]


@pytest.mark.parametrize(("script", "kind", "effect", "verdicts"), MAIN_ROWS, ids=range(len(MAIN_ROWS)))
async def test_an_error_tells_the_effect_and_every_attempts_verdict(
    connect: Connect, script: list[Any], kind: type[PaymentsError] | None, effect: str, verdicts: list[str]
) -> None:
    played = play(connect, *script)
    error = await error_of(kind or PaymentsError, played.client.payouts.create(**PAYOUT))
    assert (error.effect, [attempt.verdict for attempt in error.attempts]) == (effect, verdicts)
    assert (error.operation, error.idempotency_key) == ("payouts.create", played.keys[0])
    if isinstance(error, OutcomeUnknown):
        assert error.first_sent_at == error.prepared.created_at
        assert error.key_expires_at == error.first_sent_at + timedelta(hours=24)


async def test_a_failure_nobody_foresaw_leaves_a_sent_creation_in_doubt(connect: Connect) -> None:
    def broken(request: Any) -> Any:
        raise ZeroDivisionError("a bug in a transport")

    played = play(connect, broken)
    caught = await error_of(OutcomeUnknown, played.client.payouts.create(**PAYOUT))
    assert isinstance(caught.__cause__, ZeroDivisionError)
    assert [attempt.reason for attempt in caught.attempts] == ["ZeroDivisionError"]
    with pytest.raises(ZeroDivisionError):
        await played.client.payouts.list()


async def test_a_secret_key_that_stops_coming_does_not_hide_a_doubt(connect: Connect) -> None:
    keys = iter(["sk_sandbox_first"])
    played = play(connect, lost(), api_key=lambda: next(keys, None))
    caught = await error_of(OutcomeUnknown, played.client.payouts.create(**PAYOUT))
    assert len(caught.attempts) == 3


# Where the interface is silent, in four ways


FIELDS: dict[str, Any] = {**creations.PAYOUT, "currency": "EUR"}


@pytest.fixture(params=["observed", "strict", "alternate", "hostile"])
def profile(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def profiled(profile: str) -> Iterator[Sandbox]:
    with Sandbox(profile=profile, clock=VirtualClock.frozen()) as sandbox:
        yield sandbox


@pytest.fixture
def world(profiled: Sandbox, connect: Connect) -> Watched:
    return Watched(profiled, connect)


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


# Campaigns; at length: `python -m tests.campaigns.outcomes 100000`, and the same with `hostile`


HEAVY = pytest.mark.no_cover  # many times as slow when it is traced; others cover the same

CALLS = {"async": 2000, "sync": 200}
OF_CLOCKS = (
    *("create: OutcomeUnknown (unknown)", "create: UnprocessableError (none)"),
    *("resolve: OutcomeUnknown (unknown)", "resolve: UnprocessableError (none)", "resolve: PaymentIntent"),
    "resolve: Payout",
)


@HEAVY
async def test_whatever_clocks_do_no_more_is_said_than_known(connect: Connect, surface: str) -> None:
    report = await outcomes.Campaign(connect, seed=0).run(CALLS[surface])
    assert report.lies == []
    assert report.steps > report.calls / 3
    if surface == "async":
        assert [outcome for outcome in OF_CLOCKS if not report.outcomes[outcome]] == []


@HEAVY
@pytest.mark.parametrize("surface", ["async"], indirect=True)
@pytest.mark.parametrize(
    ("name", "believing"),
    [
        ("resolve.at_least", lambda then, now: now.wall - then.wall),
        ("pending.why_outdated", lambda *_: None),
    ],
    ids=["the wall clock", "no paused machine"],
)
async def test_it_catches_a_client_that_believes_its_own_clocks(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, name: str, believing: Callable[..., Any]
) -> None:
    monkeypatch.setattr(f"payments_async._request.{name}", believing)
    assert (await outcomes.Campaign(connect, seed=0).run(2000)).lies


CASES = {"async": 1000, "sync": 300}
OF_ANSWERS = (
    *("create: OutcomeUnknown (unknown)", "create: DecodeError (happened)", "create: Payout"),
    *("create: Checkout", "create: PaymentIntent", "read: DecodeError (none)", "read: Page"),
    *("read: ServerError (none)", "read: RateLimitedError (none)", "read: UnprocessableError (none)"),
)


@HEAVY
@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.slow)])
async def test_no_spoilt_answer_makes_the_client_say_more_than_it_knows(
    connect: Connect, surface: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "payments_async.models._masking._OWN_KEYS", {}
    )  # another test's key may be part of a spoilt id
    report = await hostile.Campaign(connect, seed=2026).run(times * CASES[surface])
    assert report.breaches == []
    assert sum(report.outcomes.values()) == times * CASES[surface]
    assert [outcome for outcome in OF_ANSWERS if not report.outcomes[outcome]] == []
