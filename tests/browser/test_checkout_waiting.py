"""While a payment waits for its payer: the phone beside it, and a code that is sent again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from payments_async.sandbox._checkout import pages
from tests.browser.sales import Sale, begins
from tests.browser.visitor import BROWSER, Visitor

pytestmark = BROWSER

Visit = Callable[..., Awaitable[Visitor]]


@pytest.mark.parametrize("java_script", [True, False])
async def test_on_a_wide_screen_paying_and_approving_is_one_screen(
    sell: Callable[..., Sale], visit: Visit, java_script: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "RELOAD_AFTER", 1)
    sale, payer = sell(), await visit(width=1280, java_script=java_script)
    await begins(payer, sale, "Mobile money")
    await payer.sees("Approve on your phone")
    approve = payer.page.frame_locator("iframe").get_by_role("button", name="Approve")
    await approve.click()
    await payer.sees("Payment complete")
    assert (sale.paid, len(sale.attempts)) == (50, 1)
    if java_script:
        await payer.page.frame_locator("iframe").get_by_role("heading", name="Nothing to confirm").wait_for()
        assert await payer.measure("document.activeElement.tagName") == "H1"


async def test_a_code_that_was_sent_again_replaces_the_last_one(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell(), await visit(width=1280)
    await begins(payer, sale, "Mobile money, by code")
    await payer.sees("Enter the code we sent")
    message = payer.page.frame_locator("iframe").locator(".bubble b")
    first = await message.inner_text()
    await payer.press("Send again")
    await message.get_by_text(first).wait_for(state="detached")
    await payer.page.locator("#code").fill(first)
    await payer.press("Confirm")
    await payer.page.locator(".problems:focus").wait_for()
    await payer.page.locator("#code").fill(await message.inner_text())
    await payer.press("Confirm")
    await payer.sees("Payment complete")
    assert (sale.paid, len(sale.attempts)) == (50, 1)
