"""Writes that may be sent for a time only: a bulk worker's lease can end while its call waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from payments_async import APIConnectionError, RateLimits
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from tests.support.batches import in_process, item, runtime_of


def posts(sandbox: Sandbox) -> int:
    return sum(request.operation == "payouts.create" for request in sandbox.requests)


@pytest.fixture
def service() -> Sandbox:
    return Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off())


def prepared(client: Any, number: int) -> Any:
    _, request = item(number, reference=f"r-{number}")
    fields = ("amount", "currency", "method", "instrument", "reference")
    return client.payouts.prepare(**{name: getattr(request, name) for name in fields})


def sent(client: Any, number: int, may_send: Any) -> Any:
    return client._internal.send(prepared(client, number), {}, priority="bulk", may_send=may_send)


async def test_permission_that_ends_at_the_rate_limiter_withholds_the_request(service: Sandbox) -> None:
    async with in_process(service, limits=RateLimits(writes=1)) as client:
        clock = runtime_of(client)
        until = clock.monotonic() + 2.5
        calls = [sent(client, number, lambda: clock.monotonic() < until) for number in range(1, 9)]
        ended = await asyncio.gather(*calls, return_exceptions=True)
        failures = [error for error in ended if isinstance(error, APIConnectionError)]
        assert 0 < len(failures) < 8
        assert posts(service) == 8 - len(failures)
        for error in failures:
            assert (error.kind, error.effect, error.idempotency_key is None) == ("withheld", "none", False)
            assert [(each.verdict, each.reason) for each in error.attempts] == [("not_sent", "withheld")]
            assert "nothing was sent: send it only while you may" in str(error)


async def test_a_caller_with_permission_does_not_share_the_end_of_one_without(service: Sandbox) -> None:
    async with in_process(service) as client:
        same = prepared(client, 1)
        send = client._internal.send
        refused, paid = await asyncio.gather(
            send(same, {}, priority="bulk", may_send=lambda: False),
            send(same, {}, priority="bulk", may_send=lambda: True),
            return_exceptions=True,
        )
        assert isinstance(refused, APIConnectionError)
        assert (paid.reference, posts(service)) == ("r-1", 1)
