"""What a client says of money is true: every fault the sandbox knows, held against the sandbox's books."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from payments_async import (
    DecodeError,
    DuplicateReference,
    OutcomeUnknown,
    PaymentsError,
    ResponseMismatch,
    UnprocessableError,
)
from payments_async.sandbox import Sandbox, VirtualClock
from tests.support.motion import INTENT, PAYOUT, REPLAYED, jumping, payout_answer, play, refusal
from tests.support.scripted import answer, lost, unsent
from tests.support.surfaces import Connect, error_of

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
    caught = await error_of(kind or PaymentsError, played.client.payouts.create(**PAYOUT))
    error = caught
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
