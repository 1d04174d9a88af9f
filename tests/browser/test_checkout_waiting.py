"""While a payment waits for its payer: the phone beside it, and a code that is sent again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.sales import Sale, begins
from tests.browser.visitor import BROWSER, Visit

pytestmark = BROWSER


@pytest.mark.parametrize("java_script", [True, False])
async def test_on_a_wide_screen_paying_and_approving_is_one_screen(
    sell: Callable[..., Sale], visit: Visit, java_script: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments_async.sandbox._checkout.pages.RELOAD_AFTER", 1)
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
