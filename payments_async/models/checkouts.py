"""Checkout sessions: a payment and the hosted page that collects it (Resources, Checkout session)."""

from datetime import datetime
from typing import Any

import attrs

from ._masking import masked
from ._record import Record
from .common import Country
from .payments import PaymentIntent


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Color(Record):
    """One colour of the page, in two notations."""

    hex: str | None = None
    rgb: str | None = None


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class AppearanceColors(Record):
    """The page's colours."""

    primary: Color | None = None
    contrast: Color | None = None


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Appearance(Record):
    """The design of the hosted page."""

    template: str | None = None
    color: AppearanceColors | None = None
    font: dict[str, Any] | None = attrs.field(default=None, hash=False)
    """Any fields: the interface does not show them (gap AB)."""
    border_style: str | None = None
    display_platform_badge: bool | None = None
    brand: str | None = None
    icon_url: str | None = None
    lang: str | None = None


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class SessionRestriction(Record):
    """The country or phone number that the session is locked to."""

    country: Country | None = None
    phone: str | None = attrs.field(default=None, repr=masked)


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class CheckoutSession(Record):
    """The hosted page (Resources, Checkout session)."""

    id: str = ""
    """Always set in the answer of a creation; empty where a read does not show it."""
    url: str = ""
    """The page's address, to send the payer to. Set and empty like `id`."""
    restriction: SessionRestriction | None = None
    appearance: Appearance | None = None
    expires_at: datetime | None = None
    created_at: datetime | None = None


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Checkout(Record):
    """A checkout session with its payment. Send the payer to `checkout.url`; read back before you ship."""

    checkout: CheckoutSession | None = None
    payment: PaymentIntent | None = None

    @property
    def id(self) -> str:
        """The session's id, for `checkouts.retrieve`."""
        return self.checkout.id if self.checkout else ""

    @property
    def url(self) -> str:
        """The hosted page's address."""
        return self.checkout.url if self.checkout else ""
