"""The page of a batch: a real run with faults, watched from its first payouts to its certificate."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from payments_async import AsyncPayments
from payments_async.bulk import PayoutBatch
from payments_async.sandbox import Sandbox, SandboxLimits
from tests.browser.visitor import Visit
from tests.support.batch_pages import GivenFeed, LedgerAddress, serve_page, served, states
from tests.support.batches import items
from tests.support.strangers import nobody_is_known

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

ROWS = 300


async def test_a_run_with_faults_is_watched_to_its_certificate(visit: Visit, tmp_path: Path) -> None:
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
                visitor = await visit(width=1280)
                await visitor.open(shown.link)
                page = visitor.page
                await visitor.sees("june")
                await page.locator("#live").get_by_text("live").wait_for()
                await page.get_by_role("img", name="under way").wait_for()
                await page.get_by_role("cell", name="row-4").wait_for()
                before = await page.locator(".sums").inner_text()
                await page.wait_for_function(
                    "now => document.querySelector('.sums').innerText !== now", arg=before
                )
                for scheme, width in (("dark", 1280), ("light", 390)):
                    await visitor.looks(scheme, width)
                    assert await visitor.violations() == []
                    assert await visitor.measure("document.documentElement.scrollWidth") <= width
                    await visitor.picture(f"batch-paying-{scheme}-{width}")
                sandbox.clear_rules()
                await page.get_by_role("heading", name="Certified").wait_for(timeout=300_000)
                assert (await running).exit_code == 1
                shown.show(None)
                await page.get_by_text("complete, 1 rejected").wait_for()
        assert await visitor.violations() == []
        await page.emulate_media(media="print")
        assert await page.get_by_role("heading", name="Certified").is_visible()
        assert await page.get_by_role("rowheader", name="In excess").is_visible(), "also without any"
        await visitor.picture("batch-certificate-print")
        await page.close()
        visitor.errors.clear()  # of the server that has ended


async def test_a_page_whose_server_is_gone_says_so_and_no_longer_that_it_pays(
    visit: Visit,
) -> None:
    visitor = await visit(width=390)
    page = visitor.page
    async with served(GivenFeed(states()["running"])) as shown:
        await visitor.open(shown.link)
        await page.locator("#live").get_by_text("live").wait_for()
        assert await page.locator("div.pace").is_visible()
    await page.locator("#live").get_by_text("no connection: the command that serves it").wait_for()
    for place in (".pill", "div.pace"):
        assert not await page.locator(place).is_visible()
    assert await visitor.measure("document.documentElement.scrollWidth") <= 390
    assert await visitor.violations() == []
    await page.close()  # it asks again every few seconds
    visitor.errors.clear()  # of the connection that has ended


async def test_where_no_user_is_known_it_keeps_itself_up_to_date_under_the_token(
    visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody_is_known(monkeypatch)
    figures = GivenFeed(states()["running"])
    async with served(figures) as shown:
        visitor = await visit()
        await visitor.open(shown.link)
        await visitor.page.locator("#live").get_by_text("live").wait_for()
        figures.now = states()["complete"]
        await visitor.page.get_by_role("heading", name="Certified").wait_for()
        assert await visitor.page.context.cookies() == []
