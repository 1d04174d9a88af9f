"""A batch watched live: the inspector and the batch's page open in a browser while it is paid.

    python -m tests.campaigns.live_pages [ROWS]

Says how long it takes from an event to the screen, what the pages hold in memory at the end, when each
painted first, and the speed of the run beside the same run without a browser. Exits 1 when a payout is
missing or a page has shown a wrong number at the end.
"""

from __future__ import annotations

import asyncio
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from payments_async.bulk._page import address_file
from payments_async.sandbox import Sandbox
from tests.browser.conftest import ARGUMENTS, find_chromium
from tests.support.payout_command import COMMAND, environment_of, payouts_file

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

WATCH_LOG = """() => {
  window.seen = {};
  const look = () => {
    for (const link of document.querySelectorAll('.log a[href*="/requests/"]')) {
      const id = link.getAttribute('href').split('/').pop();
      if (!(id in window.seen)) window.seen[id] = Date.now();
    }
  };
  new MutationObserver(look).observe(document.body, {subtree: true, childList: true});
}"""
WATCH_BATCH = """() => {
  window.shown = [];
  const look = () => {
    const said = [...document.querySelectorAll('.key li')].map((it) => it.textContent);
    const sum = said.filter((it) => /arrived|not final|failed|rejected|conflict/.test(it))
      .reduce((all, it) => all + Number(it.replace(/[^0-9]/g, '')), 0);
    const last = window.shown[window.shown.length - 1];
    if (said.length && (!last || last[1] !== sum)) window.shown.push([Date.now(), sum]);
  };
  new MutationObserver(look).observe(document.body, {subtree: true, childList: true});
}"""
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


async def main(rows: int) -> int:
    """1 when a payout is missing, or a page was wrong at the end."""
    from playwright.async_api import async_playwright

    with tempfile.TemporaryDirectory() as folder:
        alone = await _run(Path(folder), rows, None)
        async with async_playwright() as driver:
            browser = await driver.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
            watched = await _run(Path(folder), rows, browser)
            await browser.close()
    print(f"run            {alone:6.1f} s alone, {watched:.1f} s watched")
    return 0


async def _run(folder: Path, rows: int, browser: Browser | None) -> float:
    """Pay a file, and give the seconds that it took."""
    name = "watched" if browser else "alone"
    source, ledger = payouts_file(folder, rows, name=f"{name}.csv"), folder / f"{name}.ledger"
    with Sandbox() as sandbox:
        inspector = (
            None if browser is None else await _watch(browser, f"{sandbox.origin}/_sandbox/", WATCH_LOG)
        )
        began = asyncio.get_running_loop().time()
        paying = await asyncio.create_subprocess_exec(
            *(*COMMAND, "run", str(source), "--ledger", str(ledger), "--json"),
            stdout=asyncio.subprocess.DEVNULL,
            env={**os.environ, **environment_of(sandbox)},
        )
        batch = None if browser is None else await _batch_page(browser, str(ledger), paying)
        code = await paying.wait()
        took = asyncio.get_running_loop().time() - began
        paid = len(sandbox.books.payouts())
        assert (code, paid) == (0, rows), (code, paid)
        if inspector is not None and batch is not None:
            await _say(sandbox, inspector, batch, rows)
    return took


async def _watch(browser: Browser, address: str, script: str) -> Page:
    page = await (
        await browser.new_context()
    ).new_page()  # a window of its own: a hidden page does not listen
    await page.goto(address)
    await page.evaluate(script)
    return page


async def _batch_page(browser: Browser, ledger: str, paying: asyncio.subprocess.Process) -> Page:
    opened = None
    while opened is None:
        assert paying.returncode is None, "the run ended before its page was open"
        opened = await address_file.ask_running(ledger, paying.pid, "/api/open")
        await asyncio.sleep(0.02)
    return await _watch(browser, opened["url"], WATCH_BATCH)


async def _say(sandbox: Sandbox, inspector: Page, batch: Page, rows: int) -> None:
    """Print the figures of both pages."""
    arrived = {log.request_id: log.at for log in sandbox.requests if log.operation == "payouts.create"}
    seen: dict[str, float] = await inspector.evaluate("window.seen")
    _print_lags("inspector", [at / 1000 - arrived[one] for one, at in seen.items() if one in arrived])
    times = sorted(arrived.values())
    await batch.wait_for_function(f"window.shown.at(-1)?.[1] >= {rows}")
    shown: list[tuple[float, int]] = await batch.evaluate("window.shown")
    lags = [at / 1000 - times[min(count, len(times)) - 1] for at, count in shown if count]
    _print_lags("batch page", lags)
    assert shown[-1][1] == rows, shown[-1]
    for name, page in (("inspector", inspector), ("batch page", batch)):
        painted = await page.evaluate(FIRST_PAINT)
        print(f"{name:<14} first paint {painted:.0f} ms, {await _heap(page):.1f} MB of JavaScript at the end")
    print(f"{'sandbox':<14} {_resident():.0f} MB resident with this campaign")


def _print_lags(name: str, lags: Sequence[float]) -> None:
    lags = sorted(lags)
    worst = lags[max(0, math.ceil(0.95 * len(lags)) - 1)]
    print(
        f"{name:<14} event to screen: median {statistics.median(lags) * 1000:.0f} ms, "
        f"95 % within {worst * 1000:.0f} ms ({len(lags)} seen)"
    )


async def _heap(page: Page) -> float:
    session = await page.context.new_cdp_session(page)
    await session.send("HeapProfiler.enable")
    await session.send("HeapProfiler.collectGarbage")
    usage: dict[str, Any] = await session.send("Runtime.getHeapUsage")
    return float(usage["usedSize"]) / 1e6


def _resident() -> float:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1e3


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 12_000)))
