"""Requests that collect payments (Endpoints). Public in `params`."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

import attrs

from ..models._masking import shown_address
from ..models._record import masked
from .amounts import Money, Pairs, Params, decimal_if_readable
from .payouts import CustomerFields, CustomerInput


@attrs.frozen(eq=False, repr=False)
class PhoneInput(Params):
    """A phone number and its country (gaps M and N)."""

    number: str = attrs.field(repr=masked)
    country: str | None = None
    """Two-letter country code."""


@attrs.frozen(eq=False, repr=False)
class AttemptInput(Params):
    """A first attempt to start with a payment intent (gap M)."""

    method_code: str
    country: str | None = None
    """Two-letter country code."""
    phone: PhoneInput | Pairs | None = attrs.field(default=None, repr=masked)
    currency: str | None = None


@attrs.frozen(eq=False, repr=False)
class CheckoutRestriction(Params):
    """Locks a session to one country or to one phone number, never both (gap N)."""

    country_code: str | None = None
    """Two-letter country code."""
    phone: PhoneInput | Pairs | None = attrs.field(default=None, repr=masked)


class RestrictionFields(TypedDict, total=False):
    """The fields of `CheckoutRestriction` as a dict (gap N)."""

    country_code: str | None
    """Two-letter country code."""
    phone: PhoneInput | Pairs | None


@attrs.frozen(eq=False, repr=False)
class AppearanceInput(Params):
    """Overrides of the project's checkout appearance for one session."""

    color: str | None = None
    """Hex colour: `#0a7d4f`."""
    display_platform_badge: bool | None = None
    brand: str | None = None
    icon_url: str | None = None


class AppearanceFields(TypedDict, total=False):
    """The fields of `AppearanceInput` as a dict."""

    color: str | None
    """Hex colour: `#0a7d4f`."""
    display_platform_badge: bool | None
    brand: str | None
    icon_url: str | None


@attrs.frozen(eq=False, repr=False, kw_only=True)
class PaymentFields(Params):
    """Fields that both payment-creating operations take (Endpoints, Shared body fields)."""

    amount: Money = attrs.field(converter=decimal_if_readable)
    currency: str
    description: str | None = None
    customer: CustomerInput | CustomerFields | None = attrs.field(default=None, repr=masked)
    return_url: str | None = None
    webhook_url: str | None = attrs.field(default=None, repr=shown_address)
    statement_descriptor: str | None = None
    receipt_email: str | None = attrs.field(default=None, repr=masked)
    entity_id: str | None = None
    entity_created_at: datetime | None = None
    gateway_options: Pairs | None = attrs.field(default=None, repr=masked)
    metadata: Pairs | None = attrs.field(default=None, repr=masked)


@attrs.frozen(eq=False, repr=False, kw_only=True)
class CheckoutRequest(PaymentFields):
    """The body of POST /payment/checkouts."""

    expires_in_minutes: int | None = None
    restriction: CheckoutRestriction | RestrictionFields | None = attrs.field(default=None, repr=masked)
    appearance: AppearanceInput | AppearanceFields | None = None


@attrs.frozen(eq=False, repr=False, kw_only=True)
class PaymentIntentRequest(PaymentFields):
    """The body of POST /payment/intents."""

    attempt: AttemptInput | Pairs | None = attrs.field(default=None, repr=masked)
