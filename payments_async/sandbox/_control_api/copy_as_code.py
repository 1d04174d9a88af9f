"""A logged request as code: a call of the SDK, awaited or blocking, or a curl command. No key in any of them.

The amount becomes a text, as the SDK takes it; everything else is the request's own JSON as Python literals,
fractions as `Decimal`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from decimal import Decimal
from pprint import pformat
from urllib.parse import parse_qsl

from msgspec.structs import replace

from .._api.rule_fields import BODIES, QUERIES
from .._common.json import JsonObject, decode, encode
from .._common.masking import HIDDEN, mask, mask_path
from .._common.operations import PREFIX, find_operation
from .._common.values import RequestRefused
from .._journal import LoggedExchange

_QUERY = {
    "per_page": "page_size",
    "created_at[gte]": "created_on_or_after",
    "created_at[lte]": "created_on_or_before",
}
_SENT_ALONG = ("x-idempotency-key", "x-sandbox-scenario", "content-type")
_UNREADABLE = frozenset({400, 422})
"""Statuses of requests that the SDK's own calls refuse before anything is sent."""

_WIDTH = 96
_OTHER_BODY = "# Its body was no JSON object, which the SDK does not send; curl does.\n"
# plain words and no quote: some shells read a pasted comment as a command
_MASKED = (
    "# This does not run as it is, its account data is masked: press Show account data first, on the page of "
    "the request, or ask with reveal=1\n"
)
_STORED = (
    "# Under the idempotency key of the request an answer is stored, for 24 hours: this brings it again, or "
    "is refused, and moves nothing. Give a new one to pay anew\n"
)
_NOT_STORED = (
    "# Under the idempotency key of the request no answer is stored: this is carried out, and may move "
    "money\n"
)


def written(
    exchange: LoggedExchange, origin: str, kind: str, *, reveal: bool, is_stored: bool
) -> tuple[str, bool]:
    """The request as code of a kind (`async`, `sync`, `curl`), and whether account data in it is masked.

    It is unless revealed. Comments in front say that such code does not run, and what its idempotency
    key does: `is_stored` says whether that has an answer.
    """
    shown = exchange if reveal else _masked(exchange)
    code = curl_code(shown, origin) if kind == "curl" else sdk_code(shown, origin, kind)
    is_masked = (shown.log.path, shown.body) != (exchange.log.path, exchange.body)
    has_key = exchange.log.method != "GET" and exchange.log.idempotency_key is not None
    note = (_STORED if is_stored else _NOT_STORED) if has_key else ""
    return (_MASKED if is_masked else "") + note + code, is_masked


def _masked(exchange: LoggedExchange) -> LoggedExchange:
    """The same request with account data masked; byte for byte when it has none."""
    path = mask_path(exchange.log.path)
    return replace(exchange, log=replace(exchange.log, path=path), body=_masked_body(exchange.body))


def _masked_body(body: bytes | None) -> bytes | None:
    if not body:
        return body
    try:
        value = decode(body)
    except RequestRefused:
        return HIDDEN.encode()  # an unreadable body may hold anything
    masked = mask(value)
    return body if masked == value else encode(masked)


def curl_code(exchange: LoggedExchange, origin: str) -> str:
    """The request as a curl command; the key is `$PAYMENTS_API_KEY`."""
    log = exchange.log
    parts = [f"curl -sS -X {shlex.quote(log.method)} {shlex.quote(origin + log.path)}"]
    parts.append('-H "Authorization: Bearer $PAYMENTS_API_KEY"')
    sent = [f"{name}: {log.headers[name]}" for name in _SENT_ALONG if name in log.headers]
    parts += [f"-H {shlex.quote(line)}" for line in sent]
    if exchange.body:
        parts.append(f"--data-raw {shlex.quote(exchange.body.decode('utf-8', 'replace'))}")
    return " \\\n  ".join(parts) + "\n"


