"""A payer's page follows what happens to the payment elsewhere, whatever becomes of the line."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from payments_async.sandbox import Sandbox, VirtualClock
from tests.browser.sales import BALANCE, Sale, begins
from tests.browser.visitor import BROWSER, SHOP, Visitor
from tests.sandbox.raw_requests import Api

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


async def test_a_page_follows_across_a_restart_of_the_sandbox(tmp_path: Path, visit: Visit) -> None:
    settings: dict[str, Any] = {"state": tmp_path / "state.db", "clock": VirtualClock.frozen()}
    with Sandbox(**settings) as sandbox:
        port = urlsplit(sandbox.origin).port
        made = Api(sandbox, sandbox.api_key).checkout(metadata={"sandbox_scenario": "hang"}).data["checkout"]
        payer = await visit(alone=True)
        await begins(payer, Sale(sandbox, made["id"], made["url"]), BALANCE)
        await payer.sees("Your payment is on its way")
    async with payer.page.expect_event("requestfailed", lambda asked: asked.url.endswith("/events")):
        pass
    await payer.sees("Your payment is on its way")
    with Sandbox(**settings, port=port) as sandbox:
        sandbox.settle(sandbox.books.payments()[-1].attempts[-1], "complete")
        await payer.sees("Payment complete")
        assert sandbox.books.collected("XOF") == 50
        await payer.open("about:blank")
    assert [error for error in payer.errors if "ERR_" not in error] == []
    payer.errors.clear()


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


async def test_a_hidden_tab_holds_no_connection_and_follows_again_when_it_is_shown(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell("hang"), await visit()
    await begins(payer, sale, BALANCE)
    await payer.sees("Your payment is on its way")
    turn = """(hidden) => {
        Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
    }"""
    async with payer.page.expect_event("requestfailed", lambda asked: asked.url.endswith("/events")):
        await payer.page.evaluate(turn, True)
    sale.sandbox.settle(sale.attempts[-1], "complete")
    await payer.sees("Your payment is on its way")
    await payer.page.evaluate(turn, False)
    await payer.sees("Payment complete")


async def test_what_is_pressed_is_not_taken_away_under_the_finger(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell(), await visit()
    await begins(payer, sale, "Mobile money")
    await payer.sees("Approve on your phone")
    await payer.page.get_by_role("button", name="Cancel this payment").hover()
    await payer.page.mouse.down()
    async with payer.page.expect_response(re.compile("/payment$")):
        sale.sandbox.settle(sale.attempts[-1], "complete")
    await payer.sees("Approve on your phone")
    await payer.page.mouse.up()
    await payer.sees("Already paid")
    assert (sale.paid, len(sale.attempts)) == (50, 1)


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


async def test_who_has_paid_is_taken_back_unless_he_stays(sell: Callable[..., Sale], visit: Visit) -> None:
    payer = await visit(alone=True)
    await payer.page.clock.install()
    for stays in (True, False):
        await begins(payer, sell(), BALANCE)
        await payer.sees("Payment complete")
        if stays:
            await payer.press("Stay here")
        await payer.page.clock.run_for(11_000)
        if not stays:
            await payer.page.wait_for_url(SHOP)
        assert payer.page.url == SHOP or stays
