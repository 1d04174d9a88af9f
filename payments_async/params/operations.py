"""The endpoint table: every operation of the interface, its path, its limit and its result.

To change a path, a method, a limit class or a result type, edit this table and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy
from typing import Any, Generic, Literal, Self, TypeVar
from urllib.parse import quote, unquote, urlencode

from .. import models

R_co = TypeVar("R_co", covariant=True)

Limit = Literal["write", "read", "diagnostic", "refund_availability"]
"""The limit that a call counts against (Limits, Rate limits)."""
Shape = Literal["record", "checkout", "page", "method_status", "raw"]
"""Place of the record in an answer: `data`, `data.checkout` and `data.payment`, a list, `data` and `meta`,
or the whole body."""

# Compiled by `re` at their first use.
_NO_SEGMENT = r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]"
_COUNTRY = r"[A-Za-z]{2}"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_PATH = r"(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+)+"
_QUERY = r"[A-Za-z0-9._~+%&=-]*"
_DOTS = r"/\.{1,2}(?:/|$)|%2[eEfF]|%5[cC]|%0|%1|%7[fF]"
_PLACEHOLDER = r"{(\w+)}"


class Operation(Generic[R_co]):
    """One endpoint (Endpoints, Summary)."""

    __slots__ = ("creates", "echo", "limit", "method", "name", "path", "record", "result", "shape")

    def __init__(
        self,
        name: str,
        method: str,
        path: str,
        limit: Limit,
        result: type[R_co] | str | None,
        shape: Shape = "record",
        *,
        creates: bool = False,
        record: str | None = None,
        echo: str | None = None,
    ) -> None:
        self.name: str = name
        self.method: str = method
        self.path: str = path
        """Relative to the base URL, with {placeholders}."""
        self.limit: Limit = limit
        self.result: type[R_co] | None = result  # type: ignore[assignment] # a name in _PaymentOperation
        """The record class of an answer."""
        self.shape: Shape = shape
        self.creates: bool = creates
        """True if the operation makes a record, so that its outcome is unknown without an answer."""
        self.record: str | None = record
        """The placeholder for the record's id, for a per-record limit or `echo`."""
        self.echo: str | None = echo
        """The answer's field that repeats the id of `record`."""

    def changed(self, *, name: str | None = None, limit: Limit | None = None) -> Self:
        """The same with another name or limit."""
        other = copy(self)
        other.name, other.limit = name or self.name, limit or self.limit
        return other

    def path_for(self, ids: Mapping[str, str] | None) -> str:
        """The path with its placeholders filled: each id percent-encoded, as one segment."""
        if not ids:
            return self.path
        return self.path.format(**{name: quote(value, safe="") for name, value in ids.items()})

    def ids_in(self, path: str) -> dict[str, str] | None:
        """The ids in a path of this operation; None for another path."""
        found = re.fullmatch(re.sub(_PLACEHOLDER, r"(?P<\1>[^/]+)", self.path), path)
        return {name: unquote(value) for name, value in found.groupdict().items()} if found else None

    @property
    def writes(self) -> bool:
        """True if the operation has an idempotency key."""
        return self.method != "GET"


class _PaymentOperation(Operation[Any]):
    """An endpoint whose record class is loaded when it is first asked for; `result` is its name."""

    __slots__ = ("_name",)

    @property
    def result(self) -> type[Any]:
        cls: type[Any] = getattr(models, self._name)
        return cls

    @result.setter
    def result(self, name: object) -> None:
        if isinstance(name, str):  # a copy sets the class, too
            self._name = name


