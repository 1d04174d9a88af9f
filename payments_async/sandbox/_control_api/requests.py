"""Requests over the control API: the log, one request in full, and as a curl command."""

from __future__ import annotations

import shlex
from itertools import islice
from typing import Annotated, Final

from msgspec import Meta
from msgspec.structs import replace

from .._common.json import JsonObject, decode, encode
from .._common.masking import HIDDEN, mask, mask_path
from .._common.values import RequestRefused
from .._controls import SandboxControls
from .._journal import LoggedExchange
from .failure_reasons import reason
from .json_views import exchange_view, request_view
from .values import Limit, Refusal

Operation = Annotated[str, Meta(description="only those of this operation, such as payouts.create")]

_SENT_ALONG: Final = ("x-idempotency-key", "x-sandbox-scenario", "content-type")

# Plain words and no quote: some shells read a pasted comment as a command.
_MASKED: Final = (
    "# This does not run as it is, its account data is masked: press Show account data first, on the page of "
    "the request, or ask with reveal=1\n"
)
_KEYED: Final = (
    "# It has the idempotency key of the request: while an answer is stored under that, for 24 hours, it "
    "brings the answer again and moves nothing. Else it is carried out and may move money. Give a new key to "
    "pay anew\n"
)


def requests(sandbox: SandboxControls, operation: Operation = "", limit: Limit = 100) -> JsonObject:
    """The request log, newest first: operation, status, idempotency key, fault. Start here when a program
    misbehaves, then look at one with `request`.
    """
    with sandbox.reading():
        newest = sandbox.journal.newest_exchanges()
        logged = (exchange for exchange in newest if operation in ("", exchange.log.operation))
        return {"requests": [request_view(exchange) for exchange in islice(logged, limit)]}


def _exchange(sandbox: SandboxControls, request_id: str) -> LoggedExchange:
    """The request of this id; `LookupError` when the journal has it no longer."""
    with sandbox.reading():
        # a copy, because the journal may drop bodies at any time
        return replace(sandbox.journal.with_causes(request_id)[0])


def request(sandbox: SandboxControls, id: str, reveal: bool = False) -> JsonObject:
    """One request with headers and bodies, and the reason why it failed. Account data is masked."""
    exchange = _exchange(sandbox, id)
    return {**exchange_view(exchange, reveal=reveal), "reason": reason(exchange)}


def code(sandbox: SandboxControls, id: str, reveal: bool = False) -> JsonObject:
    """The request as a curl command, masked unless asked; the key is an environment variable.

    Comments in front say that a masked command does not run, and what its idempotency key does.
    """
    exchange = _exchange(sandbox, id)
    if exchange.body is None:
        raise Refusal(410, "Its body is no longer kept, to make room for newer requests.")
    shown = exchange if reveal else _masked(exchange)
    is_masked = (shown.log.path, shown.body) != (exchange.log.path, exchange.body)
    has_key = exchange.log.method != "GET" and exchange.log.idempotency_key is not None
    notes = (_MASKED if is_masked else "") + (_KEYED if has_key else "")
    return {"code": notes + _command(shown, sandbox.origin), "masked": is_masked}


def _masked(exchange: LoggedExchange) -> LoggedExchange:
    """The same request with account data masked; byte for byte when it has none."""
    path, body = mask_path(exchange.log.path), exchange.body
    if body:
        try:
            masked = mask(value := decode(body))
            body = body if masked == value else encode(masked)
        except RequestRefused:
            body = HIDDEN.encode()  # an unreadable body may hold anything
    return replace(exchange, log=replace(exchange.log, path=path), body=body)


def _command(exchange: LoggedExchange, origin: str) -> str:
    log = exchange.log
    parts = [
        f"curl -sS -X {shlex.quote(log.method)} {shlex.quote(origin + log.path)}",
        '-H "Authorization: Bearer $PAYMENTS_API_KEY"',
        *(f"-H {shlex.quote(f'{name}: {log.headers[name]}')}" for name in _SENT_ALONG if name in log.headers),
    ]
    if exchange.body:
        parts.append(f"--data-raw {shlex.quote(exchange.body.decode('utf-8', 'replace'))}")
    return " \\\n  ".join(parts) + "\n"
