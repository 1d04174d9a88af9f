"""Processes that share one limit, in simulated time: what callers see, and what an outage of the store is."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest

from payments_async import (
    APIConnectionError,
    AsyncPayments,
    ConfigurationError,
    DeadlineExceeded,
    LimitReached,
    LimitStoreUnavailable,
    OutcomeUnknown,
    RateLimitedError,
    RateLimits,
    events,
)
from tests.campaigns.pacing import ARGUMENTS, Service, fullest_sliding
from tests.support.limit_stores import AHEAD, AHEAD_IN_BULK, VALID, Fleet, store_client
from tests.support.motion import payout_answer, refusal
from tests.support.scripted import HTTPRequest, HTTPResponse, ScriptedTransport, Step, lost
from tests.support.simulated import run_simulated, simulated

CREATED = payout_answer(reference=None)


def in_fleet(*script: Step, **options: Any) -> Callable[[Callable[..., Any]], Callable[[], None]]:
    """A test of processes that share a limit, in simulated time. It takes all, and the first one's client."""

    def decorate(main: Callable[[Fleet, Any], Coroutine[Any, Any, None]]) -> Callable[[], None]:
        async def played() -> None:
            async with fleet(*script, **options) as world:
                await main(world, world.clients[0])

        return simulated(played)

    return decorate


def fleet(*script: Step, processes: int = 1, **options: Any) -> Fleet:
    """Processes of a service that says what the script says."""
    return Fleet(ScriptedTransport(*(script or (CREATED,))), processes=processes, **options)


async def create(client: AsyncPayments, number: int = 1) -> None:
    await asyncio.gather(*(client.payouts.create(**ARGUMENTS) for _ in range(number)))


# --- In good times ---


@in_fleet()
async def test_callers_get_what_the_store_lends_and_one_question_serves_all_who_wait(
    world: Fleet, client: Any
) -> None:
    await create(client, 40)
    ((row, ask),) = world.server.asked
    assert ask.wanted == 40
    address, _, kind = row.split()
    assert (address, kind) == ("http://127.0.0.1:9/v1", "write")
    assert (ask.step, ask.ahead) == (pytest.approx(0.0011046, abs=1e-6), AHEAD)
    assert "canary" not in row.lower()


@in_fleet()
async def test_a_call_that_finds_a_permit_does_not_wait(world: Fleet, client: Any) -> None:
    await create(client, 40)
    await create(client, 1)
    asked = len(world.server.asked)
    before = world.runtime.monotonic()
    await create(client, 5)
    assert world.runtime.monotonic() == before
    assert len(world.server.asked) == asked


@in_fleet()
async def test_a_block_is_void_after_the_machine_was_suspended(world: Fleet, client: Any) -> None:
    clock = world.runtime.monotonic
    await create(client, 40)
    await create(client)
    asked = len(world.server.asked)
    world.runtime.boottime = lambda: clock() + VALID  # type: ignore[method-assign]
    await create(client)
    assert len(world.server.asked) > asked


@in_fleet()
async def test_where_no_clock_counts_suspension_the_other_is_used(world: Fleet, client: Any) -> None:
    world.runtime.boottime = lambda: None  # type: ignore[assignment,method-assign,return-value]
    await create(client, 3)
    assert len(world.server.asked) == 1


@in_fleet(CREATED, refusal(404))
async def test_each_class_has_permits_of_its_own(world: Fleet, client: Any) -> None:
    await create(client)
    for call in (client.payouts.list, lambda: client.payment_intents.refund_availability("pi_1")):
        with pytest.raises(Exception, match="404"):
            await call()
    kinds = [row.split()[-1] for row, _ in world.server.asked]
    assert kinds == ["write", "read", "refund_availability", "read"]


@in_fleet()
async def test_the_connection_ends_with_the_client_and_the_next_call_opens_another(
    world: Fleet, client: Any
) -> None:
    await create(client)
    assert world.server.open == 1
    await client.aclose()
    await world.runtime.sleep(0.1)
    assert world.server.open == 0
    await create(client)
    assert world.server.open == 1


