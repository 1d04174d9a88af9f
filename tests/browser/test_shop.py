"""The example shop from end to end: a payer with a browser, the hosted checkout, and the webhook."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
import pytest_asyncio

from payments_async._runtime import SystemRuntime, Timer
from payments_async.sandbox import Sandbox, VirtualClock
from tests.browser.visitor import BROWSER, Visitor
from tests.support.shop import shop_beside

pytestmark = BROWSER

Served = tuple[Any, str]
VisitBy = Callable[..., Awaitable[Visitor]]

SPEED = 10
"""Of the shop's and the sandbox's time: its receiver leaves five seconds between two looks at one payment."""


class Hurried(SystemRuntime):
    """The machine's time, `SPEED` times as fast."""

    def __init__(self) -> None:
        super().__init__()
        real = self.monotonic
        self.monotonic = lambda: real() * SPEED

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / SPEED)

    def call_later(self, delay: float, callback: Callable[[], object], *, background: bool = False) -> Timer:
        return super().call_later(delay / SPEED, callback, background=background)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A sandbox at the shop's time."""
    with Sandbox(clock=VirtualClock(speed=SPEED)) as sandbox:
        yield sandbox


@pytest_asyncio.fixture(loop_scope="session")
async def served(sandbox: Sandbox) -> AsyncIterator[Served]:
    """The shop, and where it is."""
    async with shop_beside(sandbox, Hurried()) as served:
        yield served


async def test_a_payer_pays_and_the_order_is_paid(sandbox: Sandbox, served: Served, visit: VisitBy) -> None:
    _, address = served
    payer = await visit()
    await payer.looks("dark", 320)
    await payer.open(address)
    assert await payer.violations() == []
    assert await payer.measure("document.documentElement.scrollWidth") <= 320
    await payer.press("Buy")
    await payer.page.locator("img.icon").wait_for()
    assert await payer.measure("document.querySelector('img.icon').naturalWidth") > 0, "the shop's logo"
    await payer.pays("Online banking", country="Ghana")
    await payer.sees("Continue at your bank")
    await payer.press("Continue to the bank")
    await payer.press("Approve")
    await payer.sees("Payment complete")
    await payer.press("Return to")
    await payer.page.wait_for_url(re.compile("/orders/"))
    await payer.sees("Paid")  # the order's page looks again until the webhook has come
    await payer.page.locator("#service-side").get_by_text("Completed", exact=True).wait_for()
    await payer.page.locator("#shop-side").get_by_text("Proves nothing").wait_for()
    assert await payer.violations() == []
    assert await payer.measure("document.documentElement.scrollWidth") <= 320
    await payer.looks("light", 1280)
    assert await payer.violations("color-contrast") == []
    assert len(sandbox.books.payments(status="completed")) == 1
