"""Payers at the hosted checkout in a real browser: with a mouse, a keyboard, without JavaScript.

Each test ends with what counts: how often the merchant was paid.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

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


async def test_a_declined_payer_pays_another_way(sell: Callable[..., Sale], visit: Visit) -> None:
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


async def test_nothing_moves_for_who_asks_for_less_motion(sell: Callable[..., Sale], visit: Visit) -> None:
    sale, payer = sell("hang"), await visit()
    await begins(payer, sale, BALANCE)
    await payer.sees("Your payment is on its way")
    moving = "getComputedStyle(document.querySelector('.arc')).animationName"
    assert await payer.measure(moving) == "turn"
    await payer.page.emulate_media(reduced_motion="reduce")
    assert await payer.measure(moving) == "none"
