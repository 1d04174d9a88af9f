"""A payer's page follows what happens to the payment elsewhere, whatever becomes of the line."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from payments_async.sandbox import Sandbox
from tests.browser.sales import BALANCE, Sale, begins
from tests.browser.visitor import BROWSER, Visitor

pytestmark = BROWSER

Visit = Callable[..., Awaitable[Visitor]]


async def test_a_page_that_waits_shows_what_comes_of_it_and_says_it_aloud(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell("failover:1 after=5s"), await visit()
    await begins(payer, sale, BALANCE)
    await payer.sees("Your payment is on its way")
    assert await payer.page.locator(".live").inner_text() == ""
    sale.sandbox.advance(5)
    await payer.page.get_by_text("You pay only once.").wait_for()
    assert await payer.page.locator(".live").inner_text() == "Your payment is on its way"
    sale.sandbox.advance(5)
    await payer.sees("Payment complete")
    assert await payer.page.locator(".live").inner_text() == "Payment complete"
    assert await payer.measure("document.activeElement.tagName") == "H1"
    assert sale.paid == 50


async def test_a_session_that_is_gone_is_said_to_be(
    sandbox: Sandbox, sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell("hang"), await visit()
    await begins(payer, sale, BALANCE)
    await payer.sees("Your payment is on its way")
    sale.sandbox.reset()
    await payer.sees("Checkout not found")
    assert [error for error in payer.errors if "404" not in error] == []
    payer.errors.clear()


PRESS_AND_LOOK = """async (button) => {
    const asked = window.fetch;
    const looked = new Promise((done) => {
        window.fetch = async (...what) => { const answer = await asked(...what); done(); return answer; };
    });
    button.click();
    await looked;
    await new Promise((done) => setTimeout(done, 100));
    return document.querySelector('h1').textContent;
}"""


async def test_a_page_whose_form_is_on_its_way_stays_until_that_is_answered(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell(), await visit()
    await begins(payer, sale, "Mobile money")
    await payer.sees("Approve on your phone")
    sent, answered = asyncio.Event(), asyncio.Event()

    async def hold(route: Any) -> None:
        if route.request.method == "POST":
            sent.set()
            await answered.wait()
        await route.fallback()

    await payer.page.route("**/checkout/*", hold)
    cancel = payer.page.get_by_role("button", name="Cancel this payment")
    pressed = asyncio.ensure_future(cancel.evaluate(PRESS_AND_LOOK))
    await sent.wait()
    sale.sandbox.settle(sale.attempts[-1], "complete")
    assert await pressed == "Approve on your phone"
    answered.set()
    await payer.sees("Already paid")


async def test_a_page_that_the_browser_kept_is_asked_for_anew(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell(), await visit()
    await payer.open(sale.url)
    async with payer.page.expect_navigation():
        await payer.measure("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
