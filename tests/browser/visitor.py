"""Somebody with a browser, and what he sees, does and meets on the way."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import attrs
import pytest

if TYPE_CHECKING:
    from playwright.async_api import Browser, ConsoleMessage, Page, Request

PATIENCE = 300_000
"""Milliseconds that anything may take on a loaded machine."""

BROWSER = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]
"""Marks of a module's tests. What they run is covered without them."""

SHOP = "http://shop.test/thanks?order=7"
"""A merchant's page; the browser knows where on this machine it is (`conftest`)."""

ASKED = "How would you like to pay?"
"""The heading of the page where everything is chosen and paid."""

HOSTS = ("127.0.0.1", "shop.test")

OUTPUT = Path(__file__).parents[2] / "test-output" / "browser"

FOUND = """options => axe.run({resultTypes: ['violations'], selectors: false, ...options})
    .then(found => found.violations.map(one => [one.id, one.nodes[0].html]))"""


@attrs.define(eq=False, slots=False)  # without slots: playwright notes its listeners in their object
class Visitor:
    """A payer. `strayed` holds requests off this machine, `errors` what the console complained of."""

    page: Page
    others: Visitors = attrs.field(repr=False)
    java_script: bool = True
    strayed: list[str] = attrs.field(factory=list)
    errors: list[str] = attrs.field(factory=list)

    def asked(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme in ("http", "https", "ws", "wss") and address.hostname not in HOSTS:
            self.strayed.append(request.url)

    def heard(self, said: ConsoleMessage) -> None:
        if said.type == "error":
            self.errors.append(said.text)

    def failed(self, error: Exception) -> None:
        self.errors.append(str(error))

    async def open(self, address: str) -> None:
        await self.page.goto(address)

    async def press(self, name: str) -> None:
        """Use the button or link whose name begins so."""
        begins = re.compile(f"^{re.escape(name)}")
        link = self.page.get_by_role("link", name=begins)
        await self.page.get_by_role("button", name=begins).or_(link).first.click()

    async def choose(self, label: str) -> None:
        """Choose a way to pay, which opens its fields."""
        await self.page.get_by_text(label, exact=True).click()

    async def sees(self, heading: str) -> None:
        """Wait for the page with this heading; its title says the same."""
        await self.page.get_by_role("heading", level=1, name=heading, exact=True).wait_for()
        assert heading in await self.page.title()

    async def confirms(self, phone: str) -> None:
        """Type what the method needs, and pay."""
        await self.sees(ASKED)
        for label, typed in (("Phone number", phone), ("Name on the account", "Ada Lovelace")):
            field = self.page.get_by_label(label).and_(self.page.locator(":checked ~ .more input"))
            if await field.count():
                await field.fill(typed)
        if await self.page.locator("#sandbox_card-number").is_visible():
            await self.practises()
        await self.press("Pay ")

    async def practises(self, outcome: str = "Paid") -> None:
        """Choose a test card."""
        cards = self.page.get_by_label("Card number")
        await cards.select_option(await cards.get_by_text(outcome).inner_text())

    async def elsewhere(self) -> Visitor:
        """Another tab of the same browser."""
        return await self.others.arrive(java_script=self.java_script)

    async def looks(self, scheme: str, width: int, height: int = 900) -> None:
        """From here on with this colour scheme and window."""
        # without transitions, which would be in the picture
        chosen: Any = {"color_scheme": scheme, "reduced_motion": "reduce"}
        await self.page.emulate_media(**chosen)
        await self.page.set_viewport_size({"width": width, "height": height})

    async def measure(self, script: str) -> Any:
        return await self.page.evaluate(script)

    async def violations(self, *rules: str) -> list[tuple[str, str]]:
        """What axe finds on the page, by rule and first element; of these rules alone, if any are named.

        axe is loaded once a page, and says no more than that: its whole report takes longer than it does.
        """
        from axe_playwright_python.base import AXE_SCRIPT  # type: ignore[import-untyped]  # it has none

        if not await self.measure("'axe' in window"):
            await self.measure(AXE_SCRIPT)
        found = await self.page.evaluate(FOUND, {"runOnly": rules} if rules else {})
        return [(rule, html) for rule, html in found]

    async def picture(self, name: str) -> None:
        """Keep what is seen among the test output."""
        OUTPUT.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=OUTPUT / f"{name}.png", full_page=True)


@attrs.define(eq=False)
class Visitors:
    """Who comes during one test."""

    browser: Browser
    all: list[Visitor] = attrs.field(factory=list)

    async def arrive(
        self,
        *,
        width: int = 390,
        height: int = 844,
        java_script: bool = True,
        scheme: str = "light",
    ) -> Visitor:
        """A visitor, with a browser profile that ends with him."""
        profile = await self.browser.new_context(java_script_enabled=java_script)
        profile.set_default_timeout(PATIENCE)
        page = await profile.new_page()
        visitor = Visitor(page, self, java_script)
        self.all.append(visitor)
        page.on("request", visitor.asked)
        page.on("console", visitor.heard)
        page.on("pageerror", visitor.failed)
        await visitor.looks(scheme, width, height)
        await page.emulate_media(reduced_motion="no-preference")
        return visitor

    async def leave(self) -> None:
        """All go; none of them may have seen an error on the console, or have asked another host."""
        for visitor in self.all:
            await visitor.page.context.close()
        assert not (strayed := [address for visitor in self.all for address in visitor.strayed]), strayed
        assert not (errors := [error for visitor in self.all for error in visitor.errors]), errors
