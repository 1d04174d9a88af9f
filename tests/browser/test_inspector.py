"""The inspector in a real browser: every page as it looks, and what its script does.

What each button asks for is read from the HTML (`tests/sandbox/inspector/test_buttons.py`).
A picture of each page is kept in test-output/browser.
"""

from __future__ import annotations

import pytest

from payments_async.sandbox import Sandbox, VirtualClock
from tests.browser.visitor import BROWSER, Visit, Visitor
from tests.sandbox.inspector.test_pages import NAV
from tests.sandbox.raw_requests import Api

pytestmark = BROWSER
VIEWS = (("light", 1440), ("dark", 320))
"""Both colour schemes, both widths, each once: a scheme changes colours only."""


@pytest.fixture
def busy(sandbox: Sandbox, api: Api) -> Sandbox:
    """A sandbox in which a little of everything has happened."""
    for number in range(4):
        api.payout(reference=f"invoice-{number}", idempotency_key=f"payout-{number:04d}")
        sandbox.advance(1.5)
    api.payout(reference="no-funds", metadata={"sandbox_scenario": "fail:INSUFFICIENT_FUNDS immediate"})
    for scenario in ("lost_response", None):
        api.payout(reference="lost", idempotency_key="payout-lost", scenario=scenario)
    api.payout(reference="hooked", webhook_url="http://127.0.0.1:9/hook")
    for outcome in ("action:collect_otp", "fail:CUSTOMER_DECLINED", "complete"):
        session = api.checkout(customer={"email": "ada@example.test"}).data["checkout"]["id"]
        sandbox.pay(session, outcome=outcome, phone="+22990000077")
    api.get("/payouts", scenario="429:3")
    sandbox.on("payouts.create", reference="r-1").respond("http:503", times=2)
    sandbox.wait_for_webhooks()
    return sandbox


def lost(sandbox: Sandbox) -> str:
    """The page of the request whose answer was lost."""
    found = next(one for one in sandbox.requests if one.idempotency_key == "payout-lost")
    return f"requests/{found.request_id}"


async def look(visitor: Visitor, sandbox: Sandbox, path: str = "") -> None:
    await visitor.open(f"{sandbox.origin}/_sandbox/{path}")


async def hears(visitor: Visitor, said: str) -> None:
    """Wait until the status line says so."""
    await visitor.page.get_by_role("status").get_by_text(said).wait_for()


async def shows(visitor: Visitor, text: str) -> None:
    await visitor.page.locator("main").get_by_text(text).filter(visible=True).first.wait_for()


async def test_every_page_fits_its_window_and_is_accessible(busy: Sandbox, visit: Visit) -> None:
    visitor = await visit(height=900)
    payout, payment = busy.books.payouts(reference="hooked")[0].id, busy.books.payments()[0].id
    paths = [*NAV]
    paths += [lost(busy), f"payouts/{payout}", f"payments/{payment}", "webhooks/wh_00000001"]
    with Sandbox(clock=VirtualClock.frozen()) as unused:
        for sandbox, path in [(unused, ""), (unused, "payouts"), *((busy, path) for path in paths)]:
            await look(visitor, sandbox, path)
            for scheme, width in VIEWS:
                await visitor.looks(scheme, width)
                await visitor.picture(f"inspector-{path.partition('/')[0] or 'log'}-{scheme}-{width}")
                wide = await visitor.measure("document.documentElement.scrollWidth")
                assert wide <= width, f"{path} is {wide} px wide"
                assert await visitor.violations() == [], path


async def test_without_script_no_page_offers_what_does_nothing(busy: Sandbox, visit: Visit) -> None:
    visitor = await visit(java_script=False)
    for path in NAV:
        await look(visitor, busy, path)
        useless = visitor.page.locator(":not([role=search] *):is(button, input, select):visible")
        assert await useless.count() == 0
    await visitor.open(f"{busy.origin}/_sandbox/{lost(busy)}")
    await visitor.press("Show account data")
    await shows(visitor, "Account data is shown")


async def test_a_keyboard_reaches_everything_and_a_fresh_list_keeps_the_focus(
    sandbox: Sandbox, api: Api, visit: Visit
) -> None:
    api.payout(reference="r-1", metadata={"sandbox_scenario": "manual"})
    visitor = await visit(width=1440)
    await look(visitor, sandbox, "payouts")
    names: list[str] = []
    while names[-1:] != ["Fail"]:
        await visitor.page.keyboard.press("Tab")
        names.append(await visitor.measure("document.activeElement.textContent.trim()"))
        seen = await visitor.measure("getComputedStyle(document.activeElement).outlineStyle")
        assert seen == "solid", names[-1]
    assert names[0] == "Skip to content"
    assert {"Sandbox", "Log", "Clock", "Search", "r-1", "Complete"} <= set(names)
    api.payout(reference="r-2", metadata={"sandbox_scenario": "manual"})
    await shows(visitor, "r-2")
    assert await visitor.measure("document.activeElement.textContent") == "Fail"
    await visitor.page.keyboard.press("Enter")
    await shows(visitor, "INSUFFICIENT_FUNDS")
    statuses = {one.reference: one.status for one in sandbox.books.payouts()}
    assert statuses == {"r-1": "failed", "r-2": "pending"}


