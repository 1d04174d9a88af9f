"""What a first payout has not imported by the time it is answered: nothing that it does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

FIRST_PAYOUT = """
import asyncio, sys
from payments_async import AsyncPayments, Instrument
from payments_async._http.types import HTTPResponse

class Answering:
    async def send(self, request):
        return HTTPResponse(201, {}, b'{"data": {"id": "po_1", "status": "pending"}}')

    async def aclose(self):
        pass

async def main():
    client = AsyncPayments("sk_sandbox_1", base_url="https://api.test/v1", transport=Answering())
    payout = await client.payouts.create(
        amount=5, currency="GHS", method="mtn_momo_gh", instrument=Instrument.phone("+233241234567", "GH")
    )
    assert payout.status == "pending"

asyncio.run(main())
print(*sys.modules)
"""

UNNEEDED = {
    "only type checkers read them": {"payments_async.arguments"},
    "nobody waits, resolves or lists": {
        "payments_async._polling.waiter",
        "payments_async._polling.list_poller",
        "payments_async._polling.schedule",
        "payments_async._request.resolve",
        "payments_async.models.lists",
    },
    "of payments and their pages": {
        "payments_async.models.payments",
        "payments_async.models.checkouts",
        "payments_async.params.payments",
        "payments_async._validation.payment_tables",
    },
    "for words that few calls need": {"difflib", "fractions"},
}


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    ended = subprocess.run([sys.executable, "-c", FIRST_PAYOUT], capture_output=True, text=True, check=True)
    return set(ended.stdout.split())


@pytest.mark.parametrize("why", UNNEEDED)
def test_a_first_payout_has_not_loaded_what_it_does_not_need(why: str, loaded: set[str]) -> None:
    assert "payments_async._codec.decode" in loaded
    assert loaded.isdisjoint(UNNEEDED[why])
