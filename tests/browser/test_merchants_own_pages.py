"""A merchant shows the next action of an API intent himself: a payer in a real browser gets through."""

from __future__ import annotations

from typing import Any

import pytest

from payments_async.sandbox import Sandbox
from tests.browser.conftest import merchant
from tests.browser.visitor import BROWSER, SHOP, Visit
from tests.sandbox.raw_requests import Api

pytestmark = BROWSER


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
    async with merchant(part) as port:  # of another origin than the sandbox
        await payer.open(f"http://127.0.0.1:{port}/")
        frame = payer.page.frame_locator("iframe")
        await frame.get_by_role("button", name="Approve").click()
        await payer.sees("Payment complete")
    assert sandbox.books.collected("XOF") == 50
