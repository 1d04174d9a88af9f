"""Every state of the hosted checkout as it looks: readable by everybody, at any width, in light and dark.

A picture of each is kept in test-output/browser.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import attrs
import pytest

from payments_async.sandbox import Sandbox
from tests.browser.visitor import ASKED, BROWSER, SHOP, Visitor
from tests.sandbox.checkout.test_attempt_pages import Payer as Returning
from tests.sandbox.checkout.test_pages import BALANCE, METHODS, Payer
from tests.sandbox.raw_requests import Api

pytestmark = BROWSER

ADA: dict[str, Any] = {
    "amount": 24_500,
    "currency": "XOF",
    "description": "Two seats, Cotonou to Parakou, 14 March",
    "appearance": {"brand": "Ada Travel", "color": "#0f766e"},
    "return_url": SHOP,
}
BRIGHT: dict[str, Any] = {
    **ADA,
    "amount": 123_456_789_012.34,
    "currency": "USD",
    "description": "A description that goes on " * 8,
    "appearance": {"brand": "Les Frères Lumière & Compagnie du Sud", "color": "#ffe600", "lang": "fr"},
}
DARK: dict[str, Any] = {
    **ADA,
    "appearance": {"brand": "Noir", "color": "#0a0a0a", "display_platform_badge": False},
}


def nothing(_: Payer) -> None:
    """The session as it was made."""


def paid(payer: Payer) -> None:
    payer.pay()


def wait(seconds: float) -> Callable[[Payer], None]:
    def act(payer: Payer) -> None:
        payer.pay()
        payer.api.sandbox.advance(seconds)

    return act


def ask(action: str) -> Callable[[Payer], None]:
    def act(payer: Payer) -> None:
        payer.pay(METHODS[action], phone="+22990000042", payer_name="Ada")

    return act


def declined(payer: Payer) -> None:
    ask("redirect_to_url")(payer)
    payer.answer("bank", "decline")


def cancelled(payer: Payer) -> None:
    ask("redirect_to_url")(payer)
    payer.send(**payer.form("/payment"))


def refunded(payer: Payer) -> None:
    payer.pay()
    payer.api.sandbox.refund(payer.payment["id"])


@attrs.frozen
class State:
    """How to come to a state, and what its page says."""

    heading: str
    part: str = ""
    act: Callable[[Payer], object] = nothing
    scenario: str | None = None
    body: Mapping[str, Any] = ADA
    press: str | None = None


def pay_with(method: str) -> str:
    return "?" + urlencode({"country": "BJ", "method": method})


STATES: Mapping[str, State] = {
    "pay": State(ASKED),
    "pay-missing": State(ASKED, f"?method={BALANCE}", press="Pay "),
    "pay-phone": State(ASKED, pay_with("sandbox_mobile")),
    "pay-wrong": State(ASKED, pay_with("sandbox_mobile"), press="Pay "),
    "pay-bright": State(ASKED, pay_with("sandbox_bank_transfer"), body=BRIGHT),
    "pay-sending": State(ASKED, pay_with(BALANCE)),
    "pay-dark": State(ASKED, pay_with(BALANCE), body=DARK),
    "waiting": State("Your payment is on its way", "/payment", paid, "hang"),
    "rerouted": State("Your payment is on its way", "/payment", wait(5), "failover:2 after=5s"),
    "unknown": State("We do not know the outcome yet", "/payment", wait(90), "hang"),
    "failed": State("The payment did not go through", "/payment", declined),
    "cancelled": State("You cancelled the payment", "/payment", cancelled),
    "left": State("You have not paid", "/cancelled"),
    "paid": State("Payment complete", "/payment", paid),
    "already-paid": State("Already paid", "", refunded),
    "expired": State("This checkout has expired", "", lambda payer: payer.api.sandbox.advance(3600)),
    "expired-in-doubt": State("This checkout has expired", "/payment", wait(3600), "hang"),
    "redirect": State("Continue at your bank", "/payment", ask("redirect_to_url")),
    "iframe": State("Confirm with your bank", "/payment", ask("embed_iframe")),
    "code": State("Enter the code we sent", "/payment", ask("collect_otp")),
    "code-wrong": State("Enter the code we sent", "/payment", ask("collect_otp"), press="Confirm"),
    "approve": State("Approve on your phone", "/payment", ask("approve_on_phone")),
    "qr": State("Scan with your wallet app", "/payment", ask("scan_qr_code")),
    "transfer": State("Send the transfer", "/payment", ask("display_payment_instructions")),
    "pay-card": State(ASKED, pay_with("sandbox_card")),
    "card": State("Enter your card", "/payment", paid, "action:complete_with_sdk"),
    "bank": State("Confirm this payment", "/bank", ask("redirect_to_url")),
    "bank-window": State("Confirm this payment", "/frame", ask("embed_iframe")),
    "phone-approve": State("Confirm this payment", "/phone", ask("approve_on_phone")),
    "phone-code": State("New message", "/phone", ask("collect_otp")),
    "phone-idle": State("Nothing to confirm", "/phone"),
    "nothing": State("Checkout not found", "/nowhere"),
    "provider": State("Pay by card", "/provider", paid, "action:complete_with_sdk"),
}

SMALL_TARGETS = """() => [...document.querySelectorAll(
    'main :is(button, .button, .quiet, .option, select, input:not([type=radio], [type=hidden]))'
)].filter((it) => it.checkVisibility() && it.getBoundingClientRect().height < 44).map((it) => it.outerHTML)"""
SPLIT = """() => [...document.querySelectorAll('.amount')].filter(
    (it) => it.clientHeight > 1.5 * parseFloat(getComputedStyle(it).fontSize)
).map((it) => it.textContent)"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


