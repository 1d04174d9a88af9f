"""The operations: what each takes and answers, with statuses and headers (docs/interface.md, Endpoints)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from .notation import Schema, reference

_DAY: Schema = {"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}]}
_PER_PAGE: Schema = {"type": "integer", "minimum": 1, "maximum": 100, "x-gap": "D"}
_ID: Schema = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$"}
_TEXT: Schema = {"type": "string"}

_KEY = {
    "name": "X-Idempotency-Key",
    "in": "header",
    "description": "Makes a repeat within 24 hours give the first answer again.",
    "schema": {"type": "string", "minLength": 8, "maxLength": 128},
}

# Status: what it means, the record of its body, and the gap that the status itself is.
_REFUSALS: dict[str, tuple[str, str, str | None]] = {
    "400": ("The request cannot be read.", "Message", "Q"),
    "401": ("The key is missing, wrong, inactive or expired.", "Message", None),
    "403": ("The caller's address is not on the key's allowlist.", "Message", None),
    "404": ("There is no such resource.", "Message", None),
    "409": (
        "The reference is taken, or the idempotency key was used for another request (gap R).",
        "Message",
        None,
    ),
    "422": ("Something in the request is invalid.", "Invalid", None),
    "428": ("The idempotency key is refused.", "Message", "Q"),
    "429": ("Too many requests.", "Message", None),
}

_REPLAYED = {
    "description": "`true` on the stored answer to a repeated request.",
    "schema": {"type": "string", "enum": ["true"]},
}
_REQUEST_ID = {"description": "Names the request.", "schema": _TEXT, "x-gap": "AE"}
_COUNT: Schema = {"type": "string", "pattern": "^[0-9]+$"}
_LIMIT_HEADERS = {
    "X-RateLimit-Limit": {"description": "Requests a minute.", "schema": _COUNT},
    "X-RateLimit-Remaining": {"description": "Requests left in the window.", "schema": _COUNT},
    "Retry-After": {"description": "Seconds to wait.", "schema": _COUNT},
}


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

_COUNTRY: Schema = {"type": "string", "pattern": "^[A-Z]{2}$", "minLength": 2, "maxLength": 2}


def _parameters(operation: Described) -> Iterable[Any]:
    for part in operation.path.split("/"):
        if part.startswith("{"):
            name = part[1:-1]
            schema = _COUNTRY if name == "countryCode" else _ID
            yield {"name": name, "in": "path", "required": True, "schema": schema}
    for name, schema in operation.filters:
        yield {"name": name, "in": "query", "schema": schema, "x-gap": operation.filter_gap}
    if operation.writes:
        yield _KEY


def _content(schema: Schema) -> Any:
    return {"application/json": {"schema": schema}}


def _success(operation: Described) -> Any:
    properties = {"data": operation.data, **dict(operation.beside)}
    required = list(properties)
    if operation.creates:
        properties["message"] = _TEXT
    answer: dict[str, Any] = {
        "description": operation.summary + ".",
        "content": _content({"type": "object", "properties": properties, "required": required}),
        "headers": {"X-Request-Id": _REQUEST_ID},
    }
    if operation.writes:
        answer["headers"]["X-Idempotent-Replayed"] = _REPLAYED
    if operation.links:
        links: dict[str, Any] = {}
        for target, name, place in operation.links:
            link = links.setdefault(target, {"operationId": target, "parameters": {}})
            link["parameters"][name] = f"$response.body#/data/{place}"
        answer["links"] = links
    return {**answer, "x-gap": "E"} if operation.creates else answer


def _refusal(status: str, operation: Described) -> Any:
    told, name, gap = _REFUSALS[status]
    headers: dict[str, Any] = {"X-Request-Id": _REQUEST_ID}
    if operation.writes and status in ("404", "409", "422"):
        headers["X-Idempotent-Replayed"] = {**_REPLAYED, "x-gap": "S"}
    if status == "429":
        headers |= _LIMIT_HEADERS
    answer = {"description": told, "content": _content(reference(name)), "headers": headers}
    return {**answer, "x-gap": gap} if gap else answer


def describe(operation: Described) -> dict[str, Any]:
    """The OpenAPI operation object."""
    answers = {"201" if operation.creates else "200": _success(operation)}
    answers |= {status: _refusal(status, operation) for status in _REFUSALS if status not in operation.never}
    described: dict[str, Any] = {
        "operationId": operation.id,
        "summary": operation.summary,
        "parameters": list(_parameters(operation)),
        "responses": answers,
        "x-limit": operation.limit,
    }
    if operation.takes:
        described["requestBody"] = {"required": True, "content": _content(reference(operation.takes))}
    elif operation.writes:
        described["requestBody"] = {"content": _content({"type": "object"})}
    return {**described, "x-gap": operation.gap} if operation.gap else described
