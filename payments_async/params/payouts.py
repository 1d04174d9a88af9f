"""Requests that send payouts (Endpoints, POST /payouts)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypedDict

import attrs

from .._attrs import maker
from ..models._masking import shown_address
from ..models._record import masked
from .amounts import Money, Pairs, Params, decimal_if_readable


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