VIEWS = (("light", "phone", 390, 844), ("dark", "desktop", 1280, 900))
"""Both colour schemes, both widths, each once: a scheme changes colours only, and the page is one column."""


COLOURS = ("color-contrast", "link-in-text-block")
"""All that axe has to look for again in the dark."""


@pytest.mark.parametrize("name", STATES)
async def test_a_state_can_be_read_by_everybody(
    name: str, sandbox: Sandbox, api: Api, visit: Callable[..., Awaitable[Visitor]]
) -> None:
    state = STATES[name]
    body = {**state.body, "metadata": {"sandbox_scenario": state.scenario} if state.scenario else None}
    payer = Payer(api, api.checkout(**body).data["checkout"]["id"])
    state.act(payer)
    visitor = await visit()
    await visitor.open(f"{sandbox.origin}{payer.path(state.part)}")
    if state.press:
        await visitor.press(state.press)
        await visitor.page.locator(".problems:focus").wait_for()
    if name == "pay-sending":
        await visitor.measure("addEventListener('submit', (event) => event.preventDefault())")
        await visitor.page.locator("input:checked").press("Enter")  # the first button of the form is folded
        await visitor.page.locator(":checked ~ .more button[aria-disabled]").wait_for()
    if name == "nothing":
        visitor.errors.clear()  # of a 404
    await looks_good(visitor, name, state.heading)


async def test_an_attempts_own_pages_can_be_read_by_everybody(
    api: Api, sandbox: Sandbox, visit: Callable[..., Awaitable[Visitor]]
) -> None:
    payer, visitor = Returning(api, "redirect_to_url", **ADA), await visit()
    await visitor.open(f"{sandbox.origin}/actions/{payer.attempt['id']}/payment")
    await looks_good(visitor, "own-waits", "Not confirmed yet")
    payer.answer("bank")
    await visitor.page.reload()
    await looks_good(visitor, "own-paid", "Payment complete")


async def looks_good(visitor: Visitor, name: str, heading: str) -> None:
    """Axe finds nothing, everything fits a small window and a finger; keeps a picture in each scheme."""
    assert await visitor.page.locator("h1").first.inner_text() == heading
    for scheme, device, width, height in VIEWS:
        await visitor.looks(scheme, width, height)
        await visitor.picture(f"{name}-{scheme}-{device}")
        assert await visitor.violations(*COLOURS if scheme == "dark" else ()) == []
    await visitor.looks("light", 320, 640)
    assert await visitor.measure(OVERFLOW) <= 0
    assert await visitor.measure(SMALL_TARGETS) == []
    assert await visitor.measure(SPLIT) == []
