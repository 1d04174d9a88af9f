"""The endpoint table: every operation of the interface, its path, its limit and what it answers.

To change a path, a method, a limit class or a result type, edit this table and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlencode

import attrs

from . import models

Limit = Literal["write", "read", "diagnostic", "refund_availability"]
"""Which limits a call counts against (Limits, Rate limits)."""
Shape = Literal["record", "checkout", "page", "method_status", "raw"]
"""Where an answer keeps its record: `data`, `data.checkout` and `data.payment`, a list, `data` and `meta`,
or the whole body as it is."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_PLACEHOLDER = re.compile(r"{(\w+)}")


@attrs.frozen
class Operation:
    """One endpoint (Endpoints, Summary)."""

    name: str
    method: str
    path: str
    """Relative to the base URL, with {placeholders}."""
    limit: Limit
    result: type[Any] | None
    shape: Shape = "record"
    creates: bool = False
    """Whether it makes a record, so that an attempt without an answer leaves its outcome unknown."""
    record: str | None = None
    """The placeholder that names the record of a per-record limit."""

    @property
    def writes(self) -> bool:
        """Whether it carries an idempotency key."""
        return self.method != "GET"


CHECKOUTS_CREATE = Operation(
    "checkouts.create", "POST", "/payment/checkouts", "write", models.Checkout, "checkout", creates=True
)
CHECKOUTS_RETRIEVE = Operation(
    "checkouts.retrieve", "GET", "/payment/checkouts/{checkout_id}", "read", models.Checkout, "checkout"
)
INTENTS_CREATE = Operation(
    "payment_intents.create", "POST", "/payment/intents", "write", models.PaymentIntent, creates=True
)
INTENTS_LIST = Operation(
    "payment_intents.list", "GET", "/payment/intents", "read", models.PaymentIntent, "page"
)
INTENTS_RETRIEVE_ATTEMPT = Operation(
    "payment_intents.retrieve_attempt",
    "GET",
    "/payment/intents/{payment_intent_id}/attempts/{attempt_id}",
    "read",
    models.PaymentAttempt,
)
INTENTS_REFUND_AVAILABILITY = Operation(
    "payment_intents.refund_availability",
    "GET",
    "/payment/intents/{payment_intent_id}/refunds/availability",
    "refund_availability",
    models.RefundAvailability,
)
INTENTS_REQUERY = Operation(
    "payment_intents.requery",
    "POST",
    "/payment/intents/{payment_intent_id}/requery",
    "diagnostic",
    models.Requery,
    record="payment_intent_id",
)
INTENTS_INSPECT_ATTEMPT = Operation(
    "payment_intents.inspect_attempt",
    "GET",
    "/payment/intents/{payment_intent_id}/attempts/{attempt_id}/inspect",
    "diagnostic",
    models.Inspection,
    record="attempt_id",
)
PAYOUTS_CREATE = Operation("payouts.create", "POST", "/payouts", "write", models.Payout, creates=True)
PAYOUTS_LIST = Operation("payouts.list", "GET", "/payouts", "read", models.Payout, "page")
PAYOUTS_SYNC = Operation(
    "payouts.sync", "GET", "/payouts/{payout_id}/sync", "diagnostic", models.Payout, record="payout_id"
)
PAYOUTS_INSPECT = Operation(
    "payouts.inspect",
    "GET",
    "/payouts/{payout_id}/inspect",
    "diagnostic",
    models.Inspection,
    record="payout_id",
)
METHODS_STATUS = Operation(
    "methods.status",
    "GET",
    "/utils/status/payment/method/{method_code}/{country_code}",
    "read",
    models.MethodStatus,
    "method_status",
)

OPERATIONS: Mapping[str, Operation] = {
    operation.name: operation
    for operation in (
        CHECKOUTS_CREATE,
        CHECKOUTS_RETRIEVE,
        INTENTS_CREATE,
        INTENTS_LIST,
        INTENTS_RETRIEVE_ATTEMPT,
        INTENTS_REFUND_AVAILABILITY,
        INTENTS_REQUERY,
        INTENTS_INSPECT_ATTEMPT,
        PAYOUTS_CREATE,
        PAYOUTS_LIST,
        PAYOUTS_SYNC,
        PAYOUTS_INSPECT,
        METHODS_STATUS,
    )
}


def id_problems(ids: Mapping[str, object]) -> dict[str, list[str]]:
    """Faults of path parameters. What is not a plain identifier is refused, never quoted and hoped for."""
    rule = "must be 1 to 128 letters, digits, hyphens or underscores"
    return {
        name: [rule] for name, value in ids.items() if not isinstance(value, str) or not _ID.fullmatch(value)
    }


def path_with(path: str, query: Mapping[str, object]) -> str:
    """A path with its query, percent-encoded; pairs whose value is None are left out."""
    pairs = [(name, value) for name, value in query.items() if value is not None]
    return f"{path}?{urlencode(pairs, doseq=True)}" if pairs else path


def find(method: str, path: str) -> tuple[Operation | None, str | None]:
    """The operation that a method and path name, and the record a per-record limit counts for."""
    for operation in OPERATIONS.values():
        pattern = _PLACEHOLDER.sub(r"(?P<\1>[^/?]+)", operation.path)
        match = re.fullmatch(pattern, path) if operation.method == method else None
        if match:
            return operation, match[operation.record] if operation.record else None
    return None, None


def default_limit(method: str, path: str) -> Limit:
    """The limit class of a path that the table does not list, by its method and last word."""
    if path.rstrip("/").rsplit("/", 1)[-1] in {"requery", "inspect", "sync"}:
        return "diagnostic"
    return "read" if method == "GET" else "write"