@in_fleet()
async def test_it_ends_after_a_minute_without_callers(world: Fleet, client: Any) -> None:
    await create(client)
    await world.runtime.sleep(store_client.LINGER - 1.0)
    assert world.server.open == 1
    await world.runtime.sleep(2.0)
    assert world.server.open == 0
    await create(client)


@in_fleet(processes=2, limits=RateLimits(writes=60))
async def test_calls_that_wait_while_their_client_is_closed_are_served(world: Fleet, client: Any) -> None:
    waiting = [asyncio.create_task(create(client)) for _ in range(3)]
    await world.runtime.sleep(0.5)
    await client.aclose()
    await asyncio.gather(*waiting)
    await client.aclose()
    await world.runtime.sleep(0.1)
    assert world.server.open == 0


@in_fleet(refusal(404), delay=1.0)
async def test_who_called_when_the_thread_ends_is_served_by_the_next(world: Fleet, client: Any) -> None:
    first = asyncio.create_task(create(client))
    second = asyncio.create_task(client.payouts.list())
    await world.runtime.sleep(0.5)  # the first is asked for
    (task,) = world.tasks
    task.cancel()
    with pytest.raises(Exception, match="404"):
        await second
    first.cancel()
    await asyncio.wait([task, first])
    assert [row.split()[-1] for row, _ in world.server.asked] == ["write", "read"]


@in_fleet(on_limit="raise", limits=RateLimits(writes=60))
async def test_a_caller_who_does_not_wait_is_refused_when_the_store_has_nothing_to_lend(
    world: Fleet, client: Any
) -> None:
    await world.runtime.sleep(1.0)
    with pytest.raises(LimitReached):  # a new row owes a burst
        await create(client)
    await world.runtime.sleep(5.0)
    await create(client)
    with pytest.raises(LimitReached) as caught:
        await create(client)
    assert not isinstance(caught.value, LimitStoreUnavailable)
    assert 0.0 < caught.value.retry_after < 2.0


@simulated
async def test_the_smallest_limit_that_is_shared_never_stalls() -> None:
    service = Service(1)
    async with Fleet(service, processes=3, limits=RateLimits(writes=6)) as world:
        await asyncio.gather(*(create(client, 10) for client in world.clients))
    counted = sorted(service.counted)
    assert fullest_sliding(counted) <= 6
    assert max(after - before for before, after in pairwise([0.0, *counted])) < 35.0


# --- Priorities ---


@simulated
async def test_bulk_calls_of_one_process_stand_behind_interactive_ones_of_another() -> None:
    service = Service(1)
    async with Fleet(service, processes=2, limits=RateLimits(writes=6_000)) as world:
        bulk, web = world.clients
        prepared = [bulk.payouts.prepare(**ARGUMENTS) for _ in range(600)]
        work = [asyncio.create_task(bulk.send(each, priority="bulk")) for each in prepared]
        await world.runtime.sleep(1.0)
        waits = []
        for _ in range(20):
            before = world.runtime.monotonic()
            await create(web)
            waits.append(world.runtime.monotonic() - before)
        assert sum(waits) / 20 < 0.35, "a fifth of that is the service's own time"
        await asyncio.gather(*work)
        assert {ask.ahead for _, ask in world.server.asked} == {AHEAD, AHEAD_IN_BULK}


# --- After a 429 ---


class Refusing:
    """A service that refuses so many requests, and notes who came when. `takes` are the seconds of each."""

    def __init__(self, refused: int, *takes: float) -> None:
        self.left = refused
        self.takes = list(takes)
        self.retry_after = "10"
        self.came: list[float] = []

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        request.sent = True
        self.came.append(asyncio.get_running_loop().time())
        self.left -= 1
        is_refused = self.left >= 0
        await asyncio.sleep(self.takes.pop(0) if self.takes else 0.5)
        return refusal(429, {"Retry-After": self.retry_after}) if is_refused else CREATED

    async def aclose(self) -> None:
        """Nothing is open."""


@simulated
async def test_a_429_closes_the_class_for_every_process() -> None:
    service = Refusing(1)
    async with Fleet(service, processes=3) as world:
        await create(world.clients[0])
        await asyncio.gather(*(create(client, 5) for client in world.clients[1:]))
        first, *others = service.came
        assert min(others) - first >= 10.5
        assert len(others) == 11


