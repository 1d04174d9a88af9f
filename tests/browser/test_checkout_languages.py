"""Languages in a browser: a payer reads from right to left on a phone; none is too wide for one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from payments_async.sandbox._checkout.language import LANGUAGES
from tests.browser.sales import Sale
from tests.browser.visitor import BROWSER, Visitor

pytestmark = BROWSER

Visit = Callable[..., Awaitable[Visitor]]

FITS = "document.documentElement.scrollWidth <= innerWidth"
ENDS = "name => (({ left, right }) => [left, right])(document.querySelector(name).getBoundingClientRect())"


async def test_a_payer_turns_to_arabic_on_a_phone(sell: Callable[..., Sale], visit: Visit) -> None:
    sale, payer = sell(), await visit(width=390)
    await payer.open(sale.choosing("Mobile money"))
    await payer.page.locator("[value=sandbox_mobile_code]").check()
    typed = payer.page.locator("#sandbox_mobile_code-phone")
    await typed.fill("0244 12")
    await payer.press("العربية")
    await payer.sees("كيف تود الدفع؟")
    assert await payer.page.locator("[value=sandbox_mobile_code]").is_checked(), "what was chosen stays"
    assert await typed.input_value() == "0244 12", "and what was typed"
    await payer.page.reload()
    assert await payer.page.locator("[value=sandbox_mobile_code]").is_checked()
    assert await typed.input_value() == "", "no form is sent again"
    circle, words = [await payer.page.evaluate(ENDS, f".option {part}") for part in ("input", "label span")]
    assert circle[0] > words[1], "the circles stand on the right"
    field = payer.page.get_by_label("رقم الهاتف").nth(1)
    await field.fill("+229 90 00 00 42")
    assert await field.evaluate("field => getComputedStyle(field).direction") == "ltr"
    await payer.press("ادفع")
    await payer.sees("أدخل الرمز الذي أرسلناه")
    assert await payer.measure(FITS)
    assert await payer.violations() == []
    assert len(sale.attempts) == 1


async def test_no_language_is_too_wide_for_the_narrowest_screen(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell(), await visit(width=320)
    for code in LANGUAGES:
        await payer.open(f"{sale.choosing('Card', 'CI')}&lang={code}")
        assert await payer.page.locator("html").get_attribute("lang") == code
        assert await payer.measure(FITS), code
