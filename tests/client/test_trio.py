"""Under trio an awaited call is refused by name; a blocking one works from its threads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from payments_async import AsyncPayments, ConfigurationError
from payments_async.sandbox import Sandbox
from payments_sync import Payments
from tests.support.creations import create

Call = Callable[[AsyncPayments], Awaitable[object]]


async def _iterated(client: AsyncPayments) -> None:
    async for _ in client.payouts.iterate():
        pass


CALLS: dict[str, Call] = {
    "create": lambda client: create(client, "payouts"),
    "list": lambda client: client.payouts.list(),
    "iterate": _iterated,
    "find": lambda client: client.payouts.find("r-1"),
    "wait": lambda client: client.payouts.wait("po_1"),
    "wait for a checkout": lambda client: client.checkouts.wait("co_1"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_first_call_under_trio_names_asyncio(sandbox: Sandbox, call: Call) -> None:
    import trio

    async def main() -> None:
        async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url) as client:
            await call(client)

    with pytest.raises(ConfigurationError, match="no event loop of asyncio runs here") as refused:
        trio.run(main)
    assert "trio" in str(refused.value)
    assert refused.value.effect == "none"
    assert sandbox.requests == []


def test_a_blocking_call_works_from_a_thread_of_trios(sandbox: Sandbox) -> None:
    import trio

    with Payments(sandbox.api_key, base_url=sandbox.base_url) as client:
        assert len(trio.run(trio.to_thread.run_sync, client.payouts.list)) == 0
