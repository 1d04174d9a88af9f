"""A browser of the session's own (each xdist worker its own); each visitor has a profile of it.

The browser is Debian's chromium, at `CHROMIUM` or on the path; playwright drives it and downloads none.
Without one these tests are skipped, and fail where `CI` is `true`: what CI has not looked at is not known to
work.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from aiohttp import web

from payments_async._loopback import listen
from payments_async.sandbox import Sandbox, VirtualClock
from tests.browser.sales import Sale
from tests.browser.visitor import SHOP, Visitor, Visitors
from tests.sandbox.raw_requests import Api

if TYPE_CHECKING:
    from playwright.async_api import Browser

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    # no site has a process of its own: they are ours alone, and half of them did little but start
    "--disable-site-isolation-trials",
    "--renderer-process-limit=1",
    "--in-process-gpu",
]


def find_chromium() -> str:
    """Where the browser is; skips the test when there is none, fails it in CI."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if found:
        return found
    message = "no chromium: install Debian's `chromium`, or set CHROMIUM to its path"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests of a worker."""
    path = find_chromium()
    playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
    async with playwright.async_playwright() as driver, merchant() as port:
        hosts = f"MAP shop.test:80 127.0.0.1:{port}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        arguments = [*ARGUMENTS, f"--host-resolver-rules={hosts}"]
        launched = await driver.chromium.launch(executable_path=path, args=arguments)
        yield launched
        await launched.close()


@asynccontextmanager
async def merchant(part: str = "<h1>Thanks</h1>") -> AsyncIterator[int]:
    """A merchant's page with this in it; gives the port."""
    head = '<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>Shop</title>'

    async def show(_: web.BaseRequest) -> web.Response:
        return web.Response(text=head + part, content_type="text/html")

    runner = web.ServerRunner(web.Server(show), shutdown_timeout=0.1)
    await runner.setup()
    listener = listen(None)
    try:
        await web.SockSite(runner, listener).start()
        yield listener.getsockname()[1]
    finally:
        await runner.cleanup()


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
    """Makes visitors: `await visit(width=320, java_script=False)`.

    At the end none of them may have seen an error on the console, or have asked another host for anything.
    """
    visitors = Visitors(browser)
    yield visitors.arrive
    await visitors.leave()


@pytest.fixture
def sell(sandbox: Sandbox, api: Api) -> Callable[..., Sale]:
    """`sell(scenario)` makes a session over 50 XOF."""

    def make(scenario: str | None = None, **fields: Any) -> Sale:
        extra = {"metadata": {"sandbox_scenario": scenario}} if scenario else {}
        body = {"appearance": {"brand": "Ada"}, "return_url": SHOP, **extra, **fields}
        made = api.checkout(**body).data["checkout"]
        return Sale(sandbox, made["id"], made["url"])

    return make
