"""What callers send: request objects under the interface's names (Endpoints).

They are plain frozen values and check nothing by themselves: a request is checked whole, just before it
would be sent, so that all its faults are reported together (`_validation`). None means "leave out".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, TypeVar

import attrs

from . import _operations
from ._likeness import Alike
from ._making import maker
from ._masking import shown_address
from .models._record import masked

if TYPE_CHECKING:
    from ._payment_params import AppearanceInput as AppearanceInput
    from ._payment_params import AttemptInput as AttemptInput
    from ._payment_params import CheckoutRequest as CheckoutRequest
    from ._payment_params import CheckoutRestriction as CheckoutRestriction
    from ._payment_params import PaymentFields as PaymentFields
    from ._payment_params import PaymentIntentRequest as PaymentIntentRequest
    from ._payment_params import PhoneInput as PhoneInput

__all__ = [
    "AppearanceInput",
    "AttemptInput",
    "CheckoutRequest",
    "CheckoutRestriction",
    "CustomerInput",
    "Instrument",
    "Money",
    "Pairs",
    "Params",
    "PaymentFields",
    "PaymentIntentRequest",
    "PayoutRequest",
    "PhoneInput",
    "PreparedRequest",
    "decimal_if_readable",
]

Money = Decimal | int | str
"""Major units, exact: `Decimal("10.10")`, `50`, `"10.10"`. A float is refused: it is not exact."""
_P = TypeVar("_P", bound="PreparedRequest")
Pairs = Mapping[str, Any]
"""JSON pairs passed through as they are."""


_DECIMAL_SIGNS = frozenset("0123456789.+-eE")


def decimal_if_readable(value: Any) -> Any:
    """An int or plain decimal text as a Decimal; anything else as it is, for the validation to name."""
    if value.__class__ is Decimal:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    if isinstance(value, str) and value.isascii() and len(value) <= 100 and _DECIMAL_SIGNS.issuperset(value):
        try:
            return Decimal(value)
        except ArithmeticError:
            return value
    return value


class Params(Alike):
    """A request object. Its repr masks personal and account data."""

    __slots__ = ()

    def __repr__(self) -> str:
        cls: Any = type(self)
        parts = [text for field in attrs.fields(cls) if (text := self._shown(field))]
        return f"{cls.__name__}({', '.join(parts)})"

    def _shown(self, field: attrs.Attribute[Any]) -> str:
        value = getattr(self, field.name)
        if value is None:
            return ""
        return f"{field.name}={(field.repr if callable(field.repr) else repr)(value)}"


@attrs.frozen(eq=False, repr=False)
class CustomerInput(Params):
    """A customer as sent (Endpoints, Shared request objects)."""

    email: str | None = attrs.field(default=None, repr=masked)
    first_name: str | None = attrs.field(default=None, repr=masked)
    last_name: str | None = attrs.field(default=None, repr=masked)
    address: str | None = attrs.field(default=None, repr=masked)
    city: str | None = attrs.field(default=None, repr=masked)
    state: str | None = attrs.field(default=None, repr=masked)
    zip: str | None = attrs.field(default=None, repr=masked)
    country: str | None = None
    """Two-letter country code."""


@attrs.frozen(eq=False, repr=False)
class Instrument(Params):
    """Where a payout goes. Use `Instrument.phone`, `.bank_account` or `.crypto_address` (gap L)."""

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
    """The constructor at a third of its price: every payout needs one. Compiled when it is first wanted."""
    return maker(Instrument)


@attrs.frozen(eq=False, repr=False, kw_only=True)
class PayoutRequest(Params):
    """The body of POST /payouts."""

    amount: Money = attrs.field(converter=decimal_if_readable)
    currency: str
    method: str
    instrument: Instrument | Pairs = attrs.field(repr=masked)
    reference: str | None = None
    """Your own identifier, unique within the project: what makes a payout impossible to pay twice."""
    description: str | None = None
    customer: CustomerInput | Pairs | None = attrs.field(default=None, repr=masked)
    webhook_url: str | None = attrs.field(default=None, repr=shown_address)
    metadata: Pairs | None = attrs.field(default=None, repr=masked)
    gateway_options: Pairs | None = attrs.field(default=None, repr=masked)


@attrs.frozen(eq=False, repr=False)
class PreparedRequest(Alike):
    """A write, ready to be sent, now or by another process: the exact bytes and their idempotency key.

    Sending it again within 24 hours is one and the same request to the service (Limits, Idempotency).
    """

    operation: str
    """`payouts.create`, or `POST /path` for one made with `client.request`."""
    path: str
    """Relative to the base URL, percent-encoded, with its query."""
    body: bytes = attrs.field(repr=masked)
    idempotency_key: str
    created_at: datetime
    base_url: str
    environment: str
    """`live` or `sandbox`: it is only sent with a key of the same one."""
    key_fingerprint: str
    """Tells the secret key it was made for, without showing it: another project would pay it again."""
    reference: str | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=masked, hash=False)
    """The caller's `extra_headers`."""

    def to_json(self) -> str:
        """Everything, as JSON text for an outbox. It holds account data: store it like the account data."""
        fields = attrs.asdict(self, recurse=False)
        changed = {"body": self.body.decode(), "created_at": self.created_at.isoformat(), "version": 1}
        return json.dumps({**fields, **changed, "headers": dict(self.headers)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote. Raises ValueError for anything else."""
        prepared = _stored(cls, text)
        del text  # it holds account data, and tracebacks print locals
        if prepared is None:
            raise ValueError("this is not a PreparedRequest of this version; pass what to_json() returned")
        return prepared


def _stored(cls: type[_P], text: str) -> _P | None:
    """A request that was stored; None for any other text."""
    try:
        fields = json.loads(text)
        if fields.pop("version") != 1:
            return None
        _refuse_odd(fields)
        if not _operations.can_be_prepared(fields["operation"], fields["path"]):
            return None
        changed = {
            "body": fields["body"].encode(),
            "created_at": datetime.fromisoformat(fields["created_at"]).astimezone(UTC),
        }
        return cls(**{**fields, **changed})
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return None


def _refuse_odd(fields: dict[str, Any]) -> None:
    """Raise ValueError when a field of a stored request is of another type than it was written with."""
    texts = {name: value for name, value in fields.items() if name != "headers"}
    if texts.get("reference") is None:
        texts.pop("reference")
    headers = fields["headers"]
    if not all(isinstance(value, str) for value in (*texts.values(), *headers.values())):
        raise ValueError("a field is not text")


def __getattr__(name: str) -> Any:
    """Requests of payments, loaded when they are first used: who pays out needs none."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module("._payment_params", __package__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
