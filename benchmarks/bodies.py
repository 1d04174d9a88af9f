"""The request and the answer that the benchmarks use: a payout with every field of the interface."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from benchmarks.wire import KEY as KEY
from benchmarks.wire import REFERENCE
from payments_async import CustomerInput, Instrument, RateLimits


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


def mapped_arguments() -> dict[str, Any]:
    """The same with mappings in the place of objects, and nested options of a gateway."""
    mappings = {
        "instrument": {"type": "phone", "phone_number": "+233241234567", "country": "GH"},
        "customer": {"first_name": "Ama", "last_name": "Mensah", "email": "ama@example.test"},
        "gateway_options": {"mtn": {"note": "week 47"}},
    }
    return {**call_arguments(), **mappings}


def checkout_arguments() -> dict[str, Any]:
    """A checkout."""
    return {
        "amount": Decimal("250.50"),
        "currency": "GHS",
        "description": "Order 7",
        "customer": CustomerInput(first_name="Ama", last_name="Mensah", email="ama@example.test"),
        "return_url": "https://merchant.test/thanks",
        "metadata": {"order": "7", "shop": "accra-central"},
    }


def restricted_arguments() -> dict[str, Any]:
    """The same, of a moment and for one country."""
    created = datetime(2026, 11, 20, tzinfo=UTC)
    return {**checkout_arguments(), "entity_created_at": created, "restriction": {"country_code": "GH"}}


UNPACED = RateLimits(writes=10**8, reads=10**8, diagnostics=10**8)
"""The gate is passed as always; it only never makes anybody wait."""