async def test_the_log_is_live_until_it_is_not_to_be_and_a_search_stays(
    sandbox: Sandbox, api: Api, visit: Visit
) -> None:
    visitor = await visit()
    await look(visitor, sandbox)
    await shows(visitor, "Nothing has happened yet")
    api.payout(reference="first")
    await shows(visitor, "first")
    live = visitor.page.get_by_label("Live")
    await live.uncheck()
    api.payout(reference="second")
    sandbox.advance(3600)
    await visitor.page.locator("time.now").get_by_text("01:00:00").wait_for()  # it asks still
    assert await visitor.page.locator("main").get_by_text("second").count() == 0
    await live.check()
    await shows(visitor, "second")
    await visitor.page.get_by_role("searchbox").fill("FIRST")
    await visitor.press("Search")
    await visitor.page.get_by_text("second").first.wait_for(state="detached")
    await visitor.press("Requests")
    await visitor.page.wait_for_url("**/?find=FIRST&kind=request")
    sandbox.reset()
    await shows(visitor, "Nothing has happened yet")


async def test_try_it_shows_a_lost_answer_live_and_a_payer_with_a_phone(
    sandbox: Sandbox, visit: Visit
) -> None:
    visitor = await visit(width=1280, height=900)
    await look(visitor, sandbox)
    await visitor.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await visitor.page.get_by_text("In Python, with asyncio").last.click()
    await visitor.press("Copy")
    await hears(visitor, "Copied.")
    assert "AsyncPayments" in await visitor.measure("navigator.clipboard.readText()")
    await visitor.press("Lose the answer")
    await shows(visitor, "replayed answer")
    sandbox.advance(5)
    await shows(visitor, "processing → completed")
    for scheme, width in VIEWS:
        await visitor.looks(scheme, width)
        await visitor.picture(f"inspector-try-{scheme}-{width}")
        assert await visitor.measure("document.documentElement.scrollWidth") <= width
        assert await visitor.violations() == []
    await visitor.looks("light", 1280)
    await visitor.press("Open a checkout")
    await visitor.sees("Approve on your phone")
    await visitor.picture("inspector-try-checkout")
    phone = visitor.page.frame_locator(".beside iframe")
    await phone.get_by_role("button", name="Approve").click()
    await visitor.sees("Payment complete")
    assert sandbox.books.payments()[0].status == "completed"


async def test_what_a_page_was_about_may_be_gone_and_so_may_the_sandbox(api: Api, visit: Visit) -> None:
    visitor = await visit()
    with Sandbox(clock=VirtualClock.frozen()) as sandbox:
        payout = Api(sandbox, sandbox.api_key).payout().data["id"]
        await look(visitor, sandbox, f"payouts/{payout}")
        sandbox.reset()
        await shows(visitor, f"no payout '{payout}'")
    await hears(visitor, "The sandbox does not answer")
    assert all("404" in error or "ERR_" in error for error in visitor.errors)
    visitor.errors.clear()
    await visitor.open("about:blank")
    visitor.errors.clear()


async def test_a_request_is_copied_as_curl(busy: Sandbox, visit: Visit) -> None:
    visitor = await visit()
    await visitor.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await look(visitor, busy, lost(busy))
    await visitor.press("Copy as curl")
    await hears(visitor, "does not run")
    await visitor.press("Show account data")
    await shows(visitor, "+22990000000")
    await visitor.press("Copy as curl")
    await hears(visitor, "Copied.")
    copied = await visitor.measure("navigator.clipboard.readText()")
    assert copied.lstrip("# ").count("curl") >= 1
    assert "+22990000000" in copied


async def test_faults_and_clock_take_words_and_say_what_is_wrong_with_them(
    sandbox: Sandbox, api: Api, visit: Visit
) -> None:
    visitor = await visit()
    await look(visitor, sandbox, "faults")
    words = visitor.page.get_by_label("Words")
    await words.fill("lost_respone")
    await visitor.press("Add")
    await hears(visitor, "lost_response")
    await words.fill("lost_response")
    await visitor.page.get_by_label("Reference").fill("r-1")
    await visitor.press("Add")
    await shows(visitor, "reference=r-1")
    assert api.payout(reference="r-1").answer.fault is not None
    await visitor.press("Remove")
    await shows(visitor, "No rules yet")
    await look(visitor, sandbox, "clock")
    await visitor.page.get_by_label("By").fill("2h")
    await visitor.press("Advance")
    await hears(visitor, "Now 2026-01-01 02:00:00")
    assert all("400" in error for error in visitor.errors), "of the misspelt word"
    visitor.errors.clear()


async def test_a_reset_is_asked_about_first(sandbox: Sandbox, api: Api, visit: Visit) -> None:
    visitor, answers = await visit(), ["dismiss", "accept"]
    visitor.page.on("dialog", lambda dialog: getattr(dialog, answers.pop(0))())
    api.payout()
    await look(visitor, sandbox)
    await visitor.press("Reset")
    assert len(sandbox.requests) == 1
    await visitor.press("Reset")
    await shows(visitor, "Nothing has happened yet")
