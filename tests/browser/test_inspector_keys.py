"""Keys of the inspector: go anywhere, search, walk through the rows, open one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from payments_async.sandbox import Sandbox
from tests.browser.test_inspector import look
from tests.browser.visitor import BROWSER, Visitor
from tests.sandbox.raw_requests import Api

pytestmark = BROWSER

Visit = Callable[..., Awaitable[Visitor]]


async def test_a_search_is_made_and_its_rows_are_walked_by_keys(
    sandbox: Sandbox, api: Api, visit: Visit
) -> None:
    for number in range(3):
        api.payout(reference=f"june-{number}")
    api.payout(reference="july", scenario="http:503")
    visitor = await visit(width=1280)
    page, keys = visitor.page, visitor.page.keyboard
    await look(visitor, sandbox)
    await keys.press("?")
    await page.get_by_role("dialog", name="Keys").wait_for()
    assert await visitor.violations() == []
    await keys.press("Escape")
    await page.get_by_role("dialog").wait_for(state="hidden")

    # they can be turned off, on the next page too, and on again
    switch, is_idle = page.get_by_label("single-character"), "!document.querySelector('dialog').open"
    await page.get_by_role("button", name="Keys").click()
    await switch.uncheck()
    await page.get_by_role("button", name="Close").click()
    await look(visitor, sandbox)
    for key in "j/?":
        await keys.press(key)
    assert await visitor.measure(f"{is_idle} && document.activeElement.tagName") == "BODY"
    await page.get_by_role("button", name="Keys").click()
    await switch.check()
    await keys.press("Escape")

    await keys.press("/")
    assert await visitor.measure("document.activeElement.id") == "find"
    await keys.type("-status:503 is:request")
    await keys.press("Enter")
    await page.wait_for_url("**find=-status**")
    await page.wait_for_selector("#live[data-state=on]")
    assert await page.locator(".log li.request").count() == 3

    # rows
    reached = "document.activeElement.closest('li')?.innerText.match(/june-\\d/)?.[0]"
    for key, expected in (
        ("j", "june-2"),
        ("j", "june-1"),
        ("j", "june-0"),
        ("j", "june-0"),
        ("k", "june-1"),
    ):
        await keys.press(key)
        assert await visitor.measure(reached) == expected
    assert await visitor.measure("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    # newer rows push it off the page: the next key goes on at its place, not at the top
    for number in range(30):
        api.payout(reference=f"newer-{number}")
    await page.locator("#main:focus").wait_for()
    await page.locator(".log li.request").first.filter(has_text="newer-29").wait_for()
    await keys.press("j")
    row = "[...document.querySelectorAll('.log li:not(.day)')].indexOf(document.activeElement.closest('li'))"
    assert await visitor.measure(row) == 1
    await keys.press("Escape")
    assert await visitor.measure("document.activeElement.tagName") == "BODY"
    await keys.press("j")
    await keys.press("Enter")
    await page.wait_for_url("**/requests/*")


async def test_ctrl_k_goes_to_a_page_a_record_or_a_search(sandbox: Sandbox, api: Api, visit: Visit) -> None:
    made = api.payout(reference="june-7").data["id"]
    visitor = await visit(width=1280)
    keys = visitor.page.keyboard
    await look(visitor, sandbox, "payments")
    for text, press, address in (
        ("lim", "Enter", "**/_sandbox/limits"),
        ("june", "Enter", "**/_sandbox/payouts?name=june*"),
        ("june", "ArrowUp Enter", "**/_sandbox/?find=june"),
        (made, "Enter", f"**/_sandbox/payouts/{made}"),
    ):
        await keys.press("Control+k")
        await visitor.page.get_by_role("dialog", name="Go to anything").wait_for()
        await keys.type(text)
        if text == "lim":
            assert await visitor.violations() == []
            await visitor.picture("inspector-go-to")
        for key in press.split():
            await keys.press(key)
        await visitor.page.wait_for_url(address)
        await visitor.page.wait_for_selector("#live[data-state=on]")
    await visitor.page.get_by_role("button", name="Go to").click()
    await visitor.page.get_by_role("dialog", name="Go to anything").wait_for()


async def test_keys_work_in_a_browser_that_keeps_nothing(sandbox: Sandbox, visit: Visit) -> None:
    visitor = await visit(alone=True)
    forbid = "{ get() { throw new DOMException('denied', 'SecurityError'); } }"
    await visitor.page.add_init_script(f"Object.defineProperty(window, 'localStorage', {forbid})")
    await look(visitor, sandbox)
    await visitor.page.get_by_role("button", name="Keys").click()
    await visitor.page.get_by_role("dialog", name="Keys").wait_for()
