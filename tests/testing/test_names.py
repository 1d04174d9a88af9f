"""`payments_async.testing` without pytest: its names, its tenants, its runtime."""

from __future__ import annotations

import asyncio
from typing import Any, Never
from unittest.mock import Mock

import pytest

import payments_async.testing
from payments_async import AsyncPayments, ConfigurationError
from payments_async.sandbox import Sandbox, VirtualClock
from payments_async.testing import SandboxTenant, SkippingRuntime
from payments_sync import Payments
from tests.testing.test_in_process import PAYOUT


def test_a_name_that_there_is_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        payments_async.testing.Nothing  # noqa: B018 - it is looked up


def test_closing_takes_back_the_rules_that_are_still_set() -> None:
    service = Sandbox()
    tenant = SandboxTenant(service)
    kept = service.on("payouts.list")
    tenant.on("payouts.create")
    removed = tenant.on("payouts.*", api_key=service.api_key)
    service.remove_rule(removed)
    tenant.close()
    assert service.rules == [kept]


@pytest.fixture
def runtime() -> SkippingRuntime:
    return SkippingRuntime(Sandbox(clock=VirtualClock.frozen()))


async def test_sleepers_wake_in_order_and_at_once(runtime: SkippingRuntime) -> None:
    woken: list[float] = []

    async def sleep(seconds: float) -> None:
        await runtime.sleep(seconds)
        woken.append(seconds)

    began = runtime.monotonic()
    await asyncio.gather(*(sleep(seconds) for seconds in (86_400.0, 5.0, 60.0)))
    assert woken == [5.0, 60.0, 86_400.0]
    assert runtime.monotonic() - began == 86_400.0
    assert runtime.now().timestamp() == runtime.monotonic()


async def test_a_background_timer_runs_as_time_passes_and_does_not_move_the_clock(
    runtime: SkippingRuntime,
) -> None:
    began, seen = runtime.monotonic(), list[float]()
    runtime.call_later(5.0, lambda: seen.append(runtime.monotonic() - began), background=True)
    for _ in range(200):  # work in a thread, such as a ledger's: no timer waits for it
        await asyncio.to_thread(int)
    assert (runtime.monotonic(), seen) == (began, [])
    await runtime.sleep(10.0)
    assert seen == [5.0]


async def test_a_sleeper_that_is_cancelled_moves_nothing(runtime: SkippingRuntime) -> None:
    began = runtime.monotonic()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(runtime.sleep(3600), 0)
    await runtime.sleep(1)
    assert runtime.monotonic() - began == 1.0


class Slow:
    """Answers when `aclose` is called."""

    def __init__(self) -> None:
        self.answer = asyncio.Event()

    async def send(self, request: object) -> Never:
        await self.answer.wait()
        raise ConnectionError

    async def aclose(self) -> None:
        self.answer.set()


async def test_nothing_is_skipped_while_a_request_is_under_way(runtime: SkippingRuntime) -> None:
    slow = Slow()
    transport = runtime.wrap(slow)
    request: Any = None
    sending = asyncio.ensure_future(transport.send(request))
    sleeping = asyncio.ensure_future(runtime.sleep(60))
    began = runtime.monotonic()
    looked = runtime._run_due_timer = Mock(wraps=runtime._run_due_timer)  # type: ignore[method-assign] # to see it look in vain
    while looked.call_count < 3:  # noqa: ASYNC110 - it waits for a check in vain, which has no event
        await asyncio.sleep(0)
    assert runtime.monotonic() == began
    assert not sleeping.done()
    await transport.aclose()
    with pytest.raises(ConnectionError):
        await sending
    await sleeping
    assert runtime.monotonic() - began == 60.0


async def test_time_that_passes_by_itself_wakes_too(runtime: SkippingRuntime) -> None:
    runtime.began()  # as if a request hung
    sleeping = asyncio.ensure_future(runtime.sleep(60))
    await asyncio.sleep(0)
    runtime._sandbox.advance(60)
    await sleeping


def test_timers_of_a_loop_that_is_closed_hold_no_other_loop_up(runtime: SkippingRuntime) -> None:
    async def leave() -> None:
        runtime.call_later(1, lambda: None)

    asyncio.run(leave())
    asyncio.run(runtime.sleep(5))


def test_loops_take_turns(runtime: SkippingRuntime) -> None:
    async def both() -> None:
        elsewhere = asyncio.to_thread(asyncio.run, runtime.sleep(10))
        await asyncio.gather(elsewhere, runtime.sleep(20))

    began = runtime.monotonic()
    asyncio.run(both())
    assert runtime.monotonic() - began >= 20.0


async def test_a_client_shares_the_sandbox_s_time() -> None:
    with Sandbox(clock=VirtualClock.frozen()) as sandbox:
        runtime = SkippingRuntime(sandbox)
        options: dict[str, Any] = {"runtime": runtime, "transport": runtime.transport()}
        client = AsyncPayments(sandbox.api_key, base_url=sandbox.base_url, **options)
        payout = await client.payouts.wait(await client.payouts.create(**PAYOUT, reference="r-1"))
        assert payout.is_successful
        began = runtime.monotonic()
        await client.payouts.list()
        for _ in range(50):
            await asyncio.to_thread(int)
        assert runtime.monotonic() == runtime.boottime() == began, "a client at rest moves nothing"
        await client.aclose()


@pytest.mark.parametrize("client", [AsyncPayments, Payments])
def test_a_client_that_skips_time_without_the_runtime_s_transport_is_refused(
    client: Any, runtime: SkippingRuntime
) -> None:
    with pytest.raises(ConfigurationError, match=r"transport=runtime\.transport\(\)"):
        client("sk_sandbox_0123456789abcdef", runtime=runtime)


async def test_a_timer_that_comes_with_its_sleeper_s_cancellation_wakes_no_task(
    runtime: SkippingRuntime,
) -> None:
    sleeping = asyncio.ensure_future(runtime.sleep(1))
    await asyncio.sleep(0)
    sleeping.cancel()
    began = runtime.monotonic()
    runtime._run_due_timer(
        asyncio.get_running_loop(), runtime._moves
    )  # before the sleeper has come to its end
    assert runtime.monotonic() == began + 1
    with pytest.raises(asyncio.CancelledError):
        await sleeping
