"""While a payment waits for its payer: the phone beside it, the code, the time left, what can be copied."""

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
    if java_script:  # else the page looks again every second, in the midst of this
        await payer.page.get_by_text("Hide the simulated phone").click()
        await approve.wait_for(state="hidden")
        await payer.page.get_by_text("Show the simulated phone").click()
        assert await payer.violations() == []
    await approve.click()
    await payer.sees("Payment complete")
    assert (sale.paid, len(sale.attempts)) == (50, 1)
    if java_script:
        await payer.page.frame_locator("iframe").get_by_role("heading", name="Nothing to confirm").wait_for()
        assert await payer.measure("document.activeElement.tagName") == "H1"


async def test_a_code_is_sent_with_its_last_digit_and_comes_again_after_a_while(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell(), await visit(width=1280, alone=True)
    await payer.page.clock.install()
    await begins(payer, sale, "Mobile money, by code")
    await payer.sees("Enter the code we sent")
    message = payer.page.frame_locator("iframe").locator(".bubble b")
    field, again = payer.page.locator("#code:focus"), payer.page.get_by_role("button", name="Send again")
    first = await message.inner_text()
    await payer.page.clock.run_for(19_000)
    assert not await again.is_visible()
    await payer.page.clock.run_for(2_000)
    assert await payer.page.get_by_role("timer").inner_text() == "1:00:00"  # the sandbox's clock stands still
    sale.sandbox.clock.set_speed(60)
    await again.click()
    await (
        payer.page.frame_locator("iframe").locator(".bubble b").get_by_text(first).wait_for(state="detached")
    )
    await payer.page.clock.run_for(5_000)
    await payer.page.get_by_role("timer").get_by_text("1:00:00").wait_for(state="detached")
    await field.type(first)
    await payer.page.locator(".problems:focus").wait_for()
    await payer.page.locator("#code").fill(await message.inner_text())
    await payer.sees("Payment complete")
    assert (sale.paid, len(sale.attempts)) == (50, 1)


async def test_the_details_of_a_transfer_are_copied_by_a_click(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell(), await visit(alone=True)
    await payer.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await begins(payer, sale, "Bank transfer")
    await payer.sees("Send the transfer")
    await payer.page.get_by_role("button", name="Copy: Account").click()
    await payer.page.get_by_role("status").get_by_text("Copied: Account").wait_for()
    assert await payer.measure("navigator.clipboard.readText()") == "SANDBOX 0000 1111 2222"
    assert not await payer.page.locator("iframe").count()
