"""The inspector in a real browser: every page as it looks, and what its script does.

What each button asks for is read from the HTML (`tests/sandbox/inspector/test_buttons.py`).

A picture of each page is kept in test-output/browser.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from payments_async.sandbox import Sandbox, VirtualClock
from payments_async.sandbox._inspector.page_request import NAV
from tests.browser.visitor import BROWSER, Visitor
from tests.sandbox.raw_requests import INTENT, Api

pytestmark = BROWSER

Visit = Callable[..., Awaitable[Visitor]]


@pytest.fixture
def busy(sandbox: Sandbox, api: Api) -> Sandbox:
    """A sandbox in which a little of everything has happened."""
    for number in range(4):
        api.payout(reference=f"invoice-{number}", idempotency_key=f"payout-{number:04d}")
        sandbox.advance(1.5)
    api.payout(reference="no-funds", metadata={"sandbox_scenario": "fail:INSUFFICIENT_FUNDS immediate"})
    body: dict[str, Any] = {"reference": "lost", "metadata": {"sandbox_scenario": "manual"}}
    api.payout(**body, idempotency_key="payout-lost", scenario="lost_response")
    sandbox.advance(1)
    api.payout(**body, idempotency_key="payout-lost")
    api.payout(reference="hooked", webhook_url="http://127.0.0.1:9/hook")
    for outcome in ("action:collect_otp", "action:approve_on_phone", "fail:CUSTOMER_DECLINED", "complete"):
        session = api.checkout(customer={"email": "ada@example.test"}).data["checkout"]["id"]
        sandbox.pay(session, outcome=outcome, phone="+22990000077")
    api.post("/payment/intents", INTENT)
    api.post("/payment/intents", INTENT)
    api.get("/payouts", scenario="429:3")
    sandbox.handle("GET", "/v1/payouts", {"Origin": "https://shop.test"})
    sandbox.on("payouts.create", reference="r-1").respond("http:503", times=2)
    return sandbox


def request_of(sandbox: Sandbox, key: str) -> str:
    return next(one.request_id for one in sandbox.requests if one.idempotency_key == key)


async def look(visitor: Visitor, sandbox: Sandbox, path: str = "") -> None:
    """Open a page and wait until it is fresh."""
    await visitor.open(f"{sandbox.origin}/_sandbox/{path}")
    await visitor.page.wait_for_selector("#live[data-state=on]")


async def hears(visitor: Visitor, said: str) -> None:
    """Wait until the status line says so."""
    await visitor.page.get_by_role("status").get_by_text(said).wait_for()


async def shows(visitor: Visitor, text: str) -> None:
    await visitor.page.locator("main").get_by_text(text).filter(visible=True).first.wait_for()


# --- how it looks -------------------------------------------------------------------------------


VIEWS = (("light", 1440), ("dark", 320))
"""Both colour schemes, both widths, each once: a scheme changes colours only."""


@pytest.mark.parametrize("part", [0, 1, 2], ids=["first", "second", "third"])
async def test_every_page_fits_its_window_and_is_accessible(busy: Sandbox, visit: Visit, part: int) -> None:
    visitor = await visit(height=900)
    with Sandbox(clock=VirtualClock.frozen()) as unused:
        places = [(unused, "", "empty"), (unused, "payouts", "no-payouts"), (unused, "phone", "no-phone")]
        places += [(busy, f"requests/{request_of(busy, 'payout-lost')}", "requests")]
        payout, payment = busy.books.payouts(reference="hooked")[0].id, busy.books.payments()[0].id
        places += [(busy, f"payouts/{payout}", "payout"), (busy, f"payments/{payment}", "payment")]
        places += [(busy, "webhooks/wh_00000001", "webhook")]
        places += [(busy, path, path or "overview") for path, _ in NAV]
        for sandbox, path, name in places[part::3]:
            await look(visitor, sandbox, path)
            for scheme, width in VIEWS:
                await visitor.looks(scheme, width)
                await visitor.picture(f"inspector-{name}-{scheme}-{width}")
                wide = await visitor.measure("document.documentElement.scrollWidth")
                assert wide <= width, f"{name} is {wide} px wide"
                assert await visitor.violations() == [], name


async def test_without_script_no_page_offers_what_does_nothing(busy: Sandbox, visit: Visit) -> None:
    visitor = await visit(java_script=False)
    for path, _ in NAV:
        await visitor.open(f"{busy.origin}/_sandbox/{path}")
        useless = visitor.page.locator(":not([role=search] *):is(button, input, select):visible")
        assert await useless.count() == 0
    await visitor.open(f"{busy.origin}/_sandbox/requests/{request_of(busy, 'payout-lost')}")
    await visitor.press("Show account data")
    await shows(visitor, "Account data is shown")


async def test_the_keyboard_reaches_everything(busy: Sandbox, visit: Visit) -> None:
    visitor = await visit(width=1440)
    await look(visitor, busy, "payouts")
    names: list[str] = []
    for _ in range(26):
        await visitor.page.keyboard.press("Tab")
        names.append(await visitor.measure("document.activeElement.textContent.trim()"))
        seen = await visitor.measure("getComputedStyle(document.activeElement).outlineStyle")
        assert seen == "solid", names[-1]
    assert names[0] == "Skip to content"
    assert {"Sandbox", "Overview", "Assumptions", "Complete", "Fail", "Hang"} <= set(names)
    assert names.index("Complete") > names.index("Assumptions")


# --- live ---------------------------------------------------------------------------------------


async def test_the_overview_is_live_and_can_be_paused(sandbox: Sandbox, api: Api, visit: Visit) -> None:
    visitor = await visit(width=1440)
    await look(visitor, sandbox)
    await shows(visitor, "Nothing has happened yet")
    api.payout(reference="invoice-1")
    await shows(visitor, "/v1/payouts")
    await visitor.press("Pause")
    assert await visitor.page.locator("#live").inner_text() == "paused"
    other = await visit(width=1440)
    await look(other, sandbox)
    api.get("/payment/intents")
    await shows(other, "/v1/payment/intents")
    assert await visitor.page.get_by_text("/v1/payment/intents").count() == 0
    await visitor.press("Pause")
    await shows(visitor, "/v1/payment/intents")
    await visitor.press("Reset")
    await visitor.press("Reset everything?")
    await shows(visitor, "Nothing has happened yet")


async def test_two_thousand_entries_cost_few_looks(sandbox: Sandbox, api: Api, visit: Visit) -> None:
    api.payout(reference="first")
    visitor = await visit(width=1440)
    await look(visitor, sandbox)
    looks: list[str] = []
    visitor.page.on("request", lambda asked: looks.append(asked.url) if "/api/" not in asked.url else None)
    began = await visitor.measure("performance.now()")
    for _ in range(100):
        for _ in range(20):
            api.get("/payouts")
        await visitor.measure("0")  # the page answers meanwhile
    api.get("/payment/intents")
    await shows(visitor, "/v1/payment/intents")
    seconds = (await visitor.measure("performance.now()") - began) / 1000
    assert 1 <= len(looks) <= 2 * seconds + 2


async def test_a_tab_in_the_background_holds_no_connection(sandbox: Sandbox, api: Api, visit: Visit) -> None:
    api.payout(reference="first")
    visitor = await visit(width=1440)
    await look(visitor, sandbox)
    turn = (
        "hidden => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });"
        " document.dispatchEvent(new Event('visibilitychange', { bubbles: true })); }"
    )
    async with visitor.page.expect_event("requestfailed", lambda asked: "/stream?" in asked.url):
        await visitor.page.evaluate(turn, True)
    api.payout(reference="meanwhile")
    assert await visitor.page.get_by_text("meanwhile").count() == 0
    await visitor.page.evaluate(turn, False)
    await shows(visitor, "meanwhile")
    api.payout(reference="later")
    await shows(visitor, "later")


async def test_seven_open_pages_are_all_live(sandbox: Sandbox, api: Api, visit: Visit) -> None:
    """The seventh waited for ever: a browser has six connections to a server, and each page held one."""
    pages = [await visit(width=1280) for _ in range(7)]
    for visitor in pages:
        await look(visitor, sandbox)
    api.payout(reference="for-all")
    for visitor in pages:
        await shows(visitor, "for-all")
    said = [await visitor.page.locator("#live").inner_text() for visitor in pages]
    assert said == ["live"] * 4 + ["every 2 s"] * 3
    await pages[6].press("Pause")
    assert await pages[6].page.locator("#live").inner_text() == "paused"
    await pages[6].press("Pause")
    for visitor in pages[:3]:
        await visitor.open("about:blank")
    for visitor in pages[4:]:
        await visitor.page.locator("#live").get_by_text("live", exact=True).wait_for()


async def test_a_fresh_table_keeps_the_focus_and_its_button_acts(
    sandbox: Sandbox, api: Api, visit: Visit
) -> None:
    api.payout(reference="held", metadata={"sandbox_scenario": "manual"})
    visitor = await visit(width=1440)
    await look(visitor, sandbox, "payouts")
    fail = visitor.page.get_by_role("button", name="Fail")
    await fail.focus()
    api.payout(reference="newer", metadata={"sandbox_scenario": "immediate"})
    await shows(visitor, "newer")
    assert await visitor.measure("document.activeElement.textContent") == "Fail"
    await visitor.page.keyboard.press("Enter")
    await visitor.page.get_by_role("row", name="held failed").wait_for()
    await hears(visitor, "Done.")
    assert sandbox.books.payouts()[0].status == "failed"
    await look(visitor, sandbox, "clock")
    await visitor.press("+30s")
    await hears(visitor, "0 changed on the way")


# --- what the buttons do ------------------------------------------------------------------------


async def test_the_first_programs_are_copied(sandbox: Sandbox, visit: Visit) -> None:
    visitor = await visit(width=1440)
    await visitor.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await look(visitor, sandbox)
    for name, held in (("Copy key", "sk_sandbox_"), ("Copy", "AsyncPayments(")):
        await visitor.page.get_by_role("button", name=name, exact=True).first.click()
        await hears(visitor, "Copied.")
        await clipboard_with(visitor, held)


async def clipboard_with(visitor: Visitor, held: str) -> str:
    """What was copied, once it has `held`, and no more: the notice of an earlier copy may still stand.

    All pages of a browser share one clipboard, those of other tests too.
    """
    copied: str = await visitor.page.evaluate(  # `wait_for_function` takes a promise for true
        """async held => {
            for (;;) {
                const text = await navigator.clipboard.readText();
                if (text.includes(held)) return text;
                await new Promise(requestAnimationFrame);
            }
        }""",
        held,
    )
    await visitor.measure("navigator.clipboard.writeText('')")
    return copied


async def test_a_request_is_copied_as_code_and_sent_again(busy: Sandbox, visit: Visit) -> None:
    visitor = await visit(width=1440)
    await visitor.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await look(visitor, busy, f"requests/{request_of(busy, 'payout-lost')}")
    await visitor.measure("navigator.clipboard.writeText('')")
    for name, held in (
        ("Copy async", "await client"),
        ("Copy sync", "with Payments"),
        ("Copy curl", "curl -sS"),
    ):
        await visitor.press(name)
        copied = await clipboard_with(visitor, held)
        assert busy.api_key not in copied
        assert "22990000000" not in copied
        assert "press Show account data first" in copied.partition("\n")[0]
        await hears(visitor, "press “Show account data” first")
    await visitor.press("Show account data")
    await shows(visitor, "Account data is shown")
    await visitor.press("Copy curl")
    assert "curl" in await clipboard_with(visitor, "+22990000000")
    before = len(busy.requests)
    await visitor.press("Send again")
    await hears(visitor, "answered 201")
    assert len(busy.requests) == before + 1
    assert busy.requests[-1].replayed
    assert len(busy.books.payouts(reference="lost")) == 1


async def test_a_payments_timeline_is_live_and_leads_on(sandbox: Sandbox, api: Api, visit: Visit) -> None:
    session = api.checkout().data["checkout"]["id"]
    payment = sandbox.books.payments()[0].id
    visitor = await visit(width=1440)
    await visitor.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await look(visitor, sandbox, "payments")
    await visitor.page.get_by_role("row", name="pending").get_by_role("link").first.click()
    timeline = visitor.page.get_by_role("list", name="Timeline")
    await visitor.page.wait_for_selector("#live[data-state=on]")
    await visitor.page.get_by_role("button", name="Copy id", exact=True).focus()
    await visitor.page.keyboard.press("Enter")
    assert await clipboard_with(visitor, "pi_") == payment
    sandbox.pay(session, outcome="action:approve_on_phone")
    await timeline.get_by_text("Pays with sandbox_mobile").wait_for()
    await visitor.page.get_by_role("button", name="Pay", exact=True).click()
    await timeline.get_by_text("Approves on the phone").wait_for()
    tops = "[...document.querySelectorAll('.node .did')].map(one => one.getBoundingClientRect().left)"
    wide = await visitor.measure(tops)
    assert len(set(wide)) == 2, "requests and states begin at their lanes"
    await visitor.looks("light", 390)
    assert len(set(await visitor.measure(tops))) == 1
    assert await timeline.locator(".node").get_by_text("Payer", exact=True).first.is_visible()
    await timeline.get_by_role("link", name="attempt").first.click()
    assert "#pa_" in visitor.page.url
    await timeline.get_by_role("link", name="checkouts.create").click()
    await visitor.sees("Request")
    # a page whose subject is gone says so, and asks no more
    await visitor.page.wait_for_selector("#live[data-state=on]")
    sandbox.reset()
    await visitor.sees("Page not found")
    await hears(visitor, "no request 'req_00000001' in the journal")
    assert await visitor.page.locator("#live").inner_text() == "paused"
    assert ["404" in error for error in visitor.errors] == [True]
    visitor.errors.clear()
    await visitor.press("Go to the overview")
    await shows(visitor, "Nothing has happened yet")


async def test_a_fault_is_added_by_words_and_removed(sandbox: Sandbox, api: Api, visit: Visit) -> None:
    visitor = await visit(width=1440)
    await look(visitor, sandbox, "faults")
    words = visitor.page.get_by_label("Words")
    await words.fill("lost_respons")
    await visitor.page.get_by_role("button", name="Add").click()
    await visitor.page.locator("form .wrong").get_by_text("near: lost_response").wait_for()
    assert await visitor.page.locator("#said").text_content() == ""  # once is enough
    assert await words.input_value() == "lost_respons"
    note = visitor.page.locator("form .wrong")
    assert "near: lost_response" in await note.inner_text()
    assert await note.get_attribute("id") in str(await words.get_attribute("aria-describedby")).split()
    assert await words.get_attribute("aria-invalid") == "true"
    below, field = await note.bounding_box(), await words.bounding_box()
    assert below is not None
    assert field is not None
    assert 0 < below["y"] - field["y"] < 100
    await words.fill("http:503*2")
    await visitor.page.get_by_label("Reference").fill("r-1")
    await words.press("Enter")
    await hears(visitor, "Set rule_")
    assert await note.count() == 0
    assert await words.get_attribute("aria-invalid") is None
    assert await words.get_attribute("aria-describedby") == "words-help"
    assert api.payout(reference="r-1").status == 503
    await visitor.page.get_by_role("cell", name="1", exact=True).first.wait_for()
    await visitor.page.get_by_role("button", name="Remove", exact=True).click()
    await shows(visitor, "No rules")
    sandbox.on("*").respond("reset")
    await look(visitor, sandbox, "faults")
    await visitor.press("Remove all")
    await shows(visitor, "No rules")
    assert sandbox.rules == []


async def test_a_drag_over_the_chart_chooses_a_span_of_time(sandbox: Sandbox, api: Api, visit: Visit) -> None:
    for number in range(4):
        api.payout(reference=f"minute-{number}")
        sandbox.advance(60)
    visitor = await visit(width=1280)
    await look(visitor, sandbox)
    bars = visitor.page.locator(".chart a rect")
    assert await bars.count() == 4
    await bars.nth(1).hover()
    await visitor.page.mouse.down()
    await bars.nth(2).hover()
    await visitor.page.mouse.up()
    await shows(visitor, "From 2026-01-01 00:01:00 to 2026-01-01 00:02:30 UTC.")
    log = await visitor.page.locator("#journal").inner_text()
    assert ["minute-" + str(number) in log for number in range(4)] == [False, True, True, False]
    await visitor.page.get_by_role("link", name="Show all times").click()
    await bars.nth(3).click()
    await shows(visitor, "From 2026-01-01 00:03:00 to 2026-01-01 00:03:30 UTC.")