def sdk_code(exchange: LoggedExchange, origin: str, kind: str) -> str:
    """The request as a call of the SDK; the key is read from `PAYMENTS_API_KEY`."""
    call = _call(exchange)
    note = "" if _body(exchange) is not None else _OTHER_BODY
    base_url = f'"{origin}{PREFIX}"'
    exact = "from decimal import Decimal\n\n" if "Decimal(" in call else ""
    if kind == "sync":
        return (
            f"{note}{exact}from payments_sync import Payments\n\n"
            f"with Payments(base_url={base_url}) as client:  # the key: PAYMENTS_API_KEY\n"
            f"    found = {_indented(call, 4)}\n    print(found)\n"
        )
    return (
        note + "import asyncio\n" + (exact or "\n") + "from payments_async import AsyncPayments\n\n\n"
        "async def main() -> None:\n"
        f"    async with AsyncPayments(base_url={base_url}) as client:  # the key: PAYMENTS_API_KEY\n"
        f"        found = await {_indented(call, 8)}\n        print(found)\n\n\n"
        "asyncio.run(main())\n"
    )


def _call(exchange: LoggedExchange) -> str:
    """The one expression that sends the request."""
    log = exchange.log
    path, _, query = log.path.partition("?")
    matched = find_operation(log.method, path)
    filters = dict(parse_qsl(query, keep_blank_values=True))
    if matched is None:
        return _generic(exchange, path, filters)
    operation, values = matched
    named, known = (_body(exchange) or {}, BODIES) if operation.creates else (filters, QUERIES)
    if log.status in _UNREADABLE or not set(named) <= set(known.get(operation.name, named)):
        return _generic(exchange, path, filters)
    if operation.name in BODIES:
        return _written(f"client.{operation.name}", _creation(exchange))
    if operation.name in QUERIES:
        renamed: JsonObject = {_QUERY.get(name, name): value for name, value in filters.items()}
        return _written(f"client.{operation.name}", renamed | _page_size(renamed))
    return f"client.{operation.name}({', '.join(repr(value) for value in values.values())})"


def _page_size(named: Mapping[str, object]) -> JsonObject:
    size = str(named.get("page_size", ""))
    return {"page_size": int(size)} if size.isascii() and size.isdigit() else {}


def _creation(exchange: LoggedExchange) -> JsonObject:
    """Keyword arguments: the body's members, with the idempotency key of the request."""
    arguments = _body(exchange) or {}
    if isinstance(arguments.get("amount"), Decimal):
        arguments["amount"] = str(arguments["amount"])
    return arguments | _key(exchange)


def _key(exchange: LoggedExchange) -> JsonObject:
    key = exchange.log.idempotency_key
    return {} if key is None else {"idempotency_key": key}


def _generic(exchange: LoggedExchange, path: str, filters: Mapping[str, str]) -> str:
    arguments: JsonObject = {}
    if filters:
        arguments["params"] = dict(filters)
    if body := _body(exchange):
        arguments["json"] = body
    log = exchange.log
    if log.method != "GET":
        arguments |= _key(exchange)
    head = f"client.request({log.method!r}, {path.removeprefix(PREFIX)!r}"
    return _written(head, arguments, opened=True)


def _body(exchange: LoggedExchange) -> JsonObject | None:
    """The body's members; None when it is no JSON object."""
    try:
        value = decode(exchange.body or b"{}")
    except RequestRefused:
        return None
    return value if isinstance(value, dict) else None


def _written(function: str, arguments: Mapping[str, object], *, opened: bool = False) -> str:
    start = f"{function}, " if opened and arguments else function if opened else f"{function}("
    if not arguments:
        return f"{start})"
    lines = [
        f"    {name}={pformat(value, width=_WIDTH, sort_dicts=False)}," for name, value in arguments.items()
    ]
    return start.rstrip() + "\n" + "\n".join(lines) + "\n)"


def _indented(text: str, by: int) -> str:
    return text.replace("\n", "\n" + " " * by)
