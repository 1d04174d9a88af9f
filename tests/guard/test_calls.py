"""Guarded calls: what an outcome does to the sums, who is under a guard, and who is asked."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal, localcontext
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_async import (
    AsyncPayments,
    AuthenticationError,
    Guard,
    GuardRefused,
    GuardRequest,
    LimitStoreUnavailable,
    OutcomeUnknown,
    PaymentsError,
    UnprocessableError,
)
from payments_async.events import CallEnded, PayoutRefused
from payments_async.sandbox import Sandbox
from payments_sync import Payments
from tests.conftest import BASE_URL, KEY
from tests.support.canary import shown_by, told_by
from tests.support.jumping import JumpingRuntime
from tests.support.motion import PAYOUT, REPLAYED, payout_answer, play, refusal
from tests.support.scripted import ScriptedTransport, answer, lost, unsent
from tests.support.surfaces import Connect

HOUR = 3_600.0
ASYNC = partial(AsyncPayments, KEY, base_url=BASE_URL)
GUARD = Guard(most={"XOF": 100}, sums=[("XOF", 150, "hour")], budgets="process")
OTHER = {**PAYOUT, "amount": 60, "reference": "r-2"}


def answer_of(amount: int, status: int = 201, headers: Mapping[str, str] | None = None, **fields: Any) -> Any:
    return payout_answer(status, headers, amount={"value": amount, "currency": "XOF"}, **fields)


async def refused(call: Any) -> GuardRefused:
    with pytest.raises(GuardRefused) as caught:
        await call
    return caught.value


@pytest.mark.parametrize(
    ("script", "is_counted"),
    [
        ([answer_of(100)], True),
        ([payout_answer(200, {}, id=None)] * 3, True),  # a 2xx that proves nothing
        ([lost()] * 3, True),
        ([refusal(500)] * 3, True),
        ([lost(), refusal(422)], True),  # the refusal of a second attempt proves nothing of the first
        ([lost(), refusal(422, REPLAYED)], True),
        ([answer_of(100, 200, REPLAYED)], False),  # its first sender has counted it
        ([lost(), answer_of(100, 200, REPLAYED)], True),
        ([unsent(), answer_of(100, 200, REPLAYED)], True),
        ([refusal(422)], False),
        ([refusal(401)], False),
        ([refusal(409)], False),  # a payout with this reference: not of this key
        ([refusal(503), refusal(409)], True),
        ([unsent()] * 3, False),
        ([unsent(), refusal(409)], False),
    ],
)
async def test_an_amount_is_given_back_only_when_it_is_certain_that_nothing_was_created(
    connect: Connect, script: Any, is_counted: bool
) -> None:
    room = answer_of(60, reference="r-2")
    played = play(connect, *script, room, guard=GUARD)
    with suppress(PaymentsError):
        await played.client.payouts.create(**{**PAYOUT, "amount": 100})
    assert played.transport.requests
    if is_counted:
        error = await refused(played.client.payouts.create(**OTHER))
        assert (error.rule, error.allowed) == ("sums", Decimal(50))
    else:
        await played.client.payouts.create(**OTHER)


async def test_what_a_resolve_finds_out_is_given_back_or_counted(connect: Connect) -> None:
    script = [*[lost()] * 3, refusal(422, REPLAYED)]
    played = play(connect, *script, answer_of(60, reference="r-2"), guard=GUARD)
    with pytest.raises(OutcomeUnknown) as caught:
        await played.client.payouts.create(**{**PAYOUT, "amount": 100})
    await refused(played.client.payouts.create(**OTHER))
    with pytest.raises(UnprocessableError):
        await played.client.resolve(caught.value)
    await played.client.payouts.create(**OTHER)


async def test_a_replay_counts_what_an_earlier_call_had_left_in_doubt(connect: Connect) -> None:
    played = play(connect, *[lost()] * 3, answer_of(100, 200, REPLAYED), guard=GUARD)
    prepared = played.client.payouts.prepare(**{**PAYOUT, "amount": 100})
    with pytest.raises(OutcomeUnknown):
        await played.client.send(prepared)
    await played.client.send(prepared)
    played.runtime.advance(HOUR / 2)  # longer than what has no outcome is held
    assert (await refused(played.client.payouts.create(**OTHER))).allowed == Decimal(50)


@pytest.mark.parametrize("name", ["payroll", None])
@pytest.mark.parametrize("is_shared", [False, True])
async def test_a_rotated_key_has_the_sums_of_a_guard_with_a_name(
    connect: Connect, tmp_path: Path, name: str | None, is_shared: bool
) -> None:
    address = {"base_url": f"https://api.example/{tmp_path.name}/v1"}
    guard = attrs.evolve(GUARD, name=name)
    if is_shared:
        guard = attrs.evolve(guard, budgets=None, state=tmp_path / "guard.sqlite")
    for key, amount in (("sk_sandbox_" + "a" * 40, 100), ("sk_sandbox_" + "b" * 40, 60)):
        script = answer_of(amount, reference=f"r-{amount}")
        played = play(connect, script, guard=guard, api_key=key, **address)
        if is_shared and (amount == 100 or name is None):
            key_guard(under(played.client)).sums.begin()
        paid = played.client.payouts.create(**{**PAYOUT, "amount": amount, "reference": f"r-{amount}"})
        if name and amount == 60:
            assert (await refused(paid)).allowed == Decimal(50)
        else:
            await paid


async def test_a_refusal_says_what_is_left_and_when_there_is_room(connect: Connect) -> None:
    played = play(connect, answer_of(100), answer_of(60, reference="r-2"), guard=GUARD)
    await played.client.payouts.create(**{**PAYOUT, "amount": 100})
    error = await refused(played.client.payouts.create(**OTHER))
    assert "XOF 60 is more than is left of the sum of one hour, 150: 50 are left now" in str(error)
    assert (error.effect, error.operation, error.attempts) == ("none", "payouts.create", ())
    assert error.room_at is not None
    wait = (error.room_at - played.runtime.now()).total_seconds()
    assert HOUR - 1 <= wait <= HOUR * 1.01
    played.runtime.advance(wait - 30)
    await refused(played.client.payouts.create(**OTHER))
    played.runtime.advance(30)
    await played.client.payouts.create(**OTHER)


async def test_a_write_is_judged_once_for_its_key_and_body(connect: Connect) -> None:
    guard = attrs.evolve(GUARD, sums=[("XOF", 100, "hour")])
    played = play(connect, answer_of(100), guard=guard)
    prepared = played.client.payouts.prepare(**{**PAYOUT, "amount": 100})
    for _ in range(3):
        await played.client.send(prepared)
    other = attrs.evolve(prepared, body=prepared.body.replace(b"BJ", b"TG"))
    assert (await refused(played.client.send(other))).rule == "sums"
    played.runtime.advance(HOUR * 1.01)  # counted no longer: it is judged as new
    await played.client.send(prepared)
    assert (await refused(played.client.send(other))).rule == "sums"


@pytest.mark.parametrize("currency", ["XOF", "GHS"])
async def test_an_attempt_after_the_lease_renews_the_reservation(connect: Connect, currency: str) -> None:
    wait = {"Retry-After": "100"}
    answers = [refusal(429, wait)] * 2 + [answer_of(100)]
    guard = Guard(most={"XOF": 100, "GHS": 100}, sums=[(currency, 150, "hour")], budgets="process")
    played = play(connect, *answers, guard=guard, max_retries=3)
    await played.client.payouts.create(**{**PAYOUT, "amount": 100})
    assert played.runtime.monotonic() > 200
    if currency == "XOF":
        assert (await refused(played.client.payouts.create(**OTHER))).rule == "sums"
    else:  # no sum counts it
        await played.client.payouts.create(**{**PAYOUT, "amount": 100})


async def test_a_call_that_is_cancelled_while_somebody_is_asked_sent_nothing() -> None:
    begun, is_over = asyncio.Event(), asyncio.Event()

    async def ask(request: GuardRequest) -> bool:
        begun.set()
        try:
            return await asyncio.get_running_loop().create_future() is None
        finally:
            is_over.set()

    played = play(ASYNC, answer_of(100), guard=attrs.evolve(GUARD, most={"XOF": 50}, ask=ask))
    call = asyncio.ensure_future(played.client.payouts.create(**{**PAYOUT, "amount": 100}))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await is_over.wait()
    assert played.transport.requests == []


async def test_a_write_in_doubt_is_sent_again_without_room_as_long_as_it_counts(connect: Connect) -> None:
    rest = answer_of(50, reference="r-3")
    played = play(connect, *[lost()] * 3, rest, lost(), answer_of(100), guard=GUARD)
    prepared = played.client.payouts.prepare(**{**PAYOUT, "amount": 100})
    with pytest.raises(OutcomeUnknown):
        await played.client.send(prepared)
    await played.client.payouts.create(**{**PAYOUT, "amount": 50, "reference": "r-3"})
    played.runtime.advance(1_200)
    with pytest.raises(OutcomeUnknown):
        await played.client.send(prepared, max_retries=0)
    await played.client.send(prepared)
    assert (await refused(played.client.payouts.create(**OTHER))).allowed == 0


async def test_a_write_in_doubt_that_counts_no_longer_stays_in_doubt_where_there_is_no_room(
    connect: Connect,
) -> None:
    played = play(connect, *[lost()] * 3, answer_of(60, reference="r-2"), guard=GUARD)
    prepared = played.client.payouts.prepare(**{**PAYOUT, "amount": 100})
    with pytest.raises(OutcomeUnknown):
        await played.client.send(prepared)
    played.runtime.advance(HOUR + 1_200)
    await played.client.payouts.create(**OTHER)
    with pytest.raises(OutcomeUnknown, match=r"not sent again: .*the guard refused it") as caught:
        await played.client.send(prepared)
    assert isinstance(caught.value.__cause__, GuardRefused)
    assert len(played.transport.requests) == 4


async def test_an_attempt_for_which_there_is_no_room_any_more_is_not_sent(connect: Connect) -> None:
    guard = Guard(most={"XOF": 50}, sums=[("XOF", 150, "minute")], budgets="process", ask=lambda _: True)

    def refusing(_: object) -> Any:
        key_guard(under(played.client)).join(attrs.evolve(guard, sums=[("XOF", 50, "minute")]))
        return refusal(429, {"Retry-After": "1100"})  # longer than the amount counts

    played = play(connect, refusing, guard=guard, max_retries=3, max_retry_after=2_000.0)
    error = await refused(played.client.payouts.create(**{**PAYOUT, "amount": 100}))
    assert (len(error.attempts), error.effect, len(played.transport.requests)) == (1, "none", 1)


async def test_an_attempt_whose_reservation_cannot_be_renewed_is_not_sent(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise LimitStoreUnavailable("gone", retry_after=5.0)

    def refusing(_: object) -> Any:
        monkeypatch.setattr("payments_async._guard.sqlite.MemoryState.ask", away)
        return refusal(429, {"Retry-After": "1100"})

    played = play(connect, refusing, guard=GUARD, max_retries=1, max_retry_after=2_000.0)
    with pytest.raises(LimitStoreUnavailable):
        await played.client.payouts.create(**{**PAYOUT, "amount": 100})
    assert len(played.transport.requests) == 1


async def test_nobody_is_asked_about_a_row_of_a_batch() -> None:
    runtime, transport = JumpingRuntime(), ScriptedTransport(answer_of(101))
    guard = Guard(most={"XOF": 100}, ask=lambda request: True)
    client = AsyncPayments(KEY, base_url=BASE_URL, runtime=runtime, transport=transport, guard=guard)
    prepared = client.payouts.prepare(**{**PAYOUT, "amount": 101})
    assert (await refused(client.send(prepared, priority="bulk"))).rule == "most"
    await client.send(prepared)


async def test_the_same_key_and_body_at_another_path_is_another_write(connect: Connect) -> None:
    guard = Guard(
        most={"XOF": 100}, sums=[("XOF", 150, "hour")], countries=["GH"], budgets="process", collecting=True
    )
    played = play(connect, answer(200, {"data": {"id": "pi_1"}}), guard=guard)
    body: dict[str, Any] = {"amount": 100, "currency": "XOF", "instrument": {"country": "BJ"}}
    await played.client.request("POST", "/payment/intents", json=body, idempotency_key="the-same-key")
    call = played.client.request("POST", "/payouts", json=body, idempotency_key="the-same-key")
    with pytest.raises(PaymentsError) as caught:
        await call
    assert getattr(caught.value, "rule", "") == "countries" or "idempotency" in str(caught.value)
    assert len(played.transport.requests) == 1


async def test_sums_are_exact_whatever_the_programs_decimal_context_is(connect: Connect) -> None:
    guard = attrs.evolve(GUARD, sums=[("XOF", 100, "hour")])
    with localcontext() as context:
        context.prec = 1
        played = play(connect, *[answer_of(17)] * 9, guard=guard)
        for _ in range(5):
            await played.client.payouts.create(**{**PAYOUT, "amount": 17})
        assert (await refused(played.client.payouts.create(**{**PAYOUT, "amount": 17}))).allowed == 15


def under(client: Any) -> AsyncPayments:
    """The client under that of a surface."""
    found: AsyncPayments = client if isinstance(client, AsyncPayments) else client._blocking._async
    return found


# --- Who is under it ---


async def test_every_client_of_the_key_is_under_a_guard_also_those_made_before(sandbox: Sandbox) -> None:
    address = {"api_key": sandbox.api_key, "base_url": sandbox.base_url}
    wallet = {**PAYOUT, "amount": 101}

    def blocking() -> None:
        with Payments(**address) as client, pytest.raises(GuardRefused):
            client.payouts.create(**wallet)

    async with AsyncPayments(**address) as before:
        await before.payouts.create(**wallet)
        async with AsyncPayments(**address, guard=Guard(most={"XOF": 100})):
            assert (await refused(before.payouts.create(**wallet))).rule == "most"
        assert (await refused(before.payouts.create(**wallet))).rule == "most"
        await asyncio.to_thread(blocking)
        async with AsyncPayments(**address, guard=Guard(most={"XOF": 50, "GHS": 50})):
            assert (await refused(before.payouts.create(**OTHER))).allowed == 50
            assert (await refused(before.payouts.create(**{**OTHER, "currency": "GHS"}))).rule == "currency"
        free = before.with_options(api_key="sk_sandbox_another")
        with pytest.raises(AuthenticationError):
            await free.payouts.create(**wallet)
        await free.aclose()


async def test_a_key_from_a_function_and_another_key_of_a_client_have_its_guard() -> None:
    runtime, transport = JumpingRuntime(), ScriptedTransport(answer_of(10))
    client = AsyncPayments(
        lambda: KEY, base_url=BASE_URL, runtime=runtime, transport=runtime.wrap(transport), guard=GUARD
    )
    await client.payouts.create(**{**PAYOUT, "amount": 10})
    assert (await refused(client.payouts.create(**{**PAYOUT, "amount": 101}))).rule == "most"
    other = client.with_options(api_key="sk_sandbox_another")
    assert (await refused(other.payouts.create(**{**PAYOUT, "amount": 101}))).rule == "most"


def test_threads_that_make_guards_of_one_key_at_once_lose_none(sandbox: Sandbox) -> None:
    guards = [Guard(most={"XOF": 100 + number}) for number in range(8)]
    ready = threading.Barrier(len(guards))

    def make(guard: Guard) -> AsyncPayments:
        ready.wait()
        return AsyncPayments(sandbox.api_key, base_url=sandbox.base_url, guard=guard)

    with ThreadPoolExecutor(len(guards)) as pool:
        clients = [*pool.map(make, guards)]
    assert {id(key_guard(client)) for client in clients} == {id(key_guard(clients[0]))}
    assert {*key_guard(clients[0]).guards} == {*guards}


async def test_of_two_guards_the_lower_sum_holds() -> None:
    runtime = JumpingRuntime()
    client = AsyncPayments(
        *(KEY,), base_url=BASE_URL, runtime=runtime, guard=GUARD, transport=ScriptedTransport(answer_of(100))
    )
    state = key_guard(client)
    state.join(attrs.evolve(GUARD, sums=[("XOF", 1_000, "hour"), ("XOF", 2_000, "day")]))
    assert state.limits["XOF"] == [(3_600, Decimal(150)), (86_400, Decimal(2_000))]
    await client.payouts.create(**{**PAYOUT, "amount": 100})
    assert (await refused(client.payouts.create(**OTHER))).rule == "sums"


def key_guard(client: AsyncPayments | Payments) -> Any:
    pipeline = client._pipeline if isinstance(client, AsyncPayments) else client._async._pipeline
    return pipeline.keys.of(pipeline.settings.key()).guards.guard


# --- ask ---


def ended(end: object) -> object:
    """What a function returns, or raises."""
    if isinstance(end, Exception):
        raise end
    return end


def plainly(asked: list[GuardRequest], end: object) -> Any:
    return lambda request: asked.append(request) or ended(end)


def awaited(asked: list[GuardRequest], end: object) -> Any:
    async def ask(request: GuardRequest) -> object:
        return plainly(asked, end)(request)

    return ask


def plainly_awaited(asked: list[GuardRequest], end: object) -> Any:
    return lambda request: awaited(asked, end)(request)


@pytest.mark.parametrize("asking", [plainly, awaited, plainly_awaited])
@pytest.mark.parametrize(
    "end", [True, False, None, 1, "yes", ValueError("account 0244"), StopIteration("account 0244")]
)
async def test_only_a_yes_lifts_the_most_of_one_payout(
    connect: Connect, asking: Any, end: object, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[GuardRequest] = []
    played = play(connect, answer_of(101), guard=attrs.evolve(GUARD, ask=asking(asked, end)))
    call = played.client.payouts.create(**{**PAYOUT, "amount": 101})
    await (call if end is True else refused(call))
    assert [(each.amount, each.currency, each.most) for each in asked] == [
        (Decimal(101), "XOF", Decimal(100))
    ]
    assert "+229" not in repr(asked)
    assert (len(played.transport.requests) == 1) is (end is True)
    if isinstance(end, Exception):  # only its type is logged
        record = caplog.records[0]
        assert (record.levelno, record.exc_info) == (logging.WARNING, None)
        assert "account" not in caplog.text
        assert "which refuses the payout" in record.getMessage()


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"amount": 151}, "sums"),
        ({"currency": "GHS", "amount": 500}, "currency"),
        ({"amount": "101.5"}, "decimals"),
    ],
)
async def test_a_yes_lifts_nothing_else(connect: Connect, fields: Mapping[str, Any], rule: str) -> None:
    played = play(connect, payout_answer(), guard=attrs.evolve(GUARD, ask=lambda request: True))
    assert (await refused(played.client.payouts.create(**{**PAYOUT, **fields}))).rule == rule


async def test_who_was_asked_is_not_asked_again_for_the_same_write(connect: Connect) -> None:
    asked: list[Any] = []
    guard = Guard(most={"XOF": 100}, ask=lambda request: not asked.append(request))
    played = play(connect, *[lost()] * 3, answer_of(101), guard=guard)
    with pytest.raises(OutcomeUnknown) as caught:
        await played.client.payouts.create(**{**PAYOUT, "amount": 101})
    await played.client.resolve(caught.value)
    assert len(asked) == 1


async def test_of_too_many_writes_the_first_is_judged_as_new(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments_async._guard.key_guard._KNOWN", 1)
    asked: list[Any] = []
    guard = Guard(most={"XOF": 10}, ask=lambda request: not asked.append(request))
    played = play(connect, *[lost()] * 3, guard=guard, max_retries=0)
    first, second = (
        played.client.payouts.prepare(**{**PAYOUT, "amount": 100, "reference": name}) for name in "ab"
    )
    for prepared in (first, second, first):
        with pytest.raises(OutcomeUnknown):
            await played.client.send(prepared)
    assert len(asked) == 3


async def test_a_body_that_cannot_be_read_is_no_payment(connect: Connect) -> None:
    played = play(connect, guard=GUARD)
    assert key_guard(under(played.client)).judged(b"[]").rule == "body"


async def test_a_yes_holds_for_attempts_that_begin_a_day_later(connect: Connect) -> None:
    answers = [refusal(429, {"Retry-After": "90000"}), answer_of(101)]
    guard = Guard(most={"XOF": 100}, ask=lambda request: True)
    played = play(connect, *answers, guard=guard, max_retry_after=100_000.0)
    await played.client.payouts.create(**{**PAYOUT, "amount": 101})
    assert len(played.transport.requests) == 2


# --- What is seen ---


async def test_a_refusal_is_an_event_and_a_warning_and_shows_no_account(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Any] = []
    played = play(connect, payout_answer(), guard=GUARD, on_event=seen.append)
    with caplog.at_level(logging.WARNING, "payments"):
        error = await refused(played.client.payouts.create(**{**PAYOUT, "amount": 101}))
    [event] = [each for each in seen if isinstance(each, PayoutRefused)]
    assert (event.operation, event.rule, str(event)) == ("payouts.create", "most", str(error))
    [ended] = [each for each in seen if isinstance(each, CallEnded)]
    assert (ended.error, ended.effect) == ("GuardRefused", "none")
    assert [record.getMessage() for record in caplog.records] == [str(error)]
    assert "990112233" not in told_by(error) + shown_by(error)


async def test_the_message_of_a_job_that_sends_cents_says_what_to_write(connect: Connect) -> None:
    played = play(connect, payout_answer(), guard=Guard(most={"GHS": 500}))
    error = await refused(played.client.payouts.create(**{**PAYOUT, "currency": "GHS", "amount": 25_000}))
    assert str(error) == (
        "payouts.create: the guard refused it, and nothing was sent (rule most): GHS 25000 is above the "
        "most of one payout, 500. Amounts are major units: 50 is GHS 50.00. If 25000 was meant as minor "
        "units (cents), write 250.00, and check earlier payouts: what was not above 500 may have been paid "
        "100 times too much"
    )