@simulated
async def test_a_429_that_comes_while_another_is_told_is_told_too() -> None:
    service = Refusing(2, 0.5, 0.6)
    async with Fleet(service, delay=0.2, max_retries=0) as world:
        for outcome in await asyncio.gather(
            *(create(world.clients[0]) for _ in range(2)), return_exceptions=True
        ):
            assert isinstance(outcome, RateLimitedError)
        before = world.runtime.monotonic()
        await create(world.clients[0])
        assert world.runtime.monotonic() - before >= 10.0


@simulated
async def test_while_a_probe_is_out_nobody_goes_by_a_block_that_the_store_lends() -> None:
    service = Refusing(1, 0.5, 5.0)
    async with Fleet(service, max_retries=0, on_limit="raise") as world:
        client = world.clients[0]
        await world.runtime.sleep(1.0)
        with pytest.raises(RateLimitedError):
            await create(client)
        await world.runtime.sleep(11.0)
        probe = asyncio.create_task(create(client))
        await world.runtime.sleep(1.0)
        with pytest.raises(LimitReached):
            await create(client)
        await probe
        assert len(service.came) == 2
        await create(client)


# --- Without the store ---


@in_fleet(expected_workers=4)
async def test_with_the_number_of_processes_calls_go_on_at_this_ones_part(world: Fleet, client: Any) -> None:
    world.server.down = "cut"
    await create(client, 1_000)
    assert world.runtime.monotonic() == pytest.approx(1.0 + 1_000 / (13_579 / 60), abs=0.1)
    assert client.limits_snapshot()["write"].limit == 13_579


@in_fleet()
async def test_without_it_calls_wait_within_their_deadline(world: Fleet, client: Any) -> None:
    world.server.down = "refused"
    with pytest.raises(DeadlineExceeded) as caught:
        await client.payouts.create(**ARGUMENTS, deadline=20.0)
    assert world.runtime.monotonic() == pytest.approx(20.0)
    assert (caught.value.effect, caught.value.attempts) == ("none", ())
    assert re.search(r"it waited (19|20) s: .*cannot be reached", str(caught.value))
    waiting = asyncio.create_task(create(client, 5))
    await world.runtime.sleep(25.0)
    assert not waiting.done()
    world.server.down = None
    await waiting
    assert world.runtime.monotonic() < 47.0


@in_fleet()
async def test_without_it_no_call_waits_longer_than_half_a_minute(world: Fleet, client: Any) -> None:
    world.server.down = "refused"
    for began in (0.0, 30.0):
        with pytest.raises(LimitStoreUnavailable, match="cannot be reached") as caught:
            await client.payouts.create(**ARGUMENTS)
        assert began + 30.0 <= world.runtime.monotonic() <= began + 33.0
        assert (caught.value.effect, caught.value.attempts) == ("none", ())
    assert await client.warm_up() is False


@in_fleet(lost(), CREATED, limits=RateLimits(writes=60))
async def test_an_attempt_that_may_have_left_before_keeps_the_call_in_doubt(
    world: Fleet, client: Any
) -> None:
    sending = asyncio.create_task(client.payouts.create(**ARGUMENTS))
    while not any(answer.granted for answer in world.server.answers):
        await world.runtime.sleep(0.01)
    world.server.down = "refused"
    with pytest.raises(OutcomeUnknown, match=r"client\.resolve") as caught:
        await sending
    assert isinstance(caught.value.__cause__, LimitStoreUnavailable)


@in_fleet(on_limit="raise")
async def test_a_caller_who_does_not_wait_is_refused_soon(world: Fleet, client: Any) -> None:
    world.server.down = "cut"
    with pytest.raises(LimitReached) as caught:
        await create(client)
    assert world.runtime.monotonic() == pytest.approx(0.25)
    await world.runtime.sleep(2.0)
    with pytest.raises(LimitReached) as caught:
        await create(client)
    assert caught.value.retry_after == 1.0


