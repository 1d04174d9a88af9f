"""The page of a batch: a real run with faults, watched from its first payouts to its certificate."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from payments_async._cli._exit_codes import Exit
from payments_async.bulk._page import feed
from payments_async.bulk._page.address_file import ask_running
from payments_async.bulk._page.ticket_form import ticket_form
from payments_async.sandbox import Sandbox, SandboxLimits
from tests.browser.visitor import Visitor
from tests.support.batch_pages import GivenSource, row, served, states
from tests.support.payout_command import environment_of, payouts_file, started, until
from tests.support.strangers import nobody_is_known

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

ROWS = 300


async def test_a_run_with_faults_is_watched_to_its_certificate(
    visit: Callable[..., Awaitable[Visitor]], tmp_path: Path
) -> None:
    payouts_file(tmp_path, ROWS)
    with Sandbox(limits=SandboxLimits.off()) as sandbox:
        sandbox.on("payouts.create", amount="4.07").respond("http:422")
        sandbox.on("payouts.create", amount="5.07").respond("http:503", times=2)
        sandbox.on("payouts.create").respond("slow:0.3s", times=ROWS)
        arguments = ("run", "june.csv", "--concurrency", "4")
        with started(environment_of(sandbox), *arguments, cwd=tmp_path) as run:
            await asyncio.to_thread(until, run, 1)

            async def link() -> str:
                found = await ask_running(str(tmp_path / "june.csv.ledger"), run.pid, "/api/open")
                assert found is not None
                return str(found["url"])

            visitor = await visit(width=1280, alone=True)
            await visitor.open(await link())
            page = visitor.page
            await visitor.sees("june.csv")
            assert "token" not in page.url
            await page.locator("#live").get_by_text("live").wait_for()
            await page.get_by_role("img", name="under way").wait_for()
            await page.get_by_role("img", name="payouts a second while").wait_for()
            await page.get_by_role("link", name="r4").wait_for()
            await page.get_by_text("As a table").click()  # and it stays open when the figures change
            before = await page.locator(".sums").inner_text()
            await page.wait_for_function(
                "now => document.querySelector('.sums').innerText !== now", arg=before
            )
            assert await page.get_by_role("cell", name="no answer").is_visible()
            for scheme, width in (("dark", 1280), ("light", 390)):
                await visitor.looks(scheme, width)
                assert await visitor.violations() == []
                assert await visitor.measure("document.documentElement.scrollWidth") <= width
                await visitor.picture(f"batch-paying-{scheme}-{width}")

            plain = await visit(java_script=False, alone=True)
            await plain.open(await link())
            await plain.sees("june.csv")
            assert "anew every 5 seconds" in await plain.page.locator("footer p").first.inner_text()

            await page.get_by_role("link", name="r4").focus()
            await page.keyboard.press("Enter")
            await visitor.sees("r4")
            await page.locator(".timeline").get_by_text("422").wait_for()
            assert await visitor.violations() == []
            await page.go_back()
            sandbox.clear_rules()
            await page.get_by_role("heading", name="Certified").wait_for(timeout=300_000)
            assert await page.locator("#state").inner_text() == "complete, 1 rejected"
            await page.locator("#live").get_by_text("final").wait_for()
            assert await page.get_by_role("link", name="r4").count() == 0  # its server is gone
            assert await visitor.violations() == []
            await page.emulate_media(media="print")
            assert not await page.locator("#charts").is_visible()
            assert await page.get_by_role("heading", name="Certified").is_visible()
            assert await page.get_by_role("rowheader", name="In excess").is_visible(), "also without any"
            await visitor.picture("batch-certificate-print")
            await asyncio.to_thread(run.communicate, timeout=300)
        assert run.returncode == Exit.REFUSED


async def test_a_page_whose_run_is_gone_says_so_and_no_longer_that_it_pays(
    visit: Callable[..., Awaitable[Visitor]],
) -> None:
    visitor = await visit(width=390, alone=True)
    page = visitor.page
    await page.route("**/events", lambda route: route.abort())
    async with served(GivenSource(states()["running"])) as server:
        await visitor.open(server.access.new_address())
        await page.locator("#live").get_by_text("no connection: the run may have ended").wait_for()
        assert not await page.locator("#state").is_visible()
        assert not await page.locator(".pace").is_visible()
        assert await visitor.measure("document.documentElement.scrollWidth") <= 390
        assert await visitor.violations() == []
    visitor.errors.clear()  # of the connection that the test cut


async def test_a_page_whose_run_says_nothing_shows_no_pace_until_there_is_news(
    visit: Callable[..., Awaitable[Visitor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "_BEAT", 3600.0)  # as of a process that is suspended
    visitor = await visit(width=1280, alone=True)
    page, hidden = visitor.page, ("#state", ".pace", ".left")
    await page.clock.install()
    async with served(GivenSource(states()["running"])) as server:
        await visitor.open(server.access.new_address())
        await page.locator("#live").get_by_text("live").wait_for()
        await page.clock.fast_forward(11_000)
        assert await page.locator(".pace").is_visible()
        await page.clock.fast_forward(3_000)
        await page.locator("#live").get_by_text("no news for 14 s").wait_for()
        assert [await page.locator(place).is_visible() for place in hidden] == [False] * 3
        assert await visitor.violations() == []
        await visitor.picture("batch-no-news-light-1280")
        server.feed.changed()
        await page.locator("#live").get_by_text("live").wait_for()
        assert [await page.locator(place).is_visible() for place in hidden] == [True] * 3


async def test_where_no_user_is_known_a_file_opens_it_and_all_of_it_works_under_the_secret(
    visit: Callable[..., Awaitable[Visitor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody_is_known(monkeypatch)
    source = GivenSource(states()["running"], {"41": row(41)})
    async with served(source) as server:
        place = f"{server.access.origin}{server.access.rules.root}"
        for has_script in (False, True):
            visitor = await visit(java_script=has_script, alone=True)
            page = visitor.page
            with ticket_form(server.access.new_address()) as file:
                await page.goto(file)
                if not has_script:
                    await page.get_by_role("button").click()
                await page.wait_for_url(f"{place}/")
            await page.get_by_role("link", name="emp-00041").first.click()
            await page.wait_for_url(f"{place}/rows/41")
            await visitor.sees("emp-00041")
            await page.locator("nav a").click()
            await page.wait_for_url(f"{place}/")
            if has_script:
                await page.locator("#live").get_by_text("live").wait_for()
                source.now = states()["complete"]
                server.feed.changed()
                await page.get_by_role("heading", name="Certified").wait_for()
            assert await page.context.cookies() == []
