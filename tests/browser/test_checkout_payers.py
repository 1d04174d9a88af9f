"""Payers at the hosted checkout in a real browser: with a mouse, a keyboard, without JavaScript.

Each test ends with what counts: how often the merchant was paid.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.browser.sales import ACTIONS, BALANCE, BANK, CARD, Sale, begins
from tests.browser.visitor import SHOP, Visitor

pytestmark = [
    pytest.mark.browser,
    pytest.mark.no_cover,
    pytest.mark.asyncio(loop_scope="session"),
]  # heavy under a tracer; what it runs is covered without it

Visit = Callable[..., Awaitable[Visitor]]


@pytest.mark.parametrize("java_script", [True, False], ids=["script", "plain"])
@pytest.mark.parametrize("method", ACTIONS)
async def test_a_payer_pays_by_each_next_action_and_returns(
    method: str, java_script: bool, sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell(), await visit(java_script=java_script, width=390 if java_script else 320)
    await begins(payer, sale, method)
    await ACTIONS[method](payer)
    await payer.sees("Payment complete")
    assert (sale.paid, len(sale.attempts)) == (50, 1)
    await payer.press("Return to Ada")
    await payer.page.wait_for_url(SHOP)


async def test_a_declined_payer_is_told_so_and_pays_another_way(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell(), await visit()
    await begins(payer, sale, BANK)
    await payer.press("Continue to the bank")
    await payer.press("Decline")
    await payer.sees("The payment did not go through")
    assert sale.paid == 0
    await payer.press("Choose another way to pay")
    await payer.pays(BALANCE, country=None)
    await payer.sees("Payment complete")
    assert (sale.paid, len(sale.attempts)) == (50, 2)


async def test_a_payer_tries_the_same_way_again(sell: Callable[..., Sale], visit: Visit) -> None:
    sale, payer = sell(), await visit()
    await begins(payer, sale, "Mobile money", "+229 00 99 00 01")
    await payer.sees("Your payment is on its way")
    sale.sandbox.advance(5)
    await payer.sees("The payment did not go through")
    await payer.press("Try again")
    await payer.page.get_by_label("Phone number").fill("+229 00 99 00 00")
    await payer.press("Pay ")
    await payer.sees("Payment complete")
    assert (sale.paid, len(sale.attempts)) == (50, 2)


async def test_a_payer_gives_up_and_pays_after_all(sell: Callable[..., Sale], visit: Visit) -> None:
    sale, payer = sell(), await visit()
    await payer.open(sale.url)
    await payer.press("Cancel")
    await payer.sees("You have not paid")
    await payer.press("Continue to pay")
    await payer.pays(BANK)
    await payer.press("Cancel this payment")
    await payer.sees("You cancelled the payment")
    await payer.press("Continue to pay")
    await payer.pays(BALANCE, country=None)
    await payer.sees("Payment complete")
    assert (sale.paid, len(sale.attempts)) == (50, 2)


async def test_going_back_while_choosing_keeps_what_was_chosen(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell(), await visit()
    await payer.open(sale.url)
    await payer.choose("Ghana")
    await payer.choose(CARD)
    await payer.sees("Check and pay")
    await payer.page.go_back()
    await payer.sees("How would you like to pay?")
    assert "Ghana" in await payer.page.locator("main").inner_text()


async def tab_to(payer: Visitor, wanted: str, most: int = 8) -> None:
    """Press Tab until the element is reached that the selector names."""
    for _ in range(most):
        await payer.page.keyboard.press("Tab")
        if await payer.page.locator(f":focus:is({wanted})").count():
            return
    raise AssertionError(f"{wanted} is not among the next {most} stops of the Tab key")


@pytest.mark.parametrize("java_script", [True, False])
async def test_a_keyboard_is_enough(sell: Callable[..., Sale], visit: Visit, java_script: bool) -> None:
    sale, payer = sell(), await visit(java_script=java_script)
    keys = payer.page.keyboard
    await payer.open(sale.url)
    for downs in (2, 0):  # the third country, the first method
        await tab_to(payer, "input[type=radio]")
        await keys.press("Space")
        for _ in range(downs):
            await keys.press("ArrowDown")
        await keys.press("Enter")
        await payer.page.wait_for_url(re.compile("country=FR" if downs else "method=sandbox_mobile"))
    await tab_to(payer, "#phone")
    await keys.type("12")
    await keys.press("Enter")
    await payer.page.locator(".problems:focus").wait_for()
    await tab_to(payer, ".problems a", most=1)
    await keys.press("Enter")
    await payer.page.locator("#phone:focus").wait_for()
    await keys.press("Control+a")
    await keys.type("+22900990000")
    await tab_to(payer, "button", most=1)
    await keys.press("Enter")
    await payer.sees("Payment complete")
    assert (sale.paid, len(sale.attempts)) == (50, 1)


async def test_a_restricted_country_is_not_asked_for(sell: Callable[..., Sale], visit: Visit) -> None:
    sale, payer = sell(restriction={"country_code": "DE"}), await visit()
    await payer.open(sale.url)
    await payer.sees("How would you like to pay?")
    assert "Germany" in await payer.page.locator("main").inner_text()
    await payer.pays(BALANCE, country=None)
    await payer.sees("Payment complete")


async def test_a_restricted_phone_is_shown_and_not_asked_for(sell: Callable[..., Sale], visit: Visit) -> None:
    phone = {"number": "+22990000042", "country": "BJ"}
    sale, payer = sell(restriction={"phone": phone}), await visit()
    await payer.open(sale.url)
    assert await payer.page.get_by_role("radio").count() == 2
    await payer.choose("Mobile money")
    assert await payer.page.get_by_label("Phone number").count() == 0
    assert phone["number"] in await payer.page.locator("main").inner_text()
    await payer.press("Pay ")
    await payer.sees("Approve on your phone")


async def test_nothing_moves_for_who_asks_for_less_motion(sell: Callable[..., Sale], visit: Visit) -> None:
    sale, payer = sell("hang"), await visit()
    await begins(payer, sale, BALANCE)
    await payer.sees("Your payment is on its way")
    moving = "getComputedStyle(document.querySelector('.arc')).animationName"
    assert await payer.measure(moving) == "turn"
    await payer.page.emulate_media(reduced_motion="reduce")
    assert await payer.measure(moving) == "none"


async def test_a_page_with_all_it_loads_weighs_less_than_60_kb(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell("action:scan_qr_code"), await visit()
    received: list[Any] = []
    payer.page.on("requestfinished", lambda request: received.append(request))
    await begins(payer, sale, "Wallet app")
    await payer.sees("Scan with your wallet app")
    received.clear()
    await payer.page.reload(wait_until="networkidle")
    sizes = [await request.sizes() for request in received]
    assert len(sizes) >= 3
    assert sum(size["responseBodySize"] for size in sizes) < 30_000
