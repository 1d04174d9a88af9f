"""The three creating operations: by which resource, with which smallest arguments, and rows of facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from payments_async import Instrument

PAYMENT: Mapping[str, Any] = {"amount": 50, "currency": "XOF"}
PAYOUT: Mapping[str, Any] = {
    **PAYMENT,
    "method": "mtn_bj",
    "instrument": Instrument.phone("+22990000000", "BJ"),
}
SMALLEST: Mapping[str, Mapping[str, Any]] = {
    "checkouts": PAYMENT,
    "payment_intents": PAYMENT,
    "payouts": PAYOUT,
}
"""Resource -> what its `create` cannot do without."""
PAYMENTS = ("payment_intents", "checkouts")


def row(*values: Any, facts: str = "", id: str | None = None) -> Any:
    """A row of a table, with the facts it proves (ids with spaces between)."""
    marks = [pytest.mark.fact(*facts.split())] if facts else []
    return pytest.param(*values, marks=marks, id=id)


async def create(client: Any, resource: str, **fields: Any) -> Any:
    return await getattr(client, resource).create(**{**SMALLEST[resource], **fields})
