"""Card practice in a browser: a test card of a list decides the outcome; there is no field for a real one."""

from __future__ import annotations

from collections.abc import Callable

from tests.browser.sales import CARD, Sale
from tests.browser.visitor import ASKED, BROWSER, Visit

pytestmark = BROWSER


async def test_a_test_card_decides_and_nothing_of_another_method_is_sent(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell(), await visit()
    sent: list[str] = []
    payer.page.on("request", lambda asked: sent.append(f"{asked.url} {asked.post_data}"))
    await payer.open(sale.choosing("Mobile money"))
    await payer.page.locator("#sandbox_mobile-phone").fill("+229 90 00 00 42")
    await payer.choose(CARD)
    assert await payer.page.get_by_role("textbox").count() == 0
    await payer.practises("Insufficient funds")
    await payer.press("Pay ")
    await payer.sees("The payment did not go through")
    assert not [one for one in sent if "42&" in one or "sandbox_mobile-" in one]
    await payer.press("Try again")
    await payer.sees(ASKED)
    await payer.practises("Paid")
    await payer.press("Pay ")
    await payer.sees("Payment complete")
    assert (sale.paid, len(sale.attempts)) == (50, 2)
