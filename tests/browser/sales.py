"""What the merchant sells at the hosted checkout, and what payers do there."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import attrs

from payments_async.sandbox import Sandbox
from payments_async.sandbox._checkout.method_catalogue import METHODS
from tests.browser.visitor import Visitor

CARD, BALANCE, BANK = "Card", "Saved balance", "Online banking"
PAID = "Payment complete|Already paid"


@attrs.frozen
class Sale:
    """One checkout session of the merchant's."""

    sandbox: Sandbox
    id: str
    url: str

    @property
    def paid(self) -> Any:
        """What the merchant was paid."""
        return self.sandbox.books.collected("XOF")

    def choosing(self, method: str, country: str = "BJ") -> str:
        """The address at which a payer in Benin has chosen a method."""
        code = next(one.code for one in METHODS if one.label == method)
        return f"{self.url}?{urlencode({'country': country, 'method': code})}"

    @property
    def attempts(self) -> list[Any]:
        return list(self.sandbox.books.payments()[-1].attempts)


async def begins(payer: Visitor, sale: Sale, method: str, phone: str = "+229 90 00 00 42") -> None:
    """From the address at which everything is chosen to the pressed Pay button."""
    await payer.open(sale.choosing(method))
    await payer.confirms(phone)


async def confirm_at_bank(payer: Visitor) -> None:
    await payer.sees("Continue at your bank")
    await payer.press("Continue to the bank")
    await payer.press("Approve")


async def confirm_in_window(payer: Visitor) -> None:
    await payer.sees("Confirm with your bank")
    await payer.page.frame_locator("iframe").get_by_role("button", name="Approve").click()


async def enter_code(payer: Visitor) -> None:
    await payer.sees("Enter the code we sent")
    phone = await payer.elsewhere()
    await phone.open(payer.page.url.replace("/payment", "/phone"))
    code = await phone.page.locator(".bubble b").inner_text()
    await payer.page.get_by_label("One-time code").fill(code)
    await payer.press("Confirm")


ACTIONS = {BANK: confirm_at_bank, "Bank window": confirm_in_window, "Mobile money, by code": enter_code}
