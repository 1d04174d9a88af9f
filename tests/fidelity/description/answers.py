"""Operations written out: parameters, bodies, statuses, headers (docs/interface.md, Endpoints and Errors)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .notation import Schema, reference
from .operations import Described

_TEXT: Schema = {"type": "string"}
_ID: Schema = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$"}

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
