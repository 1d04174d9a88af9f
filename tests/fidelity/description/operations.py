"""The operations in short (docs/interface.md, Endpoints); `answers.py` writes them out."""

from __future__ import annotations

import attrs

from .notation import Schema, reference

_DAY: Schema = {"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}]}
_PER_PAGE: Schema = {"type": "integer", "minimum": 1, "maximum": 100, "x-gap": "D"}
_TEXT: Schema = {"type": "string"}


@attrs.frozen
class Described:
    """One operation in short."""

    id: str
    method: str
    path: str
    summary: str
    data: Schema
    limit: str
    gap: str | None = None
    takes: str | None = None
    """The record of its body."""
    filters: tuple[tuple[str, Schema], ...] = ()
    filter_gap: str = ""
    beside: tuple[tuple[str, Schema], ...] = ()
    """What stands beside `data`."""
    links: tuple[tuple[str, str, str], ...] = ()
    """Operation, parameter, place in the answer: where its answer leads on to."""
    never: frozenset[str] = frozenset()
    """Refusals that it does not have."""

    @property
    def creates(self) -> bool:
        """Whether it is one of the three creating operations."""
        return self.takes is not None

    @property
    def writes(self) -> bool:
        """Whether it may carry an idempotency key."""
        return self.method == "post"


def _page(name: str) -> Schema:
    return {"type": "array", "items": reference(name)}


def _filters(*names: str) -> tuple[tuple[str, Schema], ...]:
    texts = [(name, _TEXT) for name in names]
    days = [("created_at[gte]", _DAY), ("created_at[lte]", _DAY)]
    return (*texts, *days, ("per_page", _PER_PAGE), ("cursor", _TEXT))


_PAGED = (("pagination", reference("Pagination")),)
_NO_BODY = frozenset({"400", "409", "422", "428"})
_OF_LISTS = frozenset({"404", "409", "428"})
_OF_CREATIONS = frozenset({"404"})
_OF_REQUERY = frozenset({"422"})

OPERATIONS: tuple[Described, ...] = (
    Described(
        "createCheckout",
        "post",
        "/payment/checkouts",
        "Create a checkout session and its payment",
        reference("Checkout"),
        "writes",
        takes="CheckoutRequest",
        links=(
            ("retrieveCheckout", "checkoutId", "checkout/id"),
            ("refundAvailability", "paymentIntentId", "payment/id"),
        ),
        never=_OF_CREATIONS,
    ),
    Described(
        "retrieveCheckout",
        "get",
        "/payment/checkouts/{checkoutId}",
        "Read a checkout session back",
        reference("Checkout"),
        "reads",
        never=_NO_BODY,
    ),
    Described(
        "createPaymentIntent",
        "post",
        "/payment/intents",
        "Create a payment intent",
        reference("PaymentIntent"),
        "writes",
        takes="PaymentIntentRequest",
        links=(
            ("requeryPaymentIntent", "paymentIntentId", "id"),
            ("retrieveAttempt", "paymentIntentId", "id"),
            ("retrieveAttempt", "attemptId", "active_attempt/id"),
            ("inspectAttempt", "paymentIntentId", "id"),
            ("inspectAttempt", "attemptId", "active_attempt/id"),
            ("refundAvailability", "paymentIntentId", "id"),
        ),
        never=_OF_CREATIONS,
    ),
    Described(
        "listPaymentIntents",
        "get",
        "/payment/intents",
        "List payment intents, newest first",
        _page("ListedPaymentIntent"),
        "reads",
        filters=_filters("status", "channel", "customer_id"),
        filter_gap="A",
        beside=_PAGED,
        never=_OF_LISTS,
    ),
    Described(
        "retrieveAttempt",
        "get",
        "/payment/intents/{paymentIntentId}/attempts/{attemptId}",
        "Read an attempt",
        reference("PaymentAttempt"),
        "reads",
        never=_NO_BODY,
    ),
    Described(
        "refundAvailability",
        "get",
        "/payment/intents/{paymentIntentId}/refunds/availability",
        "See what can be refunded",
        reference("RefundAvailability"),
        "reads",
        never=_NO_BODY,
    ),
    Described(
        "requeryPaymentIntent",
        "post",
        "/payment/intents/{paymentIntentId}/requery",
        "Have a payment checked with its gateway",
        reference("Requery"),
        "diagnostics",
        gap="T",
        never=_OF_REQUERY,
    ),
    Described(
        "inspectAttempt",
        "get",
        "/payment/intents/{paymentIntentId}/attempts/{attemptId}/inspect",
        "See an attempt as its gateway does",
        reference("Inspection"),
        "diagnostics",
        gap="U",
        never=_NO_BODY,
    ),
    Described(
        "createPayout",
        "post",
        "/payouts",
        "Create a payout",
        reference("Payout"),
        "writes",
        takes="PayoutRequest",
        links=(("syncPayout", "payoutId", "id"), ("inspectPayout", "payoutId", "id")),
        never=_OF_CREATIONS,
    ),
    Described(
        "listPayouts",
        "get",
        "/payouts",
        "List payouts, newest first",
        _page("Payout"),
        "reads",
        filters=_filters("status", "method", "currency", "customer_id"),
        filter_gap="B",
        beside=_PAGED,
        never=_OF_LISTS,
    ),
    Described(
        "syncPayout",
        "get",
        "/payouts/{payoutId}/sync",
        "Bring a payout up to date",
        reference("Payout"),
        "diagnostics",
        gap="V",
        never=_NO_BODY,
    ),
    Described(
        "inspectPayout",
        "get",
        "/payouts/{payoutId}/inspect",
        "See a payout as its gateway does",
        reference("Inspection"),
        "diagnostics",
        gap="U",
        never=_NO_BODY,
    ),
    Described(
        "methodStatus",
        "get",
        "/utils/status/payment/method/{methodCode}/{countryCode}",
        "See how a payment method is doing in a country",
        reference("MethodStatus"),
        "reads",
        beside=(("meta", reference("MethodStatusMeta")),),
        never=_NO_BODY,
    ),
)