@in_fleet(on_limit="raise", expected_workers=1)
async def test_a_caller_who_does_not_wait_goes_at_the_processs_part(world: Fleet, client: Any) -> None:
    world.server.down = "refused"
    await create(client)


@in_fleet(expected_workers=4)
async def test_the_store_is_tried_once_a_second_for_all_classes_together(world: Fleet, client: Any) -> None:
    server = world.server
    server.down = "refused"
    await asyncio.gather(create(client), client.payouts.list(), return_exceptions=True)
    await asyncio.gather(client.payouts.sync("po_1"), return_exceptions=True)
    tried = server.tried
    await world.runtime.sleep(10.0)
    assert 9 <= server.tried - tried <= 10
    server.down = None
    await world.runtime.sleep(1.5)
    assert sorted(row.split()[-1] for row, _ in server.asked) == ["diagnostic", "read", "write"]


@in_fleet(expected_workers=4)
async def test_bulk_calls_wait_a_minute_and_then_fail_closed(world: Fleet, client: Any) -> None:
    await create(client)
    prepared = client.payouts.prepare(**ARGUMENTS)
    world.server.down = "refused"
    await world.runtime.sleep(2.0)
    with pytest.raises(LimitStoreUnavailable, match="cannot be reached") as caught:
        await client.send(prepared, priority="bulk")
    assert 60.0 <= world.runtime.monotonic() <= 63.0
    assert (caught.value.effect, caught.value.attempts) == ("none", ())
    assert isinstance(caught.value, LimitReached)


@in_fleet(expected_workers=4)
async def test_a_bulk_call_outlasts_a_shorter_outage(world: Fleet, client: Any) -> None:
    world.server.down = "refused"
    sending = asyncio.create_task(client.send(client.payouts.prepare(**ARGUMENTS), priority="bulk"))
    await world.runtime.sleep(45.0)
    world.server.down = None
    assert (await sending).id == "po_1"


@simulated
async def test_a_call_whose_permission_has_ended_does_not_wait_for_the_store() -> None:
    async with fleet() as world:
        client, clock = world.clients[0], world.runtime.monotonic
        until = clock() + 10.0
        world.server.down = "refused"
        prepared = client.payouts.prepare(**ARGUMENTS)
        with pytest.raises(APIConnectionError) as caught:
            await client._internal.send(prepared, {}, priority="bulk", may_send=lambda: clock() < until)
        assert until <= clock() <= until + 2.0
    assert (caught.value.kind, caught.value.effect) == ("withheld", "none")
    assert [(each.verdict, each.reason) for each in caught.value.attempts] == [("not_sent", "withheld")]


@in_fleet()
async def test_every_call_of_a_client_that_fails_closed_does(world: Fleet, client: Any) -> None:
    closing = client.with_options()
    closing._internal.fail_closed()
    world.server.down = "refused"
    other = asyncio.create_task(create(client))
    with pytest.raises(LimitStoreUnavailable):
        await create(closing)
    assert 60.0 <= world.runtime.monotonic() <= 62.0
    assert other.done()  # after half a minute
    with pytest.raises(LimitStoreUnavailable):
        await other


def test_an_outage_is_told_once_to_each_hook_and_in_the_log_and_so_is_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[Any] = []

    async def main() -> None:
        async with fleet(expected_workers=4, on_event=heard.append) as world:
            client, server = world.clients[0], world.server
            await create(client, 5)
            for _ in range(2):
                server.down = "refused"
                await world.runtime.sleep(2.0)
                await create(client, 5)
                await create(client, 5)
                server.down = None
                await world.runtime.sleep(30.0)
                await create(client, 5)

    with caplog.at_level(logging.INFO, logger="payments"):
        run_simulated(main())
    told = [event for event in heard if isinstance(event, events.LimitStoreLost | events.LimitStoreFound)]
    assert [type(event).__name__ for event in told] == ["LimitStoreLost", "LimitStoreFound"] * 2
    lost, found = told[:2]
    assert (lost.operation, lost.attempt, lost.limit) == ("payouts.create", 1, 13_579)
    assert "refused" in lost.reason
    assert 0.0 < found.lasted < 40.0
    said = [record for record in caplog.records if "store" in record.getMessage()]
    assert [record.levelname for record in said] == ["WARNING", "INFO"] * 2
    assert "back after" in said[1].getMessage()


