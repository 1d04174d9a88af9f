"""A batch of three rows, one of them rejected, and its page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from payments_async.bulk._page import BatchPage, serve_page
from payments_async.bulk._texts.ledger_address import LedgerAddress
from payments_async.sandbox import Sandbox
from tests.support.batches import items
from tests.support.desks import Pay
from tests.support.one_surface import surface as surface


@pytest_asyncio.fixture
async def ledger(pay: Pay, service: Sandbox, place: Path | str) -> LedgerAddress:
    service.on("payouts.create", description="row 2").respond("http:422")
    await pay(items(3))
    return LedgerAddress(str(place), "batch")


@pytest_asyncio.fixture
async def page(ledger: LedgerAddress) -> AsyncIterator[BatchPage]:
    async with serve_page(ledger) as page:
        yield page
