"""The keyword arguments of every method, with their types and units.

`tools/mirror` writes the signatures of the methods, and the Args sections of their docstrings, from the types
and texts here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Required, TypedDict

from .params import (
    AppearanceFields,
    AppearanceInput,
    AttemptInput,
    CheckoutRestriction,
    CustomerFields,
    CustomerInput,
    Instrument,
    Money,
    Pairs,
    RestrictionFields,
)


class SendOptions(TypedDict, total=False):
    """Options for sending one call; each overrides the client's own."""

    timeout: float | None
    """Seconds for each attempt."""
    deadline: float | None
    """Seconds for the whole call: pacing, attempts and back-off."""
    max_retries: int | None
    """Attempts after the first."""


class PrepareOptions(TypedDict, total=False):
    """Options of a write's request, besides its fields."""

    idempotency_key: str | None
    """8 to 128 printable characters; the client makes one when absent (Limits, Idempotency)."""
    extra_headers: Mapping[str, str] | None
    """Headers beside the client's own."""
    extra_query: Mapping[str, Any] | None
    """Pairs added to the query."""
    extra_body: Mapping[str, Any] | None
    """Top-level JSON fields put over the request's own."""


class ReadOptions(SendOptions, total=False):
    """Options of every reading method."""

    extra_headers: Mapping[str, str] | None
    """Headers beside the client's own."""
    extra_query: Mapping[str, Any] | None
    """Pairs added to the query."""


class WriteOptions(PrepareOptions, SendOptions, total=False):
    """Options of every writing method."""


class _PaymentFields(TypedDict, total=False):
    """Fields that both payment-creating operations take (Endpoints, Shared body fields)."""

    amount: Required[Money]
    """Major units, at least 1: Decimal, int or decimal text."""
    currency: Required[str]
    """ISO 4217, three uppercase letters."""
    description: str | None
    """At most 500 characters."""
    customer: CustomerInput | CustomerFields | None
    """Whom it is for."""
    return_url: str | None
    """The page where the payer lands afterwards, at most 2048 characters. A visit to it proves nothing."""
    webhook_url: str | None
    """The address that gets the events, unsigned, at most 2048 characters."""
    statement_descriptor: str | None
    """At most 22 letters, digits, white space, periods, commas and hyphens."""
    receipt_email: str | None
    """At most 255 characters."""
    entity_id: str | None
    """Your identifier of the thing paid for, at most 191 characters."""
    entity_created_at: datetime | None
    """Aware, not in the future."""
    gateway_options: Pairs | None
    """Parameters for gateways, by gateway code."""
    metadata: Pairs | None
    """Up to 10 pairs, returned unchanged."""


class CheckoutFields(_PaymentFields, total=False):
    """Fields of POST /payment/checkouts."""

    expires_in_minutes: int | None
    """30 to 1440."""
    restriction: CheckoutRestriction | RestrictionFields | None
    """One country or one phone number."""
    appearance: AppearanceInput | AppearanceFields | None
    """Overrides of the page's design."""


class PaymentIntentFields(_PaymentFields, total=False):
    """Fields of POST /payment/intents."""

    attempt: AttemptInput | Pairs | None
    """A first attempt to start at once (gap M)."""


class PayoutFields(TypedDict, total=False):
    """Fields of POST /payouts."""

    amount: Required[Money]
    """Major units, at least 1: Decimal, int or decimal text."""
    currency: Required[str]
    """ISO 4217, three uppercase letters."""
    method: Required[str]
    """The payout method's code, from the dashboard."""
    instrument: Required[Instrument | Pairs]
    """The receiving account or phone number."""
    reference: str | None
    """Your identifier, unique within the project, at most 191 characters. Give one: it makes the payout
    impossible to pay twice and possible to find again."""
    description: str | None
    """At most 500 characters."""
    customer: CustomerInput | CustomerFields | None
    """Whom it is for."""
    webhook_url: str | None
    """The address that gets creation, completion and failure events, unsigned, at most 2048 characters."""
    metadata: Pairs | None
    """Up to 10 pairs, returned unchanged."""
    gateway_options: Pairs | None
    """Parameters for gateways, by gateway code."""


class CheckoutPreparation(CheckoutFields, PrepareOptions, total=False):
    """Arguments of `checkouts.prepare`."""


class CheckoutArguments(CheckoutPreparation, SendOptions, total=False):
    """Arguments of `checkouts.create`."""


class PaymentIntentPreparation(PaymentIntentFields, PrepareOptions, total=False):
    """Arguments of `payment_intents.prepare`."""


class PaymentIntentArguments(PaymentIntentPreparation, SendOptions, total=False):
    """Arguments of `payment_intents.create`."""


class PayoutPreparation(PayoutFields, PrepareOptions, total=False):
    """Arguments of `payouts.prepare`."""


class PayoutArguments(PayoutPreparation, SendOptions, total=False):
    """Arguments of `payouts.create`."""


class _Filters(TypedDict, total=False):
    status: str | None
    """One status, such as `pending`."""
    customer_id: str | None
    """One customer's."""
    created_on_or_after: date | str | None
    """A date, an aware datetime, or text."""
    created_on_or_before: date | str | None
    """A date, an aware datetime, or text."""
    page_size: int | None
    """1 to 100; the service's own when absent (gap D)."""
    cursor: str | None
    """`next_cursor` of another page, with the same filters."""


class _PaymentIntentFilters(_Filters, total=False):
    channel: str | None
    """The channel the payment came through."""


class PaymentIntentFilters(_PaymentIntentFilters, ReadOptions, total=False):
    """Arguments of `payment_intents.list` (gap A)."""


class _PayoutFilters(_Filters, total=False):
    method: str | None
    """A payout method code."""
    currency: str | None
    """ISO 4217, three uppercase letters."""


class PayoutFilters(_PayoutFilters, ReadOptions, total=False):
    """Arguments of `payouts.list` (gap B)."""


class PaymentIntentIteration(PaymentIntentFilters, total=False):
    """Arguments of `payment_intents.iterate`."""

    max_items: int | None
    """Stop after so many."""


class PayoutIteration(PayoutFilters, total=False):
    """Arguments of `payouts.iterate`."""

    max_items: int | None
    """Stop after so many."""


class _SearchOptions(TypedDict, total=False):
    created_on_or_after: date | str | None
    """The search, newest first, may stop at this date."""
    cursor: str | None
    """Position to continue from: `SearchIncomplete.cursor`, with the same `created_on_or_after`."""
    max_pages: int
    """Pages of 100 to read at most; 100 when absent."""


class Search(_SearchOptions, ReadOptions, total=False):
    """Options of `payouts.find`."""
