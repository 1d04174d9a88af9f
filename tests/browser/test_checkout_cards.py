"""Card practice in a browser: a test card with one click, any other number taken out before it leaves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.browser.sales import CARD, Sale
from tests.browser.visitor import ASKED, BROWSER, Visitor

pytestmark = BROWSER

Visit = Callable[..., Awaitable[Visitor]]


async def test_a_card_that_may_be_real_never_leaves_the_page_and_a_test_card_decides(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell(), await visit()
    sent: list[str] = []
    payer.page.on("request", lambda asked: sent.append(f"{asked.url} {asked.post_data}"))
    await payer.open(sale.choosing(CARD))
    number = payer.page.get_by_label("Card number")
    await number.press_sequentially("4000 0566")
    await payer.page.get_by_role("alert").get_by_text("Never type a real card here").wait_for()
    assert await number.input_value() == ""
    expiry = payer.page.get_by_label("Expiry date")
    await expiry.press_sequentially("٥١٠٥105")  # some digits as an Arabic keyboard has them
    assert await expiry.input_value() == ""
    await expiry.press_sequentially("1229")
    assert await expiry.input_value() == "12/29"
    for key in ("Backspace", "Backspace", "Backspace", "3", "0"):
        await expiry.press(key)
    assert await expiry.input_value() == "12/30"
    await expiry.fill("12-29")
    assert await expiry.input_value() == "12/29"
    await payer.choose("Mobile money")
    await payer.page.locator("#sandbox_mobile-phone").fill("+229 90 00 00 42")
    await payer.choose(CARD)
    await payer.practises("Insufficient funds")
    await payer.press("Pay ")
    await payer.sees("The payment did not go through")
    assert not [one for one in sent if "0566" in one or "42&" in one]  # nor what belongs to another method
    await payer.press("Try again")
    await payer.sees(ASKED)
    assert await number.input_value() == ""
    await payer.practises("Paid")
    await payer.press("Pay ")
    await payer.sees("Payment complete")
    assert (sale.paid, len(sale.attempts)) == (50, 2)


@pytest.mark.parametrize("java_script", [True, False])
async def test_the_providers_form_takes_the_same_cards(
    sell: Callable[..., Sale], visit: Visit, java_script: bool
) -> None:
    sale, payer = sell("action:complete_with_sdk"), await visit(java_script=java_script)
    await payer.open(sale.choosing("Saved balance"))
    await payer.press("Pay ")
    await payer.sees("Enter your card")
    if not java_script:
        await payer.press("Open the card form")
    await payer.practises()
    await payer.press("Approve")
    await payer.sees("Payment complete")
    assert (sale.paid, len(sale.attempts)) == (50, 1)
