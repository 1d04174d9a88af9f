"""The table of operations (`docs/interface.md`, Endpoints): address, limit class, possible outcomes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

import attrs

from .rate_limits import LimitClass

PREFIX = "/v1"

CONSOLE = "/_sandbox/"
"""The path of the inspector's pages, which are not part of the interface."""
CONTROL_API = CONSOLE + "api/"

INTERFACE_VERSION = "1.0.0"
"""The version of the description this service follows (`docs/interface.md`, Versioning)."""

_PAYOUT_OUTCOMES = frozenset({"complete", "fail", "hang"})
_PAYMENT_OUTCOMES = _PAYOUT_OUTCOMES | {"expire", "action", "failover"}


@attrs.frozen
class ServiceOperation:
    """One method and path."""

    name: str
    method: str
    path: str  # relative to the base address, parameters in braces
    limit: LimitClass
    record: str | None = None
    """The path parameter that names a record with its own limit."""
    outcomes: frozenset[str] = frozenset()
    """The outcomes that a scenario may give to a record of this operation."""

    @property
    def creates(self) -> bool:
        return bool(self.outcomes)


OPERATIONS: tuple[ServiceOperation, ...] = (
    ServiceOperation("checkouts.create", "POST", "/payment/checkouts", "writes", outcomes=_PAYMENT_OUTCOMES),
    ServiceOperation("checkouts.retrieve", "GET", "/payment/checkouts/{checkout_id}", "reads"),
    ServiceOperation(
        "payment_intents.create", "POST", "/payment/intents", "writes", outcomes=_PAYMENT_OUTCOMES
    ),
    ServiceOperation("payment_intents.list", "GET", "/payment/intents", "reads"),
    ServiceOperation(
        "payment_intents.retrieve_attempt",
        "GET",
        "/payment/intents/{payment_intent_id}/attempts/{attempt_id}",
        "reads",
    ),
    ServiceOperation(
        "payment_intents.refund_availability",
        "GET",
        "/payment/intents/{payment_intent_id}/refunds/availability",
        "refund_availability",
    ),
    ServiceOperation(
        "payment_intents.requery",
        "POST",
        "/payment/intents/{payment_intent_id}/requery",
        "diagnostics",
        record="payment_intent_id",
    ),
    ServiceOperation(
        "payment_intents.inspect_attempt",
        "GET",
        "/payment/intents/{payment_intent_id}/attempts/{attempt_id}/inspect",
        "diagnostics",
        record="attempt_id",
    ),
    ServiceOperation("payouts.create", "POST", "/payouts", "writes", outcomes=_PAYOUT_OUTCOMES),
    ServiceOperation("payouts.list", "GET", "/payouts", "reads"),
    ServiceOperation("payouts.sync", "GET", "/payouts/{payout_id}/sync", "diagnostics", record="payout_id"),
    ServiceOperation(
        "payouts.inspect", "GET", "/payouts/{payout_id}/inspect", "diagnostics", record="payout_id"
    ),
    ServiceOperation(
        "methods.status", "GET", "/utils/status/payment/method/{method_code}/{country_code}", "reads"
    ),
)
NAMES = tuple(operation.name for operation in OPERATIONS)


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))


_FIXED: Mapping[tuple[str, str], ServiceOperation] = {
    (operation.method, PREFIX + operation.path): operation
    for operation in OPERATIONS
    if "{" not in operation.path
}
_WITH_PARAMETERS: tuple[tuple[ServiceOperation, re.Pattern[str]], ...] = tuple(
    (operation, _pattern(PREFIX + operation.path)) for operation in OPERATIONS if "{" in operation.path
)


def find_operation(method: str, path: str) -> tuple[ServiceOperation, dict[str, str]] | None:
    """Find the operation at an address, and its path parameters; None when there is none."""
    fixed = _FIXED.get((method, path))
    if fixed is not None:
        return fixed, {}
    for operation, pattern in _WITH_PARAMETERS:
        if operation.method == method and (match := pattern.fullmatch(path)):
            return _with_values(operation, match.groupdict())
    return None


def _with_values(
    operation: ServiceOperation, encoded: Mapping[str, str]
) -> tuple[ServiceOperation, dict[str, str]] | None:
    """Decode the ids in a path. An id is any printable text in one segment, percent-encoded."""
    values = {name: unquote(value) for name, value in encoded.items()}
    return (operation, values) if all(value.isprintable() for value in values.values()) else None
