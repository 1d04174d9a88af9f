"""Requests over the control API: the log, one request in full, and as a curl command."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Final

from msgspec import Meta
from msgspec.structs import replace

from .._common.json import JsonObject
from .._controls import SandboxControls
from .._journal import LoggedExchange
from .as_curl import as_curl
from .failure_reasons import reason
from .json_views import exchange_view, request_view
from .values import Limit, Refusal

Operation = Annotated[str, Meta(description="only those of this operation, such as payouts.create")]

_LET_GO: Final = "Its body is no longer kept, to make room for newer requests."


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
    """The request as a curl command, masked unless asked; the key is an environment variable."""
    exchange = _exchange(sandbox, id)
    if exchange.body is None:
        raise Refusal(410, _LET_GO)
    text, is_masked = as_curl(exchange, sandbox.origin, reveal=reveal)
    return {"code": text, "masked": is_masked}
