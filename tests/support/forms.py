"""The forms of every record, each read through the client from a scripted answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from tests.support.bodies import Json
from tests.support.calls import OPERATIONS, call
from tests.support.surfaces import Connect


@attrs.frozen
class Form:
    """A record as one operation carries it: its name in docs/openapi.json, and the start of its facts.

    `path` leads to it from what the call returns, `said` from the answer's body.
    """

    operation: str
    schemas: tuple[str, ...]
    facts: str
    path: str = ""
    said: str = "data"


def _form(operation: str, schema: str, facts: str, path: str = "") -> Form:
    said = path.replace("items", "data") if path.startswith("items") else f"data.{path}".rstrip(".")
    return Form(operation, (schema,), f"field.{facts}", path, said)


FORMS: Mapping[str, Form] = {
    "attempt": _form("payment_intents.retrieve_attempt", "PaymentAttempt", "attempt"),
    "attempt in a created intent": _form(
        "payment_intents.create", "PaymentAttempt", "attempt", "active_attempt"
    ),
    "attempt in a created checkout": _form(
        "checkouts.create", "PaymentAttempt", "attempt", "payment.active_attempt"
    ),
    "attempt in a checkout": _form(
        "checkouts.retrieve", "PaymentAttempt", "attempt", "payment.active_attempt"
    ),
    "attempt in the list": _form(
        "payment_intents.list", "ListedPaymentAttempt", "attempt", "items.0.active_attempt"
    ),
    "created intent": _form("payment_intents.create", "PaymentIntent", "intent"),
    "intent of a created checkout": _form("checkouts.create", "PaymentIntent", "intent", "payment"),
    "intent of a checkout": _form("checkouts.retrieve", "PaymentIntent", "intent", "payment"),
    "intent in the list": _form("payment_intents.list", "ListedPaymentIntent", "intent", "items.0"),
    "created checkout": _form("checkouts.create", "CheckoutSession", "checkout", "checkout"),
    "checkout": _form("checkouts.retrieve", "CheckoutSession", "checkout", "checkout"),
    "created payout": _form("payouts.create", "Payout", "payout"),
    "payout in the list": _form("payouts.list", "Payout", "payout", "items.0"),
    "synced payout": _form("payouts.sync", "Payout", "payout"),
    "refund availability": _form(
        "payment_intents.refund_availability", "RefundAvailability", "refund-availability"
    ),
    "payouts page": Form("payouts.list", ("Pagination",), "field.pagination", "pagination", "pagination"),
    "intents page": Form(
        "payment_intents.list", ("Pagination",), "field.pagination", "pagination", "pagination"
    ),
    "method status": Form(
        "methods.status", ("MethodStatus", "MethodStatusMeta"), "field.method-status", said=""
    ),
    "requery": _form("payment_intents.requery", "Requery", "requery"),
    "attempt inspection": _form("payment_intents.inspect_attempt", "Inspection", "inspection"),
    "payout inspection": _form("payouts.inspect", "Inspection", "inspection"),
}

ATTEMPTS_ALONE = (
    "attempt",
    "attempt in a created intent",
    "attempt in a created checkout",
    "attempt in a checkout",
)
ATTEMPTS = (*ATTEMPTS_ALONE, "attempt in the list")
INTENTS_ALONE = ("created intent", "intent of a created checkout", "intent of a checkout")
INTENTS = (*INTENTS_ALONE, "intent in the list")
PAYOUTS = ("created payout", "payout in the list", "synced payout")


def at(value: Any, path: str) -> Any:
    """What lies at a dotted path of attributes, members and indices."""
    for name in filter(None, path.split(".")):
        if isinstance(value, dict):
            value = value[name]
        else:
            value = value[int(name)] if name.isdigit() else getattr(value, name)
    return value


async def read(connect: Connect, name: str, body: Json | None = None) -> Any:
    """The record in one of its forms, from the full example body unless another is given."""
    form = FORMS[name]
    return at(await call(connect, form.operation, body or OPERATIONS[form.operation].body), form.path)


def exactly(value: Any, expected: Any) -> bool:
    """Equal and of the same type, all the way down."""
    if type(value) is not type(expected):
        return False
    if isinstance(expected, tuple | list):
        return len(value) == len(expected) and all(map(exactly, value, expected))
    if isinstance(expected, dict):
        return value.keys() == expected.keys() and all(exactly(value[k], v) for k, v in expected.items())
    return bool(value == expected)
