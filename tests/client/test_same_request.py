"""A request that is under way is not sent beside itself: whoever sends it again gets its outcome."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from payments_async import (
    DeadlineExceeded,
    InvalidRequest,
    LimitReached,
    OutcomeUnknown,
    PaymentsError,
    PreparedRequest,
    RateLimits,
    ServerError,
    UnprocessableError,
    events,
)
from payments_async._http.types import HTTPRequest, HTTPResponse
from payments_async._request import pending
from payments_async._request.pending import PendingRequests
from payments_async._request.pipeline import Pipeline
from tests.support.canary import CANARY_KEY
from tests.support.jumping import JumpingRuntime
from tests.support.motion import INTENT, PAYOUT, listed, payout_answer, play, refusal, unresolved
from tests.support.scripted import ScriptedTransport, Step, answer, lost, unsent
from tests.support.surfaces import Connect, make_client

KEY = "order-7-attempt-1"
MINUTE = 60.0


class Held(ScriptedTransport):
    """A scripted service that answers nothing before so many callers have come, and counts those at once."""

    def __init__(self, *script: Step) -> None:
        super().__init__(*script)
        self.released = threading.Event()
        self.at_once = self.most_at_once = 0

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        request.sent = True
        try:
            await asyncio.to_thread(self.released.wait, 60)
            return await super().send(request)
        finally:
            self.at_once -= 1


@attrs.define
class Callers:
    """Who has come to send a request, in order."""

    transport: Held | None = None
    wanted: int = 2
    """How many have come before the service answers."""
    calls: list[Any] = attrs.field(factory=list)
    came: threading.Semaphore = attrs.field(factory=lambda: threading.Semaphore(0))

    def enter(self, call: Any) -> None:
        self.calls.append(call)
        self.came.release()
        if self.transport is not None and len(self.calls) >= self.wanted:
            self.transport.released.set()

    async def next(self) -> None:
        """Return when another one has come."""
        await asyncio.to_thread(self.came.acquire, timeout=300)


@pytest.fixture
def callers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callers]:
    seen, enter = Callers(), PendingRequests.enter

    def counted(self: PendingRequests, call: Any) -> Any:
        found = enter(self, call)
        seen.enter(call)
        return found

    monkeypatch.setattr(PendingRequests, "enter", counted)
    yield seen
    if seen.transport is not None:
        seen.transport.released.set()


def held(callers: Callers, *script: Step, wanted: int = 2) -> tuple[Held, JumpingRuntime]:
    callers.transport, callers.wanted = Held(*script), wanted
    return callers.transport, JumpingRuntime()


def ready(
    connect: Connect, callers: Callers, *script: Step, wanted: int = 2, **options: Any
) -> tuple[Held, Any, PreparedRequest]:
    """A service that holds its answers, a client of it, and a payout to be sent."""
    transport, runtime = held(callers, *script, wanted=wanted)
    client = connect(transport=runtime.wrap(transport), runtime=runtime, **options)
    return transport, client, client.payouts.prepare(**PAYOUT)


@pytest.mark.fact("error.429.no-parallel-retries")
@pytest.mark.parametrize("how", ["one client", "two clients", "two surfaces", "resolve"])
async def test_two_callers_of_one_request_have_one_retry_loop(
    connect: Connect, surface: str, callers: Callers, how: str
) -> None:
    transport, runtime = held(callers, refusal(503))
    options = {"transport": runtime.wrap(transport), "runtime": runtime}
    one = other = connect(**options)
    if how == "two clients":
        other = connect(**options)
    elif how == "two surfaces":
        defaults = {"api_key": CANARY_KEY, "base_url": "http://127.0.0.1:9/v1"}
        other = make_client("sync" if surface == "async" else "async", **defaults, **options)
    prepared = one.payouts.prepare(**PAYOUT)
    stored = PreparedRequest.from_json(prepared.to_json())
    again = other.resolve(stored) if how == "resolve" else other.send(stored)
    outcomes = await asyncio.gather(one.send(prepared), again, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [OutcomeUnknown] * 2
    assert all(isinstance(outcome.__cause__, ServerError) for outcome in outcomes)
    posts = [request for request in transport.requests if request.method == "POST"]
    assert (len(posts), transport.most_at_once) == (3, 1)
    assert outcomes[0] is not outcomes[1]
    await other.aclose()


@pytest.mark.parametrize("how", ["payouts", "payment_intents", "checkouts", "request"])
async def test_calls_under_a_key_of_the_callers_own_are_one_request(
    connect: Connect, callers: Callers, how: str
) -> None:
    transport, runtime = held(callers, payout_answer())
    client = connect(transport=runtime.wrap(transport), runtime=runtime)

    def call() -> Any:
        if how == "request":
            return client.request("POST", "/refunds", json={"amount": 1}, idempotency_key=KEY)
        fields = PAYOUT if how == "payouts" else INTENT
        return getattr(client, how).create(**fields, idempotency_key=KEY)

    if how == "checkouts":
        data = {"checkout": {"id": "cs_1", "url": "u"}, "payment": {"id": "pi_1"}}
        transport._script[:] = [answer(201, {"data": data})]
    first, second = await asyncio.gather(call(), call())
    assert first == second
    assert len(transport.requests) == 1
    if how == "request":
        assert first is not second  # what one changes in it is not the other's


async def test_a_definite_refusal_is_every_callers(connect: Connect, callers: Callers) -> None:
    transport, client, prepared = ready(connect, callers, refusal(422), wanted=3)
    outcomes = await asyncio.gather(*(client.send(prepared) for _ in range(3)), return_exceptions=True)
    assert [(type(each), each.effect) for each in outcomes] == [(UnprocessableError, "none")] * 3
    assert len({id(each) for each in outcomes}) == 3  # each has its own traceback
    assert len(transport.requests) == 1


@pytest.mark.parametrize(
    ("step", "end"),
    [(payout_answer(), (None, "happened")), (refusal(422), ("UnprocessableError", "none"))],
    ids=["paid", "refused"],
)
async def test_each_caller_of_one_request_has_the_events_of_a_call(
    connect: Connect, callers: Callers, step: Step, end: tuple[str | None, str]
) -> None:
    heard: list[Any] = []
    _, client, prepared = ready(connect, callers, step, wanted=3, on_event=heard.append)
    await asyncio.gather(*(client.send(prepared) for _ in range(3)), return_exceptions=True)
    begun = [event.call for event in heard if isinstance(event, events.CallStarted)]
    ends = {each.call: (each.error, each.effect) for each in heard if isinstance(each, events.CallEnded)}
    assert ends == dict.fromkeys(begun, end)
    assert (len(begun), [type(event).__name__ for event in heard].count("RequestSent")) == (3, 1)


async def test_once_it_has_ended_it_is_sent_again(connect: Connect, callers: Callers) -> None:
    transport, client, prepared = ready(connect, callers, payout_answer(), wanted=1)
    for _ in range(2):
        assert (await client.send(prepared)).id == "po_1"
    assert len(transport.requests) == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [({"amount": 11}, "another body: amount differs"), ({"extra_query": {"a": "b"}}, "the path differs")],
)
async def test_another_body_under_the_key_is_refused(
    connect: Connect, callers: Callers, arguments: dict[str, Any], told: str
) -> None:
    transport, runtime = held(callers, payout_answer())
    options = {"transport": runtime.wrap(transport), "runtime": runtime}
    first = asyncio.ensure_future(connect(**options).payouts.create(**PAYOUT, idempotency_key=KEY))
    await callers.next()
    client = connect(**options)
    prepared = attrs.evolve(client.payouts.prepare(**{**PAYOUT, **arguments}), idempotency_key=KEY)
    other = client.send(prepared)
    with pytest.raises(InvalidRequest, match=told) as caught:
        await other
    assert caught.value.effect == "none"
    transport.released.set()
    assert (await first).id == "po_1"
    assert len(transport.requests) == 1


@pytest.mark.parametrize("surface", ["async"], indirect=True)
@pytest.mark.parametrize(
    ("then", "outcome"),
    [(payout_answer(), "Payout"), (refusal(422), "OutcomeUnknown")],
    ids=["paid", "refused"],
)
async def test_when_the_first_caller_gives_up_the_next_one_continues(
    connect: Connect, callers: Callers, then: HTTPResponse, outcome: str
) -> None:
    """A refusal says nothing then of what the first one had sent."""
    heard: list[Any] = []
    transport, client, prepared = ready(connect, callers, then, wanted=99, on_event=heard.append)
    tasks = [asyncio.ensure_future(client.send(prepared)) for _ in range(3)]
    for _ in tasks:
        await callers.next()
    tasks[0].cancel()
    with pytest.raises(asyncio.CancelledError) as stopped:
        await tasks[0]
    assert stopped.value.outcome.effect == "unknown"  # type: ignore[attr-defined] # it rides along
    transport.released.set()
    others = await asyncio.gather(*tasks[1:], return_exceptions=True)
    assert [type(each).__name__ for each in others] == [outcome] * 2
    for kind in (events.CallStarted, events.CallEnded):
        assert [type(each) for each in heard].count(kind) == 3
    # the first one's was cut off unanswered
    assert (len(transport.requests), transport.most_at_once) == (1, 1)


@pytest.mark.parametrize("surface", ["async"], indirect=True)
async def test_a_caller_who_gives_up_waiting_learns_that_it_is_in_doubt(
    connect: Connect, callers: Callers, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []
    transport, client, prepared = ready(connect, callers, payout_answer(), wanted=99, on_event=heard.append)
    first = asyncio.ensure_future(client.send(prepared))
    await callers.next()
    second = asyncio.ensure_future(client.send(prepared))
    await callers.next()
    second.cancel()
    with pytest.raises(asyncio.CancelledError) as stopped:
        await second
    assert stopped.value.outcome.prepared == prepared  # type: ignore[attr-defined] # it rides along
    assert (heard[-1].error, heard[-1].effect) == ("CancelledError", "unknown")
    assert (type(heard[-2]).__name__, heard[-2].effect) == ("CallCancelled", "unknown")
    assert f"its idempotency key is {prepared.idempotency_key}" in caplog.text
    transport.released.set()
    assert (await first).id == "po_1"


async def test_a_callers_deadline_ends_its_own_wait_alone(connect: Connect, callers: Callers) -> None:
    transport, runtime = held(callers, payout_answer(), wanted=99)
    client = connect(transport=transport, runtime=runtime)
    prepared = client.payouts.prepare(**PAYOUT)
    first = asyncio.ensure_future(client.send(prepared))
    await callers.next()
    with pytest.raises(OutcomeUnknown) as caught:
        await client.send(prepared, deadline=45.0)  # longer than one look
    assert isinstance(caught.value.__cause__, DeadlineExceeded)
    assert runtime.monotonic() == 45.0
    transport.released.set()
    assert (await first).id == "po_1"
    assert len(transport.requests) == 1


@pytest.mark.parametrize("how", ["deadline", "on_limit"])
async def test_what_a_callers_own_options_end_another_caller_goes_on_with(
    connect: Connect, callers: Callers, how: str
) -> None:
    """The limit has no room for a minute: the first caller does not wait so long, the second does."""
    played = play(connect, payout_answer(), limits=RateLimits(writes=1))
    await played.client.payouts.create(**PAYOUT)
    prepared = played.client.payouts.prepare(**PAYOUT)
    hasty = played.client.with_options(on_limit="raise") if how == "on_limit" else played.client
    options = {"deadline": 10.0} if how == "deadline" else {}
    outcomes = await asyncio.gather(
        hasty.send(prepared, **options), played.client.send(prepared), return_exceptions=True
    )
    assert {type(each).__name__ for each in outcomes} in (
        {"Payout"},  # the patient one came first
        {"Payout", (DeadlineExceeded if how == "deadline" else LimitReached).__name__},
        {"Payout", "OutcomeUnknown"},
    )
    assert len(played.transport.requests) == 2


@pytest.mark.parametrize("failure", [lost("closed"), unsent("closed")], ids=["sent", "unsent"])
async def test_when_the_first_callers_client_is_closed_the_next_one_continues(
    connect: Connect, callers: Callers, failure: Step
) -> None:
    transport, runtime = held(callers, failure)
    closing = connect(transport=transport, runtime=runtime)
    going_on = connect(transport=ScriptedTransport(payout_answer()), runtime=runtime)
    prepared = closing.payouts.prepare(**PAYOUT)
    first = asyncio.ensure_future(closing.send(prepared))
    await callers.next()
    assert (await going_on.send(prepared)).id == "po_1"
    with pytest.raises(PaymentsError, match="closed"):
        await first


async def test_what_one_caller_changes_in_an_outcome_is_not_anothers(
    connect: Connect, callers: Callers
) -> None:
    steps = (payout_answer(metadata={"a": "b"}), refusal(422), refusal(503))
    for step in steps:
        transport, runtime = held(callers, step, wanted=len(callers.calls) + 2)
        client = connect(transport=transport, runtime=runtime, max_retries=0)
        prepared = client.payouts.prepare(**PAYOUT)
        one, other = await asyncio.gather(*(client.send(prepared) for _ in range(2)), return_exceptions=True)
        if not isinstance(one, PaymentsError):
            one.metadata["a"] = "changed"
            assert (other.metadata, other.response.status) == ({"a": "b"}, 201)
            continue
        for error in (one, one.__cause__ or one):
            error.errors = getattr(error, "errors", {})
            error.errors["amount"] = ["changed"]
            error.add_note("changed")
        for error in (other, other.__cause__ or other):
            assert getattr(error, "errors", {}) == {}
            assert not hasattr(error, "__notes__")


@pytest.mark.parametrize("surface", ["async"], indirect=True)
async def test_a_request_whose_event_loop_has_stopped_is_sent_by_the_next_caller(
    connect: Connect, callers: Callers
) -> None:
    transport, runtime = held(callers, refusal(422), wanted=99)
    options = {"transport": transport, "runtime": runtime}
    prepared = connect(**options).payouts.prepare(**PAYOUT)
    left = connect(**options)
    stopped = asyncio.new_event_loop()
    sending = stopped.create_task(left.send(prepared))

    def send() -> None:
        stopped.run_until_complete(callers.next())

    await asyncio.to_thread(send)
    transport.released.set()
    with pytest.raises(OutcomeUnknown) as caught:
        await connect(**options).send(prepared)
    assert isinstance(caught.value.__cause__, UnprocessableError)

    def end() -> None:
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            stopped.run_until_complete(sending)
        stopped.run_until_complete(stopped.shutdown_default_executor())
        stopped.close()

    await asyncio.to_thread(end)


async def test_a_forked_child_waits_for_none_of_its_parents_requests(
    connect: Connect, callers: Callers
) -> None:
    transport, client, prepared = ready(connect, callers, payout_answer())
    first = asyncio.ensure_future(client.send(prepared))
    await callers.next()
    pending._after_fork()
    assert (await client.send(prepared)).id == "po_1"
    assert (await first).id == "po_1"
    assert len(transport.requests) == 2


async def test_a_refusal_is_not_certain_after_a_repeat_that_was_left_in_doubt(connect: Connect) -> None:
    """The first error is old enough, but the request was sent again since, and may still be at work."""
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


async def test_a_key_that_the_client_made_is_looked_up_nowhere(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other caller can know it."""
    monkeypatch.setattr(Pipeline, "run_once", None)
    assert (await play(connect, payout_answer()).client.payouts.create(**PAYOUT, timeout=5.0)).id == "po_1"


@pytest.mark.parametrize("surface", ["async"], indirect=True)
async def test_many_threads_and_loops_send_a_request_once(connect: Connect, callers: Callers) -> None:
    transport, client, prepared = ready(connect, callers, payout_answer(), wanted=4)
    made = await asyncio.gather(
        *(asyncio.to_thread(lambda: asyncio.run(client.send(prepared))) for _ in range(4))
    )
    assert [payout.id for payout in made] == ["po_1"] * 4
    assert len(transport.requests) == 1
