"""A request that is under way in this process is not sent beside itself: a second call is refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from payments_async import IdempotencyConflict, OutcomeUnknown, PreparedRequest, UnprocessableError
from tests.support.canary import CANARY_KEY
from tests.support.jumping import JumpingRuntime
from tests.support.motion import INTENT, OURS, PAYOUT, listed, payout_answer, play, refusal, unresolved
from tests.support.pure_calls import pending
from tests.support.scripted import ScriptedTransport, Step, answer, lost
from tests.support.surfaces import Connect, make_client

KEY = "order-7-attempt-1"
MINUTE = 60.0


class Held(ScriptedTransport):
    """A scripted service that keeps its first request waiting until it is released."""

    def __init__(self, *script: Step) -> None:
        super().__init__(*script)
        self.came, self.released = threading.Event(), threading.Event()

    async def send(self, request: Any) -> Any:
        request.sent = True
        if request.method == "POST":
            self.came.set()
            await asyncio.to_thread(self.released.wait, 60)
        return await super().send(request)

    async def until_it_came(self) -> None:
        assert await asyncio.to_thread(self.came.wait, 60)


@attrs.frozen
class UnderWay:
    """A payout that is being sent, by the first of two clients."""

    transport: Held
    runtime: JumpingRuntime
    client: Any
    prepared: PreparedRequest
    first: asyncio.Future[Any]


@pytest.fixture
def held() -> Iterator[list[Held]]:
    services: list[Held] = []
    yield services
    for service in services:
        service.released.set()


async def under_way(connect: Connect, held: list[Held], *script: Step) -> UnderWay:
    """Begin a payout whose answer is held back."""
    transport, runtime = Held(*(script or (payout_answer(),))), JumpingRuntime()
    held.append(transport)
    client = connect(transport=transport, runtime=runtime)
    prepared = client.payouts.prepare(**PAYOUT, idempotency_key=KEY)
    first = asyncio.ensure_future(client.send(prepared))
    await transport.until_it_came()
    return UnderWay(transport, runtime, client, prepared, first)


OTHERWISE: dict[str, dict[str, Any]] = {
    "another body": {"amount": 11},
    "another path": {"extra_query": {"a": "b"}},
}


@pytest.mark.fact("error.429.no-parallel-retries")
@pytest.mark.parametrize(
    "how", ["one client", "two clients", "two surfaces", "another thread", "create", *OTHERWISE]
)
async def test_a_second_call_with_the_key_is_refused(
    connect: Connect, surface: str, held: list[Held], how: str
) -> None:
    begun = await under_way(connect, held)
    options: dict[str, Any] = {"transport": begun.transport, "runtime": begun.runtime}
    other = begun.client
    if how == "two clients":
        other = connect(**options)
    elif how == "two surfaces":
        defaults = {"api_key": CANARY_KEY, "base_url": "http://127.0.0.1:9/v1"}
        other = make_client("sync" if surface == "async" else "async", **defaults, **options)
    stored = PreparedRequest.from_json(begun.prepared.to_json())
    if how in OTHERWISE:
        stored = attrs.evolve(other.payouts.prepare(**{**PAYOUT, **OTHERWISE[how]}), idempotency_key=KEY)
    with pytest.raises(IdempotencyConflict, match="another call of this process") as caught:
        if how == "create":
            await other.payouts.create(**PAYOUT, idempotency_key=KEY)
        elif how == "another thread" and surface == "async":
            await asyncio.to_thread(lambda: asyncio.run(other.send(stored)))
        else:
            await other.send(stored)
    error = caught.value
    assert (error.effect, error.idempotency_key, error.operation, error.attempts) == (
        "unknown",
        KEY,
        "payouts.create",
        (),
    )
    begun.transport.released.set()
    assert (await begun.first).id == "po_1"
    assert len(begun.transport.requests) == 1
    if how == "two surfaces":
        await other.aclose()


@pytest.mark.parametrize("how", ["payment_intents", "checkouts", "request"])
async def test_every_write_under_a_key_of_the_callers_own_is_one(
    connect: Connect, held: list[Held], how: str
) -> None:
    data = {"checkout": {"id": "cs_1", "url": "u"}, "payment": {"id": "pi_1"}, "id": "pi_1"}
    transport, runtime = Held(answer(201, {"data": data})), JumpingRuntime()
    held.append(transport)
    client = connect(transport=transport, runtime=runtime)

    def call() -> Any:
        if how == "request":
            return client.request("POST", "/refunds", json={"amount": 1}, idempotency_key=KEY)
        return getattr(client, how).create(**INTENT, idempotency_key=KEY)

    first = asyncio.ensure_future(call())
    await transport.until_it_came()
    with pytest.raises(IdempotencyConflict):
        await call()
    transport.released.set()
    await first
    assert len(transport.requests) == 1


@pytest.mark.parametrize("listing", [[], [OURS]], ids=["not listed", "listed"])
async def test_resolving_what_is_under_way_looks_it_up(
    connect: Connect, held: list[Held], listing: list[dict[str, Any]]
) -> None:
    begun = await under_way(connect, held, listed(*listing), payout_answer())
    if listing:
        assert (await begun.client.resolve(begun.prepared)).id == "po_1"
    else:
        with pytest.raises(OutcomeUnknown) as caught:
            await begun.client.resolve(begun.prepared)
        assert isinstance(caught.value.__cause__, IdempotencyConflict)
    begun.transport.released.set()
    await begun.first


@pytest.mark.parametrize("surface", ["async"], indirect=True)
async def test_after_the_first_caller_gave_up_the_request_can_be_sent_again(
    connect: Connect, held: list[Held]
) -> None:
    begun = await under_way(connect, held)
    begun.first.cancel()
    with pytest.raises(asyncio.CancelledError) as stopped:
        await begun.first
    assert stopped.value.outcome.effect == "unknown"  # type: ignore[attr-defined] # it rides along
    begun.transport.released.set()
    assert (await begun.client.send(begun.prepared)).id == "po_1"


@pytest.mark.parametrize("surface", ["async"], indirect=True)
async def test_a_request_whose_event_loop_has_stopped_is_sent_by_the_next_caller(
    connect: Connect, held: list[Held]
) -> None:
    transport, runtime = Held(payout_answer()), JumpingRuntime()
    held.append(transport)
    left = connect(transport=transport, runtime=runtime)
    prepared = left.payouts.prepare(**PAYOUT)
    stopped = asyncio.new_event_loop()
    sending = stopped.create_task(left.send(prepared))
    await asyncio.to_thread(lambda: stopped.run_until_complete(transport.until_it_came()))
    transport.released.set()
    assert (await connect(transport=transport, runtime=runtime).send(prepared)).id == "po_1"

    def end() -> None:
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            stopped.run_until_complete(sending)
        stopped.run_until_complete(stopped.shutdown_default_executor())
        stopped.close()

    await asyncio.to_thread(end)


async def test_a_forked_child_may_send_its_parents_requests(connect: Connect, held: list[Held]) -> None:
    begun = await under_way(connect, held)
    pending._renew_after_fork()
    begun.transport.released.set()
    assert (await begun.client.send(begun.prepared)).id == "po_1"
    await begun.first


@pytest.mark.parametrize("forgets", [False, True])
async def test_a_refusal_is_not_certain_after_a_repeat_that_was_left_in_doubt(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, forgets: bool
) -> None:
    """The first error is old enough, but the request was sent again since, and may still be at work."""
    if forgets:  # which of many it was: any may have been sent then
        monkeypatch.setattr(pending, "_MOST_DOUBTS", 0)
    played = play(connect, lost(), lost(), refusal(422))
    with pytest.raises(OutcomeUnknown) as caught:
        await played.client.payouts.create(**PAYOUT, max_retries=0)
    played.runtime.advance(16 * MINUTE)
    with pytest.raises(OutcomeUnknown):
        await played.client.send(caught.value.prepared, max_retries=0)
    played.transport._script[:] = [refusal(422), listed()] * 2
    early = await unresolved(played, caught.value)
    assert isinstance(early.__cause__, UnprocessableError)
    played.runtime.advance(16 * MINUTE)
    with pytest.raises(UnprocessableError):
        await played.client.resolve(caught.value)


def test_clients_of_one_clock_share_their_requests_and_others_do_not() -> None:
    class Slotted(JumpingRuntime):
        __hash__ = None  # type: ignore[assignment] # what cannot be kept in a table

    runtime = JumpingRuntime()
    assert pending.pending_of(runtime) is pending.pending_of(runtime)
    assert pending.pending_of(runtime) is not pending.pending_of(JumpingRuntime())
    assert pending.pending_of(Slotted()) is not pending.pending_of(Slotted())