@in_fleet(expected_workers=4)
async def test_a_store_that_refuses_from_the_start_is_a_mistake_in_the_configuration(
    world: Fleet, client: Any
) -> None:
    world.server.fault = ConfigurationError("the limit store refuses the password")
    with pytest.raises(ConfigurationError, match=r"payouts\.create: the limit store refuses the password"):
        await client.payouts.create(**ARGUMENTS)
        await create(client)
    world.server.fault = None
    await world.runtime.sleep(2.0)
    await create(client)


@in_fleet(expected_workers=4)
async def test_a_store_that_refuses_later_is_as_one_that_is_gone(world: Fleet, client: Any) -> None:
    await create(client)
    world.server.fault = ConfigurationError("the limit store refuses the password")
    await world.runtime.sleep(2.0)
    await create(client)


@in_fleet()
async def test_an_outage_that_turns_out_to_be_a_refusal_becomes_one(world: Fleet, client: Any) -> None:
    world.server.down = "refused"
    waiting = asyncio.create_task(create(client))
    await world.runtime.sleep(2.0)
    world.server.down = None
    world.server.fault = ConfigurationError("the limit store refuses the password")
    with pytest.raises(ConfigurationError):
        await waiting


@in_fleet(expected_workers=4)
async def test_a_fault_in_a_store_is_an_outage_and_ends_nothing(world: Fleet, client: Any) -> None:
    world.server.fault = ZeroDivisionError("a secret")
    await create(client)
    world.server.fault = None
    await world.runtime.sleep(5.0)
    await create(client, 5)


@simulated
async def test_a_429_during_an_outage_closes_the_row_when_the_store_is_back() -> None:
    service = Refusing(0)
    async with Fleet(service, processes=2, expected_workers=2, max_retries=0) as world:
        first, second = world.clients
        await create(second)
        service.left = 1
        world.server.down = "refused"
        with pytest.raises(RateLimitedError):
            await create(first)
        world.server.down = None
        await world.runtime.sleep(2.0)
        before = world.runtime.monotonic()
        await create(second)
        assert world.runtime.monotonic() - before > 6.0


@simulated
async def test_a_429_whose_time_is_over_when_the_store_is_back_closes_nothing() -> None:
    service = Refusing(1)
    service.retry_after = "1"
    async with Fleet(service, expected_workers=2, max_retries=0) as world:
        client, server = world.clients[0], world.server
        server.down = "refused"
        with pytest.raises(RateLimitedError):
            await create(client)
        await world.runtime.sleep(5.0)
        server.down = None
        await world.runtime.sleep(2.0)
        before = world.runtime.monotonic()
        await create(client)
        assert world.runtime.monotonic() - before < 1.0


@in_fleet(expected_workers=4)
async def test_a_thread_that_ended_during_an_outage_is_started_by_the_next_call(
    world: Fleet, client: Any
) -> None:
    server = world.server
    server.down = "refused"
    await create(client)
    await client.aclose()
    await world.runtime.sleep(2.0)
    tried = server.tried
    await world.runtime.sleep(10.0)
    assert server.tried == tried
    server.down = None
    await create(client)
    await world.runtime.sleep(1.0)
    assert len(server.asked) == 1


@in_fleet()
async def test_what_a_forked_child_inherits_is_not_used(world: Fleet, client: Any) -> None:
    await create(client, 5)
    (task,) = world.tasks
    task.cancel()  # the parent's
    await asyncio.wait([task])
    client._pipeline.keys.of(client._internal.key()).limiter.forked()
    store_client._after_fork()
    assert client.limits_snapshot()["write"].used == 0
    await create(client, 3)
    assert client.limits_snapshot()["write"].used == 3


@in_fleet()
async def test_the_last_connection_may_fail_to_close(world: Fleet, client: Any) -> None:
    await create(client)
    world.server.fails_to_close = True
    await client.aclose()
    await world.runtime.sleep(1.0)
    await create(client)
