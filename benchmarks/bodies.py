"""The request and the answer that the benchmarks use: a payout with every field of the interface."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from benchmarks.wire import KEY, LATER_ANSWER, PAGE_ANSWER, PAYOUT_ANSWER, REFERENCE
from payments_async import CustomerInput, Instrument, RateLimits

__all__ = [
    "ARGUMENTS",
    "KEY",
    "LATER_ANSWER",
    "PAGE_ANSWER",
    "PAYOUT_ANSWER",
    "UNPACED",
    "arguments",
    "call_arguments",
]


def arguments() -> dict[str, Any]:
    """The payout as keyword arguments of `payouts.create`, made anew for each call, as programs do."""
    return {
        "amount": Decimal("250.50"),
        "currency": "GHS",
        "method": "mtn_momo_gh",
        "instrument": Instrument.phone("+233241234567", "GH", account_name="Ama Mensah"),
        "reference": REFERENCE,
        "description": "Weekly rider settlement, week 47",
        "webhook_url": "https://merchant.test/hooks/payouts",
        "metadata": {"batch": "2026-W47", "depot": "accra-central"},
    }


ARGUMENTS = arguments()
"""The same, made once."""


def call_arguments() -> dict[str, Any]:
    """What `wire.call_body` asks for, made anew for each call."""
    return {
        "amount": Decimal("250.50"),
        "currency": "GHS",
        "method": "mtn_momo_gh",
        "instrument": Instrument.phone("+233241234567", "GH"),
        "customer": CustomerInput(first_name="Ama", last_name="Mensah", email="ama@example.test"),
        "metadata": {"batch": "2026-W47", "depot": "accra-central"},
    }


CALL_ARGUMENTS = call_arguments()
"""The same, made once."""

UNPACED = RateLimits(writes=10**8, reads=10**8, diagnostics=10**8, burst=10**8)
"""The gate is passed as always; it only never makes anybody wait."""
