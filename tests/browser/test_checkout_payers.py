"""Payers at the hosted checkout in a real browser: with a mouse, a keyboard, without JavaScript.

Each test ends with what counts: how often the merchant was paid.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.sales import ACTIONS, BALANCE, CARD, Sale, begins
from tests.browser.visitor import BROWSER, SHOP, Visit, Visitor

pytestmark = BROWSER
BESIDE_THE_CARD = """() => {
    const end = document.querySelector('.sheet').getBoundingClientRect().right;
    const shown = [...document.querySelectorAll('.sheet *')].filter((it) => it.checkVisibility());
    return shown.filter((it) => it.getBoundingClientRect().right > end).map((it) => it.outerHTML);
}"""


PAY_BELOW_THE_FIELDS = """() => {
    const [fields, pay] = [...document.querySelectorAll(':checked ~ .more :is(.fields, .main)')];
    return Math.abs(pay.getBoundingClientRect().top - fields.getBoundingClientRect().bottom - 24) < 1;
}"""


@pytest.mark.parametrize(
    ("method", "java_script"),
    [*((method, True) for method in ACTIONS), ("Mobile money, by code", False)],
)
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


async def test_a_method_opens_in_place_and_what_is_chosen_stays_in_the_address(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell(), await visit()
    await payer.open(sale.url)
    number = payer.page.get_by_label("Phone number").first
    assert not await number.is_visible()
    await payer.choose("Mobile money")
    await number.fill("0244 123 456")
    await payer.page.get_by_label("Country").select_option("Nigeria")
    assert await number.input_value() == "0244 123 456"
    await payer.choose("Mobile money, by code")
    await number.wait_for(state="hidden")
    await payer.choose(CARD)
    await payer.page.wait_for_function(PAY_BELOW_THE_FIELDS)
    await payer.page.reload()
    assert await payer.page.get_by_label("Country").input_value() == "NG"
    assert await payer.page.locator("input:checked").get_attribute("value") == "sandbox_card"


async def test_a_screen_reader_is_told_what_is_paid_and_what_can_be_chosen(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell(description="Two seats"), await visit()
    await payer.open(sale.choosing("Mobile money"))
    heard = await payer.page.locator("main").aria_snapshot()
    for part in (
        'region "Your order"',
        "paragraph: XOF 50",
        "paragraph: Two seats",
        'heading "How would you like to pay?" [level=1]',
        'combobox "Country"',
        'group "How would you like to pay?"',
        'radio "Mobile money" [checked]',
        "paragraph: Approve on your phone",
        'textbox "Phone number"',
        'radio "Saved balance"',
    ):
        assert part in heard.replace("\N{NO-BREAK SPACE}", " "), heard
    assert (heard.count("textbox"), heard.count('button "Pay')) == (1, 1)  # what is closed is not there
    last = payer.page.get_by_role("radio", name="Saved balance")
    assert await last.evaluate("(it) => it.ariaDescribedByElements[0].textContent") == "Pay in one step"


async def tab_to(payer: Visitor, wanted: str, most: int = 8) -> None:
    """Press Tab until the element is reached that the selector names."""
    for _ in range(most):
        await payer.page.keyboard.press("Tab")
        if await payer.page.locator(f":focus:is({wanted})").count():
            return
    raise AssertionError(f"{wanted} is not among the next {most} stops of the Tab key")


async def test_a_keyboard_is_enough(sell: Callable[..., Sale], visit: Visit) -> None:
    sale, payer = sell(), await visit(width=320)
    keys = payer.page.keyboard
    await payer.open(sale.url)
    assert await payer.measure(BESIDE_THE_CARD) == []
    await tab_to(payer, "select")
    await keys.type("Fr")
    await tab_to(payer, "input[type=radio]")
    await keys.press("Space")
    await tab_to(payer, "#sandbox_mobile-phone", most=1)
    await keys.type("12")
    await keys.press("Enter")
    await payer.page.locator(".problems:focus").wait_for()
    assert await payer.page.get_by_label("Country").input_value() == "FR"
    await tab_to(payer, ".problems a", most=1)
    await keys.press("Enter")
    await payer.page.locator("#sandbox_mobile-phone:focus").wait_for()
    await keys.press("Control+a")
    await keys.type("+22900990000")
    await tab_to(payer, "button", most=1)
    await keys.press("Enter")
    await payer.sees("Payment complete")
    assert (sale.paid, len(sale.attempts)) == (50, 1)


async def test_nothing_moves_for_who_asks_for_less_motion(sell: Callable[..., Sale], visit: Visit) -> None:
    sale, payer = sell("hang"), await visit()
    await payer.open(sale.choosing(BALANCE))
    await payer.press("Pay ")
    await payer.sees("Your payment is on its way")
    moving = "getComputedStyle(document.querySelector('.arc')).animationName"
    assert await payer.measure(moving) == "turn"
    await payer.page.emulate_media(reduced_motion="reduce")
    assert await payer.measure(moving) == "none"
