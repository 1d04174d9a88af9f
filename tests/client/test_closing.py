"""A client that is closed sends nothing more of what was under way, however many tries were left."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from payments_async import APIConnectionError, AsyncPayments, OutcomeUnknown
from payments_sync import Payments
from tests.conftest import KEY
from tests.support.creations import PAYOUT
from tests.support.rawserver import RawServer, Step
from tests.support.surfaces import error_of


@pytest.fixture(autouse=True)
def _silent(server: RawServer) -> None:
    server.scripts["/v1/payouts"] = [Step.HANG]


async def arrived(server: RawServer) -> None:
    assert await asyncio.to_thread(server.arrivals.get, timeout=300) == "/v1/payouts"


async def test_a_payout_that_was_sent_is_in_doubt_and_not_sent_again(server: RawServer) -> None:
    async with AsyncPayments(KEY, base_url=server.url("/v1")) as client:
        call = asyncio.ensure_future(client.payouts.create(**PAYOUT))
        await arrived(server)
    caught = await error_of(OutcomeUnknown, call)
    assert [(each.reason, each.verdict) for each in caught.attempts] == [("closed", "in_doubt")]
    assert len(server.requests) == 1


async def test_a_payout_that_waited_for_a_connection_was_never_sent(server: RawServer) -> None:
    async with AsyncPayments(KEY, base_url=server.url("/v1"), max_connections=1) as client:
        first = asyncio.ensure_future(client.payouts.list())
        await arrived(server)
        second = asyncio.ensure_future(client.payouts.create(**PAYOUT))
        await asyncio.sleep(0)
    for call in (first, second):
        caught = await error_of(APIConnectionError, call, match="end all calls before")
        assert (caught.kind, caught.effect) == ("closed", "none")
    assert len(server.requests) == 1


def test_a_blocking_payout_is_not_sent_again_after_another_thread_closed(server: RawServer) -> None:
    with ThreadPoolExecutor(1) as threads:
        with Payments(KEY, base_url=server.url("/v1")) as client:
            call = threads.submit(client.payouts.create, **PAYOUT)
            assert server.arrivals.get(timeout=300) == "/v1/payouts"
        with pytest.raises(OutcomeUnknown):
            call.result(60)
    assert len(server.requests) == 1
