"""The request and the answer that the benchmarks use: a payout with every field of the interface."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from benchmarks.wire import BODY, KEY, PAGE_ANSWER, PAYOUT_ANSWER
from payments_async import Instrument, RateLimits

__all__ = ["ARGUMENTS", "BODY", "KEY", "PAGE_ANSWER", "PAYOUT_ANSWER", "UNPACED"]

ARGUMENTS: dict[str, Any] = {
    **BODY,
    "amount": Decimal("250.50"),
    "instrument": Instrument.phone("+233241234567", "GH", account_name="Ama Mensah"),
}
"""`BODY` as keyword arguments of `payouts.create`."""

UNPACED = RateLimits(writes=10**8, reads=10**8, diagnostics=10**8, burst=10**8)
"""The gate is passed as always; it only never makes anybody wait."""
