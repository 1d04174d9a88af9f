"""Payers at the hosted checkout in a real browser: with a mouse, a keyboard, without JavaScript, in a hurry.

Each test ends with what counts: how often the merchant was paid.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import attrs
import pytest

from payments_async.sandbox import Sandbox, VirtualClock
from payments_async.sandbox.checkout import _pages
from payments_async.sandbox.checkout._catalogue import METHODS
from tests.browser.visitor import SHOP, Visitor
from tests.sandbox.api import Api

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

Visit = Callable[..., Awaitable[Visitor]]
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


@pytest.fixture
def sell(sandbox: Sandbox, api: Api) -> Callable[..., Sale]:
    """`sell(scenario)` makes a session over 50 XOF."""

    def make(scenario: str | None = None, **fields: Any) -> Sale:
        extra = {"metadata": {"sandbox_scenario": scenario}} if scenario else {}
        body = {"appearance": {"brand": "Ada"}, "return_url": SHOP, **extra, **fields}
        made = api.checkout(**body).data["checkout"]
        return Sale(sandbox, made["id"], made["url"])

    return make


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


async def approve_on_phone(payer: Visitor) -> None:
    await payer.sees("Approve on your phone")
    await use_other_device(payer, "phone", "Approve")


async def scan(payer: Visitor) -> None:
    await payer.sees("Scan with your wallet app")
    await use_other_device(payer, "phone", "Approve")


async def transfer(payer: Visitor) -> None:
    await payer.sees("Send the transfer")
    await use_other_device(payer, "bank", "Send the transfer")


async def use_other_device(payer: Visitor, place: str, button: str) -> None:
    """Answer elsewhere; without JavaScript the payer then looks again by himself."""
    device = await payer.elsewhere()
    await device.open(payer.page.url.replace("/payment", f"/{place}"))
    await device.press(button)
    await device.page.get_by_role("button", name=button).wait_for(state="detached")
    await device.page.close()
    if not payer.java_script:
        await payer.press("Check again")


async def fill_in_card(payer: Visitor) -> None:
    await payer.sees("Enter your card")
    if not payer.java_script:
        await payer.press("Open the card form")
    await payer.press("Approve")


async def nothing_more(_: Visitor) -> None:
    """The balance pays in one step."""


ACTIONS = {
    BANK: confirm_at_bank,
    "Bank window": confirm_in_window,
    "Mobile money, by code": enter_code,
    "Mobile money": approve_on_phone,
    "Wallet app": scan,
    "Bank transfer": transfer,
    CARD: fill_in_card,
    BALANCE: nothing_more,
}


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


async def test_without_javascript_a_waiting_page_looks_again_by_itself(
    sell: Callable[..., Sale], visit: Visit, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_pages, "LOOK_AGAIN", 1)
    sale, payer = sell("complete after=5s"), await visit(java_script=False)
    await begins(payer, sale, BALANCE)
    await payer.sees("Your payment is on its way")
    sandbox.advance(5)
    await payer.sees("Payment complete")


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
    await payer.press("Go on paying")
    await payer.pays(BANK)
    await payer.press("Cancel this payment")
    await payer.sees("You cancelled the payment")
    await payer.press("Go on paying")
    await payer.pays(BALANCE, country=None)
    await payer.sees("Payment complete")
    assert (sale.paid, len(sale.attempts)) == (50, 2)


async def test_a_session_that_expires_while_the_payer_hesitates_takes_nothing(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, follows, looks_once = sell(), await visit(), await visit(java_script=False)
    for payer in (follows, looks_once):
        await payer.open(sale.choosing(BALANCE))
        await payer.sees("Check and pay")
    sale.sandbox.advance(3600)
    await looks_once.press("Pay ")
    for payer in (follows, looks_once):
        await payer.sees("This checkout has expired")
    assert (sale.paid, sale.attempts) == (0, [])


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


async def test_a_payment_that_takes_too_long_is_unknown_and_never_failed(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell("hang"), await visit()
    await begins(payer, sale, BALANCE)
    await payer.sees("Your payment is on its way")
    sale.sandbox.advance(90)
    await payer.sees("We do not know the outcome yet")
    assert "fail" not in await payer.page.content()
    assert await payer.page.get_by_role("button").count() == 0
    await payer.open(sale.url)
    await payer.sees("We do not know the outcome yet")


async def test_a_line_that_breaks_while_waiting_is_not_shown_as_an_end(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, payer = sell("complete after=5s"), await visit(alone=True)
    await begins(payer, sale, BALANCE)
    await payer.sees("Your payment is on its way")
    await payer.page.context.set_offline(True)
    sale.sandbox.advance(5)
    await payer.page.wait_for_event("requestfailed")
    await payer.sees("Your payment is on its way")
    await payer.page.context.set_offline(False)
    await payer.sees("Payment complete")
    assert [error for error in payer.errors if "ERR_INTERNET_DISCONNECTED" not in error] == []
    payer.errors.clear()


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
    await payer.sees("No such checkout")
    assert [error for error in payer.errors if "404" not in error] == []
    payer.errors.clear()


async def test_a_hidden_tab_holds_no_connection_and_is_told_when_it_is_seen_again(
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


async def test_of_two_tabs_one_pays(sell: Callable[..., Sale], visit: Visit) -> None:
    sale, first = sell(), await visit(java_script=False)
    second = await first.elsewhere()
    for tab in (first, second):
        await tab.open(sale.choosing(BALANCE))
    await first.press("Pay ")
    await first.sees("Payment complete")
    await second.press("Pay ")
    await second.sees("Already paid")
    assert (sale.paid, len(sale.attempts)) == (50, 1)


async def test_of_two_tabs_that_press_at_once_one_pays(sell: Callable[..., Sale], visit: Visit) -> None:
    sale, first = sell(), await visit()
    second = await first.elsewhere()
    arrived, together = 0, asyncio.Event()

    async def hold(route: Any) -> None:
        nonlocal arrived
        if route.request.method == "POST":
            arrived += 1
            if arrived == 2:
                together.set()
            await together.wait()
        await route.fallback()

    for tab in (first, second):
        await tab.page.route("**/checkout/*", hold)
        await tab.open(sale.choosing(BALANCE))
        await tab.sees("Check and pay")
    await asyncio.gather(first.press("Pay "), second.press("Pay "))
    headings = [tab.page.get_by_role("heading", name=re.compile(PAID)) for tab in (first, second)]
    seen = sorted([await heading.inner_text() for heading in headings])
    assert (arrived, seen) == (2, ["Already paid", "Payment complete"])
    assert (sale.paid, len(sale.attempts)) == (50, 1)


async def test_every_tab_and_the_phone_follow_what_happens_in_one(
    sell: Callable[..., Sale], visit: Visit
) -> None:
    sale, first = sell(), await visit()
    second, phone = await first.elsewhere(), await first.elsewhere()
    await phone.open(f"{sale.url}/phone")
    await phone.page.get_by_role("heading", name="Nothing to confirm").wait_for()
    await second.open(sale.choosing(BALANCE))
    await second.sees("Check and pay")
    await first.open(sale.choosing("Mobile money"))
    await first.page.get_by_label("Phone number").fill("+229 90 00 00 42")
    await first.press("Pay ")
    await second.sees("Approve on your phone")
    await phone.page.get_by_role("heading", name="Confirm this payment").wait_for()
    await phone.press("Approve")
    for tab in (first, second):
        await tab.sees("Payment complete")
    await phone.page.get_by_role("heading", name="Nothing to confirm").wait_for()
    assert (sale.paid, len(sale.attempts)) == (50, 1)


@pytest.mark.parametrize(("java_script", "seen"), [(True, "Payment complete"), (False, "")])
async def test_a_double_click_pays_once(
    sell: Callable[..., Sale], visit: Visit, java_script: bool, seen: str
) -> None:
    sale, payer = sell(), await visit(java_script=java_script)
    await payer.open(sale.choosing(BALANCE))
    await payer.page.get_by_role("button", name=re.compile("^Pay ")).dblclick()
    heading = payer.page.get_by_role("heading", level=1, name=re.compile(PAID))
    await heading.wait_for()
    assert seen in await heading.inner_text()
    assert (sale.paid, len(sale.attempts)) == (50, 1)


async def test_a_form_that_is_on_its_way_is_not_sent_again(sell: Callable[..., Sale], visit: Visit) -> None:
    sale, payer = sell(), await visit()
    await payer.open(sale.choosing(BALANCE))
    sent: list[str] = []
    answered = asyncio.Event()

    async def hold(route: Any) -> None:
        if route.request.method == "POST":
            sent.append(route.request.url)
            await answered.wait()
        await route.fallback()

    await payer.page.route("**/checkout/*", hold)
    button = payer.page.get_by_role("button", name=re.compile("^Pay "))
    pause = "await new Promise((done) => setTimeout(done, 100));"
    clicks = f"button.click(); {pause} button.click(); {pause} return button.ariaDisabled;"
    assert await button.evaluate(f"async (button) => {{ {clicks} }}") == "true"
    answered.set()
    await payer.sees("Payment complete")
    assert (len(sent), sale.paid) == (1, 50)


async def test_going_back_after_paying_finds_it_paid(sell: Callable[..., Sale], visit: Visit) -> None:
    sale, payer = sell(), await visit()
    await begins(payer, sale, BALANCE)
    await payer.sees("Payment complete")
    await payer.page.go_back()
    await payer.sees("Already paid")
    assert await payer.page.get_by_role("button").count() == 0
    assert (sale.paid, len(sale.attempts)) == (50, 1)


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
