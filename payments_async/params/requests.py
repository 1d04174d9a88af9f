"""Request objects that callers send, and their amounts (Endpoints). Public in `params`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Context, Decimal, Inexact
from functools import cache
from typing import Any, TypedDict, TypeGuard

import attrs

from .._attrs import ValueMixin, maker
from ..models._masking import masked, shown_address
from ..models._record import shown_fields

Pairs = Mapping[str, Any]
"""JSON pairs that are sent unchanged."""


class Params(ValueMixin):
    """A request object. Its repr masks personal and account data."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(shown_fields(self))})"

    def to_dict(self) -> dict[str, Any]:
        """The fields that are set, by name: `client.payouts.create(**request.to_dict())`."""
        cls: Any = type(self)
        values = {field.name: getattr(self, field.name) for field in attrs.fields(cls)}
        return {name: value for name, value in values.items() if value is not None}


Money = Decimal | int | str
"""Major units, exact: `Decimal("10.10")`, `50`, `"10.10"`. A float is refused: it is not exact."""

MOST_DIGITS = 40
MOST_POWER = 30
"""Of ten. More digits, or a greater number, than any amount of money has."""
_SIGNS = frozenset("0123456789.+-eE")
_without_zeros = Context(prec=100, traps=[Inexact]).normalize
_THREE_DECIMALS = r"[0-9]+\.[0-9]{3}"


def decimal_if_readable(value: object) -> Any:
    """Convert an int, a Decimal or plain decimal text to the one Decimal of its value.

    It has no exponent, as not every JSON reader takes `1.5E+3` for an amount, and no zeros that end its
    fraction: so equal amounts are equal bytes. A text such as `1.500` is left, as it may be 1500, and so is
    anything else for the validation.
    """
    if value.__class__ is Decimal:
        text = str(value)
        if "E" in text or len(text) > MOST_DIGITS:
            return _plain(value)
        if "." not in text or text[-1] != "0":
            return value
        return _without_zeros(value) if text[-2] not in "0." else _plain(value)
    if isinstance(value, str):
        is_plain = value.isascii() and len(value) <= 100 and _SIGNS.issuperset(value)
        if not is_plain or value[:1] in "+-":
            return value
        if has_three_decimals(value):
            return str.__str__(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    elif not isinstance(value, Decimal):
        return value
    try:
        return _plain(Decimal(value))
    except ArithmeticError:
        return value


def _plain(value: Decimal) -> Decimal:
    try:
        plain = _without_zeros(value)
    except Inexact:  # of so many digits no amount is made
        return value
    if "E" not in str(plain):
        return plain
    return Decimal(f"{plain:f}") if abs(plain.adjusted()) <= MOST_POWER else value


def has_three_decimals(value: object) -> TypeGuard[str]:
    """Return whether an amount is a text such as `1.500`, which may mean thousands."""
    is_like = isinstance(value, str) and value[-4:-3] == "."
    return is_like and re.fullmatch(_THREE_DECIMALS, str(value)) is not None


# Payouts


@attrs.frozen(eq=False, repr=False)
class CustomerInput(Params):
    """A customer in a request (Endpoints, Shared request objects)."""

    email: str | None = attrs.field(default=None, repr=masked)
    first_name: str | None = attrs.field(default=None, repr=masked)
    last_name: str | None = attrs.field(default=None, repr=masked)
    address: str | None = attrs.field(default=None, repr=masked)
    city: str | None = attrs.field(default=None, repr=masked)
    state: str | None = attrs.field(default=None, repr=masked)
    zip: str | None = attrs.field(default=None, repr=masked)
    country: str | None = None
    """Two-letter country code."""


class CustomerFields(TypedDict, total=False):
    """The fields of `CustomerInput` as a dict: the service's names, which type checkers know."""

    email: str | None
    first_name: str | None
    last_name: str | None
    address: str | None
    city: str | None
    state: str | None
    zip: str | None
    country: str | None
    """Two-letter country code."""


@attrs.frozen(eq=False, repr=False)
class Instrument(Params):
    """The receiving account of a payout: `Instrument.phone`, `.bank_account` or `.crypto_address` (gap L)."""

    type: str | None = None
    phone_number: str | None = attrs.field(default=None, repr=masked)
    account_name: str | None = attrs.field(default=None, repr=masked)
    account_number: str | None = attrs.field(default=None, repr=masked)
    bank_code: str | None = None
    swift_bic: str | None = None
    country: str | None = None
    """Two-letter country code."""
    address: str | None = attrs.field(default=None, repr=masked)
    network: str | None = None
    memo_tag: str | None = attrs.field(default=None, repr=masked)

    @classmethod
    def phone(cls, phone_number: str, country: str, *, account_name: str | None = None) -> Instrument:
        """A mobile-money wallet."""
        make = _make_instrument() if cls is Instrument else cls
        return make("phone", phone_number=phone_number, country=country, account_name=account_name)

    @classmethod
    def bank_account(
        cls,
        account_number: str,
        bank_code: str,
        country: str,
        *,
        account_name: str,
        swift_bic: str | None = None,
    ) -> Instrument:
        """An account at a bank."""
        make = _make_instrument() if cls is Instrument else cls
        return make(
            "bank_account",
            account_number=account_number,
            bank_code=bank_code,
            country=country,
            account_name=account_name,
            swift_bic=swift_bic,
        )

    @classmethod
    def crypto_address(cls, address: str, network: str, *, memo_tag: str | None = None) -> Instrument:
        """An address on a network."""
        make = _make_instrument() if cls is Instrument else cls
        return make("crypto_address", address=address, network=network, memo_tag=memo_tag)


@cache
def _make_instrument() -> Callable[..., Instrument]:
    """Make a constructor at a third of the cost: every payout needs one. Compiled at its first use."""
    return maker(Instrument)


@attrs.frozen(eq=False, repr=False, kw_only=True)
class PayoutRequest(Params):
    """The body of POST /payouts."""

    amount: Money = attrs.field(converter=decimal_if_readable)
    currency: str
    method: str
    instrument: Instrument | Pairs = attrs.field(repr=masked)
    reference: str | None = None
    """Your own identifier, unique within the project: it prevents a second payment of the same payout."""
    description: str | None = None
    customer: CustomerInput | CustomerFields | None = attrs.field(default=None, repr=masked)
    webhook_url: str | None = attrs.field(default=None, repr=shown_address)
    metadata: Pairs | None = attrs.field(default=None, repr=masked)
    gateway_options: Pairs | None = attrs.field(default=None, repr=masked)


# Payments


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
