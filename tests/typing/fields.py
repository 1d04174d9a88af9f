# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
"""Fields of objects given as dicts: a name that does not exist is an error for mypy and for pyright.

Never run, only checked: `nox -s typing`. Both report a `type: ignore` where there is nothing to ignore.
"""

from __future__ import annotations

from payments_async import AsyncPayments, CustomerFields, PayoutRequest
from payments_sync import Payments

ADA: CustomerFields = {"email": "ada@shop.test", "country": "GH"}
INSTRUMENT = {"type": "new", "iban": "open: gap L"}


async def good(client: AsyncPayments, blocking: Payments) -> None:
    await client.payouts.create(
        amount=1, currency="GHS", method="m", instrument=INSTRUMENT, customer={"email": "ada@shop.test"}
    )
    await client.checkouts.create(
        amount=1,
        currency="GHS",
        customer=ADA,
        restriction={"phone": {"number": "+233200000000", "country": "GH"}},
        appearance={"color": "#0a7d4f", "display_platform_badge": False},
    )
    blocking.payment_intents.create(
        amount=1, currency="GHS", customer=ADA, attempt={"method_code": "m", "new": "open: gap M"}
    )
    PayoutRequest(amount=1, currency="GHS", method="m", instrument=INSTRUMENT, customer={"zip": "00233"})


async def typos(client: AsyncPayments, blocking: Payments) -> None:
    await client.payouts.create(
        amount=1,
        currency="GHS",
        method="m",
        instrument=INSTRUMENT,
        customer={"emial": "ada@shop.test"},  # type: ignore[arg-type]
    )
    await client.checkouts.create(
        amount=1,
        currency="GHS",
        restriction={"country": "GH"},  # type: ignore[arg-type]
        appearance={"colour": "#0a7d4f"},  # type: ignore[arg-type]
    )
    blocking.payment_intents.create(
        amount=1,
        currency="GHS",
        customer={"firstname": "Ada"},  # type: ignore[arg-type]
    )
    PayoutRequest(
        amount=1,
        currency="GHS",
        method="m",
        instrument=INSTRUMENT,
        customer={"emial": "ada@shop.test"},  # type: ignore[arg-type]
    )
    await client.payouts.create(
        amount=1,
        currency="GHS",
        method="m",
        instrument=INSTRUMENT,
        refrence="r",  # type: ignore[call-arg]
    )
