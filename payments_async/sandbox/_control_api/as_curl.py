"""A logged request as a curl command. It has no key: that is read from `PAYMENTS_API_KEY`."""

from __future__ import annotations

import shlex
from typing import Final

from msgspec.structs import replace

from .._common.json import decode, encode
from .._common.masking import HIDDEN, mask, mask_path
from .._common.values import RequestRefused
from .._journal import LoggedExchange

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


def as_curl(exchange: LoggedExchange, origin: str, *, reveal: bool) -> tuple[str, bool]:
    """The command, and whether account data in it is masked, as it is unless revealed.

    Comments in front say that a masked command does not run, and what its idempotency key does.
    """
    shown = exchange if reveal else _masked(exchange)
    is_masked = (shown.log.path, shown.body) != (exchange.log.path, exchange.body)
    has_key = exchange.log.method != "GET" and exchange.log.idempotency_key is not None
    notes = (_MASKED if is_masked else "") + (_KEYED if has_key else "")
    return notes + _command(shown, origin), is_masked


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
