"""The page of a batch: a real run with faults, watched from its first payouts to its certificate."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from payments_async import AsyncPayments
from payments_async.bulk import PayoutBatch
from payments_async.bulk._page import browser, feed, serve_page
from payments_async.bulk._page.page import served
from payments_async.bulk._texts.ledger_address import LedgerAddress
from payments_async.sandbox import Sandbox, SandboxLimits
from tests.browser.visitor import Visitor
from tests.support.batch_pages import GivenFeed, row, states
from tests.support.batches import items
from tests.support.strangers import nobody_is_known

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

ROWS = 300


async def test_a_run_with_faults_is_watched_to_its_certificate(
    visit: Callable[..., Awaitable[Visitor]], tmp_path: Path
) -> None:
    path = tmp_path / "june.ledger"
    with Sandbox(limits=SandboxLimits.off()) as sandbox:
        sandbox.on("payouts.create", description="row 4").respond("http:422")
        sandbox.on("payouts.create", description="row 5").respond("http:503", times=2)
        sandbox.on("payouts.create").respond("slow:0.3s", times=ROWS)
        async with (
            AsyncPayments(sandbox.api_key, base_url=sandbox.base_url) as client,
            PayoutBatch.open(path, client, batch_id="june") as batch,
        ):
            await batch.load(items(ROWS))
            async with serve_page(LedgerAddress(str(path))) as shown:
                running = asyncio.ensure_future(batch.run(shown.show, concurrency=4))
                visitor = await visit(width=1280, alone=True)
                await visitor.open(shown._access.link(shown._access.new_ticket()))
                page = visitor.page
                await visitor.sees("june")
                assert "token" not in page.url
                await page.locator("#live").get_by_text("live").wait_for()
                await page.get_by_role("img", name="under way").wait_for()
                await page.get_by_role("img", name="rows decided").wait_for()
                await page.get_by_role("link", name="row-4").wait_for()
                before = await page.locator(".sums").inner_text()
                await page.wait_for_function(
                    "now => document.querySelector('.sums').innerText !== now", arg=before
                )
                for scheme, width in (("dark", 1280), ("light", 390)):
                    await visitor.looks(scheme, width)
                    assert await visitor.violations() == []
                    assert await visitor.measure("document.documentElement.scrollWidth") <= width
                    await visitor.picture(f"batch-paying-{scheme}-{width}")

                plain = await visit(java_script=False, alone=True)
                await plain.open(shown._access.link(shown._access.new_ticket()))
                await plain.sees("june")
                assert "anew every 5 seconds" in await plain.page.locator("footer p").first.inner_text()

                await page.get_by_role("link", name="row-4").focus()
                await page.keyboard.press("Enter")
                await visitor.sees("row-4")
                await page.get_by_text("HTTP 422").wait_for()
                assert await visitor.violations() == []
                await page.go_back()
                sandbox.clear_rules()
                await page.get_by_role("heading", name="Certified").wait_for(timeout=300_000)
                assert (await running).exit_code == 1
                shown.show(None)
                await page.locator("#state").get_by_text("complete, 1 rejected").wait_for()
        await page.locator("#live").get_by_text("final").wait_for()
        assert await page.get_by_role("link", name="row-4").count() == 0, "its server is gone"
        assert await visitor.violations() == []
        await page.emulate_media(media="print")
        assert not await page.locator("#charts").is_visible()
        assert await page.get_by_role("heading", name="Certified").is_visible()
        assert await page.get_by_role("rowheader", name="In excess").is_visible(), "also without any"
        await visitor.picture("batch-certificate-print")


async def test_a_page_whose_server_is_gone_says_so_and_no_longer_that_it_pays(
    visit: Callable[..., Awaitable[Visitor]],
) -> None:
    visitor = await visit(width=390, alone=True)
    page = visitor.page
    await page.route("**/events", lambda route: route.abort())
    async with served(GivenFeed(states()["running"])) as shown:
        await visitor.open(shown._access.link(shown._access.new_ticket()))
        await page.locator("#live").get_by_text("no connection: the command that serves it").wait_for()
        assert not await page.locator("#state").is_visible()
        assert not await page.locator(".pace").is_visible()
        assert await visitor.measure("document.documentElement.scrollWidth") <= 390
        assert await visitor.violations() == []
    visitor.errors.clear()  # of the connection that the test cut


async def test_a_page_whose_server_says_nothing_shows_no_pace_until_there_is_news(
    visit: Callable[..., Awaitable[Visitor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "_BEAT", 3600.0)  # as of a process that is suspended
    visitor = await visit(width=1280, alone=True)
    page, hidden = visitor.page, ("#state", ".pace")
    await page.clock.install()
    figures = GivenFeed(states()["running"])
    async with served(figures) as shown:
        await visitor.open(shown._access.link(shown._access.new_ticket()))
        await page.locator("#live").get_by_text("live").wait_for()
        await page.clock.fast_forward(11_000)
        assert await page.locator(".pace").is_visible()
        await page.clock.fast_forward(3_000)
        await page.locator("#live").get_by_text("no news for 14 s").wait_for()
        assert [await page.locator(place).is_visible() for place in hidden] == [False] * 2
        assert await visitor.violations() == []
        await visitor.picture("batch-no-news-light-1280")
        figures.now = states()["currencies"]
        await page.locator("#live").get_by_text("live").wait_for()
        assert [await page.locator(place).is_visible() for place in hidden] == [True] * 2


async def test_where_no_user_is_known_a_file_opens_it_and_all_of_it_works_under_the_secret(
    visit: Callable[..., Awaitable[Visitor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody_is_known(monkeypatch)
    figures = GivenFeed(states()["running"], [row(41)])
    async with served(figures) as shown:
        place = f"{shown.address}{shown._access.rules.root}"
        for has_script in (False, True):
            visitor = await visit(java_script=has_script, alone=True)
            page, opened = visitor.page, asyncio.get_running_loop().create_future()
            monkeypatch.setattr(browser, "_find_browser", lambda: object())

            async def opens(_: object, address: str, opened: asyncio.Future[str] = opened) -> bool:
                opened.set_result(address)
                return True

            monkeypatch.setattr(browser, "_opens", opens)
            opening = asyncio.ensure_future(shown.open())
            await page.goto(await opened)
            if not has_script:
                await page.get_by_role("button").click()
            await page.wait_for_url(f"{place}/")
            assert (await opening)[1]
            await page.get_by_role("link", name="emp-00041").first.click()
            await page.wait_for_url(f"{place}/rows/41")
            await visitor.sees("emp-00041")
            await page.locator("nav a").click()
            await page.wait_for_url(f"{place}/")
            if has_script:
                await page.locator("#live").get_by_text("live").wait_for()
                figures.now = states()["complete"]
                await page.get_by_role("heading", name="Certified").wait_for()
            assert await page.context.cookies() == []
