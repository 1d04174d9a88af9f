"""How every page looks, and to whom: `python -m tests.campaigns.screens [PART ...]`.

Follows the links of a sandbox where everything has happened and of an empty one, and goes through each state
of the checkout, in English and Arabic, and of a batch's page. One page of each kind is looked at in light and
dark, 390 to 1440 wide, and as it is printed: axe finds what somebody cannot read, and a picture goes to
test-output/screens. The exit code is 1 when something was found.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from payments_async.bulk._page.page import served
from payments_async.sandbox import Sandbox, VirtualClock
from tests.browser.conftest import ARGUMENTS, find_chromium
from tests.browser.test_checkout_states import OVERFLOW, STATES
from tests.browser.visitor import FOUND
from tests.campaigns.page_weights import kind_of, lived, pages
from tests.sandbox.checkout.test_pages import Payer
from tests.sandbox.raw_requests import Api
from tests.support.batch_pages import GivenFeed, states

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

OUTPUT = Path(__file__).parents[2] / "test-output" / "screens"
PAPER = 680
"""Pixels between the margins of A4."""
VIEWS = [(scheme, width) for scheme in ("light", "dark") for width in (390, 768, 1280, 1440)]


def main() -> int:
    """1 when something was found."""
    return asyncio.run(_look(sys.argv[1:]))


async def _look(parts: list[str]) -> int:
    found = 0
    async with AsyncExitStack() as stack:
        places = {**_inspector(stack), **_checkout(stack), **await _batch(stack)}
        wanted = {
            name: url for name, url in places.items() if not parts or any(part in name for part in parts)
        }
        async with _browser() as browser:
            for name, address in wanted.items():
                for locale in ("en", "ar") if name.startswith("checkout") else ("en",):
                    faults = await _at(browser, f"{name} {locale}", address, locale)
                    found += len(faults)
                    print(f"{name + ' ' + locale:<48} {'; '.join(faults) or 'ok'}", flush=True)
    print(f"{len(wanted)} pages, {len(VIEWS) + 1} pictures of each in {OUTPUT}, {found} faults")
    return int(bool(found))


async def _batch(stack: AsyncExitStack) -> Mapping[str, str]:
    """Each state of a batch's page."""
    places = {}
    for name, state in states().items():
        page = await stack.enter_async_context(served(GivenFeed(state)))
        places[f"batch {name}"] = page.link
    return places


def _inspector(stack: AsyncExitStack) -> Mapping[str, str]:
    """A page of each kind where everything has happened twelve times, and those of an empty sandbox."""
    places: dict[str, str] = {}
    for name, times in (("busy", 12), ("empty", 0)):
        sandbox = stack.enter_context(Sandbox(clock=VirtualClock.frozen()))
        for path, _ in pages(sandbox, lived(sandbox, times) if times else ["/_sandbox/"]):
            if path.startswith("/_sandbox/"):
                kind = kind_of(path.removeprefix("/_sandbox/")).replace("/-", "/one")
                places.setdefault(f"{name} {kind}".strip(), sandbox.origin + path)
    return places


def _checkout(stack: AsyncExitStack) -> Mapping[str, str]:
    """Each state of the checkout."""
    places = {}
    for name, state in STATES.items():
        sandbox = stack.enter_context(Sandbox(clock=VirtualClock.frozen()))
        api = Api(sandbox, sandbox.api_key)
        metadata = {"sandbox_scenario": state.scenario} if state.scenario else None
        payer = Payer(api, api.checkout(**{**state.body, "metadata": metadata}).data["checkout"]["id"])
        state.act(payer)
        places[f"checkout {name}"] = sandbox.origin + payer.path(state.part)
    return places


@asynccontextmanager
async def _browser() -> AsyncIterator[Browser]:
    from playwright.async_api import async_playwright

    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        yield browser
        await browser.close()


async def _at(browser: Browser, name: str, address: str, locale: str) -> list[str]:
    """Look at a page in each view; gives what is wrong with it."""
    faults: list[str] = []
    page = await browser.new_page(locale=locale)
    page.on("pageerror", lambda error: faults.append(f"script: {error}"))
    for scheme, width in VIEWS:
        chosen: Any = {"color_scheme": scheme, "reduced_motion": "reduce"}
        await page.emulate_media(**chosen)
        await page.set_viewport_size({"width": width, "height": 844})
        await page.goto(address)
        await page.locator("h1").first.wait_for()
        faults += [f"{scheme} {width}: {fault}" for fault in await _faults(page)]
        file = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        await page.screenshot(path=OUTPUT / f"{file}-{scheme}-{width}.png", full_page=True)
    await page.emulate_media(media="print")
    await page.set_viewport_size({"width": PAPER, "height": 844})
    await page.screenshot(path=OUTPUT / f"{file}-print.png", full_page=True)
    await page.close()
    return faults


async def _faults(page: Page) -> list[str]:
    from axe_playwright_python.base import AXE_SCRIPT  # type: ignore[import-untyped]  # it has none

    await page.evaluate(AXE_SCRIPT)
    found = [f"{rule} {html}" for rule, html in await page.evaluate(FOUND, {})]
    wider = await page.evaluate(OVERFLOW)
    return found + [f"{wider} px too wide"] * (wider > 0)


if __name__ == "__main__":
    sys.exit(main())
