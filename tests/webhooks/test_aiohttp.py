"""The receiver in aiohttp's web server, over loopback, with the sandbox's bodies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from payments_async import AsyncPayments
from payments_async.sandbox import Sandbox
from payments_async.webhooks import WebhookReceiver
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


@pytest.mark.parametrize("prefix", [None, "/below", "/below/"])
async def test_a_receiver_may_be_mounted_elsewhere(sandbox: Sandbox, prefix: str | None) -> None:
    async with shop(sandbox, Handler(), prefix) as (receiver, client, post):
        await client.payouts.create(**PAYOUT, webhook_url=receiver.url_for_payout("r-1"))
        (created,) = sandbox.deliveries
        path = created.url.replace("/hooks/", "/hooks/" if prefix is None else "/below/")
        assert (await post(path, created.body))[0] == 200
