"""From two tabs, by a double click or by going back, a payer pays once, in a real browser."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.sales import BALANCE, PAID, Sale
from tests.browser.visitor import BROWSER, Visit

pytestmark = BROWSER


@pytest.mark.parametrize(("java_script", "seen"), [(True, "Payment complete"), (False, "")])
async def test_a_double_click_pays_once(
    sell: Callable[..., Sale], visit: Visit, java_script: bool, seen: str
) -> None:
    sale, payer = sell(), await visit(java_script=java_script)
    await payer.open(sale.choosing(BALANCE))
    await payer.page.get_by_role("button", name=re.compile("^Pay ")).dblclick()
    heading = payer.page.get_by_role("heading", level=1, name=re.compile(PAID))
    await heading.wait_for()
    assert seen in await heading.inner_text()
    assert (sale.paid, len(sale.attempts)) == (50, 1)


async def test_a_form_that_is_on_its_way_is_not_sent_again(sell: Callable[..., Sale], visit: Visit) -> None:
    sale, payer = sell(), await visit()
    await payer.open(sale.choosing(BALANCE))
    sent: list[str] = []
    answered = asyncio.Event()

    async def hold(route: Any) -> None:
        if route.request.method == "POST":
            sent.append(route.request.url)
            await answered.wait()
        await route.fallback()

    await payer.page.route("**/checkout/*", hold)
    button = payer.page.get_by_role("button", name=re.compile("^Pay "))
    pause = "await new Promise((done) => setTimeout(done, 100));"
    clicks = f"button.click(); {pause} button.click(); {pause} return button.ariaDisabled;"
    assert await button.evaluate(f"async (button) => {{ {clicks} }}") == "true"
    answered.set()
    await payer.sees("Payment complete")
    assert (len(sent), sale.paid) == (1, 50)
