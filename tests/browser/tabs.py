"""The browser's tabs, used again by the next visitor: making one takes longer than most of what he does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page

PATIENCE = 300_000
"""Milliseconds that anything may take on a loaded machine."""


@attrs.define(eq=False)
class Tabs:
    """Tabs with JavaScript and tabs without, each kind in one profile: the pages here keep nothing in it."""

    browser: Browser
    _profiles: dict[bool, BrowserContext] = attrs.field(factory=dict)
    _idle: dict[bool, list[Page]] = attrs.field(factory=lambda: {True: [], False: []})

    async def take(self, java_script: bool) -> Page:
        """A tab that shows nothing."""
        if self._idle[java_script]:
            return self._idle[java_script].pop()
        if java_script not in self._profiles:
            self._profiles[java_script] = await self.profile(java_script)
        return await self._profiles[java_script].new_page()

    async def put_back(self, page: Page, java_script: bool) -> None:
        """The visitor is gone, and nothing of him stays."""
        if page.is_closed():
            return
        await page.unroute_all(behavior="ignoreErrors")
        await page.goto("about:blank")
        await page.context.clear_permissions()
        assert not (kept := await page.context.cookies()), kept
        self._idle[java_script].append(page)

    async def profile(self, java_script: bool = True) -> BrowserContext:
        """A profile of one's own, for what cannot be undone: a set clock, a broken line."""
        made = await self.browser.new_context(java_script_enabled=java_script)
        made.set_default_timeout(PATIENCE)
        return made
