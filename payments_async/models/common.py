"""Records that appear inside others (Resources and their fields)."""

from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar, Final

import attrs

from ._masking import masked
from ._minor_units import decimals_of
from ._record import Record
from .statuses import MethodHealth

_MOST_DIGITS: Final = 60
"""A number that has more is shown with its exponent: no text of a gigabyte for `1e999999999`."""


def amount_text(currency: str, value: Decimal) -> str:
    """An exact amount for people, in major units: `GHS 1,250.75`."""
    return f"{currency} {grouped(value, currency)}"


def grouped(value: Decimal, currency: str | None = None) -> str:
    """The number of an amount for people, exact: `1,250.75`, with the decimals of its currency at least.

    A single decimal gets a second one.
    """
    if abs(value.adjusted()) > _MOST_DIGITS:
        return str(value)
    fraction, digits = f"{value:f}".partition(".")[2], decimals_of(currency or "")
    places = len(fraction) if digits is None else max(digits, len(fraction.rstrip("0")))
    return f"{value:,.{places + (places == 1)}f}"


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Amount(Record):
    """An amount of money in major units: `Decimal("50")` is 50.00 (Resources, Amount)."""

    value: Decimal | None = None
    formatted: str | None = None
    """Display text with symbol and decimals."""
    short: str | None = None
    """Display text without decimals."""
    currency: str | None = None
    """ISO 4217 code."""

    def _shown_inside(self) -> str:
        return f"{self.currency} {self.value if self.value is None else grouped(self.value, self.currency)}"


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Method(Record):
    """A payment or payout method (Resources, Method). A bare code becomes `Method(value=code)`."""

    value: str | None = None
    """The method's code."""
    label: str | None = None
    description: str | None = None
    icon_url: str | None = None
    category: str | None = None
    requires_phone: bool | None = None


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class ExchangeRate(Record):
    """The object form of an exchange rate (Resources, Exchange rate)."""

    _decimal_texts: ClassVar[frozenset[str]] = frozenset({"value"})
    value: Decimal | None = None
    """Eight fractional digits on the wire, exact here."""
    from_currency: str | None = None
    to_currency: str | None = None
    expression: str | None = None
    """The rate as display text."""


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Country(Record):
    """A country (Resources, Country). A bare code becomes `Country(code=code)`."""

    code: str | None = None
    """ISO 3166-1 alpha-2."""
    name: str | None = None
    flag: str | None = None


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Customer(Record):
    """A customer as the service returns it (Resources, Customer). The repr shows the id alone."""

    id: str | None = None
    first_name: str | None = attrs.field(default=None, repr=masked)
    last_name: str | None = attrs.field(default=None, repr=masked)
    email: str | None = attrs.field(default=None, repr=masked)
    avatar_url: str | None = attrs.field(default=None, repr=masked)


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class GatewayTransaction(Record):
    """The processor's side of a payment or payout (Resources, Gateway transaction)."""

    id: str | None = None
    reference: str | None = None
    external_id: str | None = None
    status: str | None = None


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Gateway(Record):
    """Holds the gateway transaction (Resources, Gateway transaction)."""

    transaction: GatewayTransaction | None = None


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class FailureCode(Record):
    """The code of a failure (Resources, Failure). Codes are open strings; the repr masks texts."""

    value: str | None = None
    category: str | None = None
    """See `FailureCategory`; absent in some attempts."""
    message: str | None = attrs.field(default=None, repr=masked)


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Failure(Record):
    """The reason why an attempt or payout failed (Resources, Failure)."""

    code: FailureCode | None = None
    message: str | None = attrs.field(default=None, repr=masked)


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class MethodStatus(Record):
    """Recent health of a payment method in a country, `data` and `meta` in one (Resources, Method status)."""

    method: str | None = None
    country: str | None = None
    """ISO 3166-1 alpha-2."""
    status: str | None = None
    """See `MethodHealth`; open."""
    environment: str | None = None
    """`live` or `sandbox`."""
    window_minutes: int | None = None
    """Minutes of operation that the status summarises."""
    generated_at: datetime | None = None
    ttl_seconds: int | None = None
    """Seconds for which the answer may be kept."""

    @property
    def is_usable(self) -> bool:
        """True if the method is worth offering now (gap J)."""
        return self.status in MethodHealth.USABLE


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Inspection(Record):
    """The gateway's own information on an attempt or payout (live operation; gap U)."""

    gateway: str | None = None
    gateway_transaction_id: str | None = None
    retrieved_at: datetime | None = None
    payload: Any = attrs.field(default=None, repr=masked, hash=False)
    """The gateway's own record, any JSON."""
