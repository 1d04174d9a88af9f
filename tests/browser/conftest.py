"""A browser of the session's own (each xdist worker its own), and visitors with nothing in common.

The browser is Debian's chromium, at `CHROMIUM` or on the path; playwright drives it and downloads none.
Without one these tests are skipped, and fail where `CI` is `true`: what CI has not looked at is not known to
work.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from payments_async.sandbox import Sandbox, VirtualClock
from tests.browser.visitor import Visitor, visiting
from tests.sandbox.api import Api

if TYPE_CHECKING:
    from playwright.async_api import Browser

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def find_chromium() -> str:
    """Where the browser is; skips the test when there is none, fails it in CI."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if found:
        return found
    told = "no chromium: install Debian's `chromium`, or set CHROMIUM to its path"
    if os.environ.get("CI") == "true":
        pytest.fail(told)
    pytest.skip(told)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests of a worker."""
    path = find_chromium()
    playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
    async with playwright.async_playwright() as driver:
        launched = await driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield launched
        await launched.close()


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A serving sandbox on a clock that stands still until it is advanced."""
    with Sandbox(clock=VirtualClock.frozen()) as serving:
        yield serving


@pytest.fixture
def api(sandbox: Sandbox) -> Api:
    """The merchant."""
    return Api(sandbox, sandbox.api_key)


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser: Browser) -> AsyncIterator[Callable[..., Awaitable[Visitor]]]:
    """Makes visitors, each with a browser profile of its own: `await visit(width=320, java_script=False)`.

    At the end none of them may have seen an error on the console, or have asked another host for anything.
    """
    visitors: list[Visitor] = []
    async with AsyncExitStack() as stack:

        async def arrive(**options: Any) -> Visitor:
            visitor = await stack.enter_async_context(visiting(browser, **options))
            visitors.append(visitor)
            return visitor

        yield arrive
    for visitor in visitors:
        assert visitor.strayed == []
        assert visitor.errors == []