CHECKOUTS_CREATE: Operation[models.Checkout] = _PaymentOperation(
    "checkouts.create", "POST", "/payment/checkouts", "write", "Checkout", "checkout", creates=True
)
CHECKOUTS_RETRIEVE: Operation[models.Checkout] = _PaymentOperation(
    "checkouts.retrieve",
    "GET",
    "/payment/checkouts/{checkout_id}",
    "read",
    "Checkout",
    "checkout",
    record="checkout_id",
    echo="id",
)
INTENTS_CREATE: Operation[models.PaymentIntent] = _PaymentOperation(
    "payment_intents.create", "POST", "/payment/intents", "write", "PaymentIntent", creates=True
)
INTENTS_LIST: Operation[models.PaymentIntent] = _PaymentOperation(
    "payment_intents.list", "GET", "/payment/intents", "read", "PaymentIntent", "page"
)
INTENTS_RETRIEVE_ATTEMPT: Operation[models.PaymentAttempt] = _PaymentOperation(
    "payment_intents.retrieve_attempt",
    "GET",
    "/payment/intents/{payment_intent_id}/attempts/{attempt_id}",
    "read",
    "PaymentAttempt",
    record="attempt_id",
    echo="id",
)
INTENTS_REFUND_AVAILABILITY: Operation[models.RefundAvailability] = _PaymentOperation(
    "payment_intents.refund_availability",
    "GET",
    "/payment/intents/{payment_intent_id}/refunds/availability",
    "refund_availability",
    "RefundAvailability",
)
INTENTS_REQUERY: Operation[models.Requery] = _PaymentOperation(
    "payment_intents.requery",
    "POST",
    "/payment/intents/{payment_intent_id}/requery",
    "diagnostic",
    "Requery",
    record="payment_intent_id",
    echo="payment_intent_id",
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
    "payouts.sync",
    "GET",
    "/payouts/{payout_id}/sync",
    "diagnostic",
    models.Payout,
    record="payout_id",
    echo="id",
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

OPERATIONS: Mapping[str, Operation[Any]] = {
    operation.name: operation for operation in list(globals().values()) if isinstance(operation, Operation)
}


def id_problems(ids: Mapping[str, object]) -> dict[str, list[str]]:
    """Check path parameters. Ids are opaque: any text that can be one segment of a path is sent (gap AC)."""
    return {name: [problem] for name, value in ids.items() if (problem := _id_problem(name, value))}


def _id_problem(name: str, value: object) -> str | None:
    if name == "country_code":
        fits = isinstance(value, str) and re.fullmatch(_COUNTRY, value)
        return None if fits else "must be a two-letter country code"
    if is_segment(value):
        return None
    return "must be an id: text other than . and .., without control characters or lone surrogates"


def is_segment(value: object) -> bool:
    """Return whether a value can be one segment of a path, percent-encoded."""
    return isinstance(value, str) and value not in ("", ".", "..") and not re.search(_NO_SEGMENT, value)


def path_with(path: str, query: Mapping[str, object]) -> str:
    """Add a query to a path, percent-encoded; pairs whose value is None are left out."""
    pairs = [(name, _plain(value)) for name, value in query.items() if value is not None]
    return f"{path}?{urlencode(pairs, doseq=True)}" if pairs else path


def _plain(value: object) -> object:
    """A query value as JSON would write it: `true`, not `True`."""
    return str(value).lower() if isinstance(value, bool) else value


def record_of(method: str, path: str) -> tuple[Operation[Any] | None, str | None]:
    """Find the operation of a method and path in the table, and the id for its per-record limit."""
    for operation in OPERATIONS.values():
        if operation.method == method and (ids := operation.ids_in(path)) is not None:
            return operation, ids[operation.record] if operation.record else None
    return None, None


def is_safe_path(path: str) -> bool:
    """Return whether a path of `client.request` has plain segments only, and no `..`."""
    return re.fullmatch(_PATH, path) is not None and not re.search(_DOTS, path)


def can_be_prepared(name: str, path: str) -> bool:
    """Return whether a prepared write can have this operation name and this path, with its query."""
    plain, _, query = path.partition("?")
    if not re.fullmatch(_QUERY, query):
        return False
    operation = OPERATIONS.get(name)
    if operation is not None:
        ids = operation.ids_in(plain)
        is_its_path = ids is not None and not id_problems(ids) and operation.path_for(ids) == plain
        return operation.writes and is_its_path
    method, _, own = name.partition(" ")
    return method in METHODS and method != "GET" and own == plain and is_safe_path(plain)


def by_name(name: str) -> Operation[Any]:
    """Find the operation of a prepared request: one of the table, or a custom `POST /path`."""
    method, _, path = name.partition(" ")
    return OPERATIONS.get(name) or custom(method, path)


def custom(method: str, path: str, result: type[Any] | None = None) -> Operation[Any]:
    """Make an operation for `client.request`: a write creates a record unless the table says otherwise."""
    listed, _ = record_of(method, path)
    creates = method != "GET" and (listed is None or listed.creates)
    limit = default_limit(method, path)
    return Operation(f"{method} {path}", method, path, limit, result, "raw", creates=creates)


def default_limit(method: str, path: str) -> Limit:
    """The limit class of a path that the table does not list, by its method and last word."""
    if path.rstrip("/").rsplit("/", 1)[-1] in {"requery", "inspect", "sync"}:
        return "diagnostic"
    return "read" if method == "GET" else "write"
