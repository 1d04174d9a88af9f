"""Somebody with a browser, and what he sees, does and meets on the way."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import attrs

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page, Route

SHOP = "http://127.0.0.1:9/thanks?order=7"
"""A merchant's page; answered by the visitor's own browser."""

OUTPUT = Path(__file__).parents[2] / "test-output" / "browser"
PATIENCE = 30_000


@attrs.define(eq=False)
class Visitor:
    """A payer. `strayed` holds requests off this machine, `errors` what the console complained of."""

    page: Page
    java_script: bool = True
    strayed: list[str] = attrs.field(factory=list)
    errors: list[str] = attrs.field(factory=list)

    async def open(self, address: str) -> None:
        await self.page.goto(address)

    async def press(self, name: str) -> None:
        """Use the button or link whose name begins so."""
        begins = re.compile(f"^{re.escape(name)}")
        link = self.page.get_by_role("link", name=begins)
        await self.page.get_by_role("button", name=begins).or_(link).first.click()

    async def choose(self, label: str) -> None:
        await self.page.locator(".option", has=self.page.get_by_text(label, exact=True)).click()
        await self.press("Continue")

    async def sees(self, heading: str) -> None:
        """Wait for the page with this heading; its title says the same."""
        await self.page.get_by_role("heading", level=1, name=heading).wait_for(timeout=PATIENCE)
        assert heading in await self.page.title()

    async def pays(
        self, method: str, *, phone: str = "+229 90 00 00 42", country: str | None = "Benin"
    ) -> None:
        """From the session's address to the pressed Pay button."""
        if country is not None:
            await self.choose(country)
        await self.choose(method)
        await self.sees("Check and pay")
        for label, typed in (("Phone number", phone), ("Name on the account", "Ada Lovelace")):
            field = self.page.get_by_label(label)
            if await field.count():
                await field.fill(typed)
        await self.press("Pay ")

    async def elsewhere(self) -> Visitor:
        """Another tab of the same browser."""
        return await _watch(await self.page.context.new_page(), self.java_script)

    async def measure(self, script: str) -> Any:
        return await self.page.evaluate(script)

    async def picture(self, name: str) -> None:
        """Keep what is seen among the test output."""
        OUTPUT.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=OUTPUT / f"{name}.png", full_page=True)


async def _watch(page: Page, java_script: bool) -> Visitor:
    visitor = Visitor(page, java_script)

    async def pass_on(route: Route) -> None:
        address = urlsplit(route.request.url)
        if address.netloc == urlsplit(SHOP).netloc:
            html = "<!doctype html><html lang=en><title>Shop</title><h1>Thanks</h1>"
            await route.fulfill(content_type="text/html", body=html)
        elif address.hostname == "127.0.0.1":
            await route.continue_()
        else:
            visitor.strayed.append(route.request.url)
            await route.abort()

    await page.route("**/*", pass_on)
    page.on("console", lambda said: visitor.errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: visitor.errors.append(str(error)))
    return visitor


@asynccontextmanager
async def visiting(
    browser: Browser, *, width: int = 390, height: int = 844, java_script: bool = True, scheme: str = "light"
) -> AsyncIterator[Visitor]:
    """A visitor with a fresh browser profile, until the block ends."""
    options: dict[str, Any] = {"java_script_enabled": java_script, "color_scheme": scheme}
    context = await browser.new_context(viewport={"width": width, "height": height}, **options)
    context.set_default_timeout(PATIENCE)
    try:
        yield await _watch(await context.new_page(), java_script)
    finally:
        await context.close()
