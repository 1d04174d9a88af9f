"""The receiver in aiohttp's web server, over loopback, with the sandbox's bodies."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from payments_async import AsyncPayments, Payout
from payments_async.sandbox import Sandbox
from payments_async.webhooks import TrustedDelivery, WebhookReceiver
from payments_async.webhooks.aiohttp import routes
from tests.support.motion import PAYOUT
from tests.support.receivers import SECRET, Handler

JSON = {"Content-Type": "application/json"}


@asynccontextmanager
async def shop(sandbox: Sandbox, paid: Handler, prefix: str | None = None) -> AsyncIterator[Any]:
    """A shop's web application with a receiver in it: the receiver, the client, and a way to post."""
    runner = web.AppRunner(app := web.Application())
    async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url) as client:
        receiver = WebhookReceiver(
            client, secrets=[SECRET], base_url="https://shop.example/hooks/", on_payout=paid
        )
        app.add_routes(routes(receiver, prefix))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]

        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=JSON) as session:

            async def post(url: str, body: Any, method: str = "POST") -> tuple[int, bytes]:
                path = url.removeprefix("https://shop.example")
                async with session.request(method, path, data=body) as answer:
                    return answer.status, await answer.read()

            try:
                yield receiver, client, post
            finally:
                await runner.cleanup()


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_what_was_not_minted_gets_one_answer(sandbox: Sandbox, method: str) -> None:
    async with shop(sandbox, Handler()) as (_, _, post):
        for path in ("/hooks/x", "/hooks/" + "A" * 120, "/hooks/%00%ff", "/hooks/x?token=y&token=z"):
            assert await post(path, None, method) == (404, b"")
        assert not sandbox.requests


async def test_what_the_sandbox_sends_is_looked_into_whoever_forged_it() -> None:
    seen = asyncio.Event()

    def paid(delivery: TrustedDelivery[Payout]) -> None:
        told.append(delivery)
        seen.set()

    told: list[TrustedDelivery[Payout]] = []
    app = web.Application()
    runner = web.AppRunner(app, shutdown_timeout=0.01)  # a second delivery would wait for its look
    with Sandbox() as sandbox:
        sandbox.on("payouts.create").outcome("manual").webhook("drop")
        async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url) as client:
            with socket.create_server(("127.0.0.1", 0)) as listening:
                base = f"http://127.0.0.1:{listening.getsockname()[1]}/hooks"
                receiver = WebhookReceiver(client, secrets=[SECRET], base_url=base, on_payout=paid)
                app.add_routes(routes(receiver))
                await runner.setup()
                await web.SockSite(runner, listening).start()
                url = receiver.url_for_payout("r-1")
                payout = await client.payouts.create(**PAYOUT, webhook_url=url)
                assert payout.id
                sandbox.forge(payout.id, "payout.completed")
                async with asyncio.timeout(60):
                    await seen.wait()
                await runner.cleanup()
    assert [(each.event, each.record.is_final) for each in told] == [("payout.completed", False)]


async def test_a_receiver_may_be_mounted_elsewhere(sandbox: Sandbox) -> None:
    async with shop(sandbox, Handler(), "/below") as (receiver, client, post):
        await client.payouts.create(**PAYOUT, webhook_url=receiver.url_for_payout("r-1"))
        (created,) = sandbox.deliveries
        assert (await post(created.url.replace("/hooks/", "/below/"), created.body))[0] == 200
