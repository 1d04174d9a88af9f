"""A merchant shows the next action of an API intent himself: a payer in a real browser gets through."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from payments_async._loopback import listen
from payments_async.sandbox import Sandbox
from tests.browser.visitor import BROWSER, SHOP, Visitor
from tests.sandbox.raw_requests import Api

pytestmark = BROWSER

Visit = Callable[..., Awaitable[Visitor]]


@asynccontextmanager
async def shop(part: str) -> AsyncIterator[str]:
    """The address of a page of the merchant's own, which has another origin than the sandbox."""
    head = '<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>Shop</title>'

    async def show(_: web.BaseRequest) -> web.Response:
        return web.Response(text=f"{head}<h1>Shop</h1>{part}", content_type="text/html")

    runner = web.ServerRunner(web.Server(show))
    await runner.setup()
    listener = listen(None)
    try:
        await web.SockSite(runner, listener).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        await runner.cleanup()


def action(api: Api, kind: str) -> dict[str, Any]:
    made = api.intent(scenario=f"action:{kind}", return_url=SHOP).data
    asked: dict[str, Any] = made["active_attempt"]["next_action"]
    return asked


@pytest.mark.parametrize("kind", ["embed_iframe", "complete_with_sdk"])
async def test_a_frame_in_the_merchants_page_pays(
    kind: str, api: Api, sandbox: Sandbox, visit: Visit
) -> None:
    asked, payer = action(api, kind), await visit()
    part = (
        f'<iframe src="{asked["url"]}" title="Bank"></iframe>'
        if kind == "embed_iframe"
        else f'<div id="{asked["container_id"]}"></div><script src="{asked["sdk_url"]}"></script>'
    )
    async with shop(part) as address:
        await payer.open(address)
        frame = payer.page.frame_locator("iframe")
        if kind == "complete_with_sdk":
            await frame.get_by_role("button", name="Paid").click()
        await frame.get_by_role("button", name="Approve").click()
        await payer.sees("Payment complete")
    assert sandbox.books.collected("XOF") == 50
