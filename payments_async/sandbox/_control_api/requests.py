"""The journal and the request log over the control API: one request in full, as code, and once more."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from msgspec.structs import replace

from .._common.values import Request
from .._journal import LoggedExchange
from ..advisor._evidence import REPLAY_HEADER
from .arguments import ControlCall, Refusal, one_of
from .copy_as_code import written
from .failure_reasons import reason
from .json_views import entry_view, exchange_view, request_view

if TYPE_CHECKING:
    from .._controls import SandboxControls

_SHOWN = 100
_LET_GO = "The headers and bodies of this request are no longer kept, to make room for newer requests."


def journal(sandbox: SandboxControls, call: ControlCall) -> object:
    """List the journal's entries after a number, oldest first."""
    after = call.whole("after", 0, most=10**12)
    entries = sandbox.entries(after, call.whole("limit", _SHOWN))
    return {"last": sandbox.journal.last, "entries": [entry_view(entry) for entry in entries]}


def log(sandbox: SandboxControls, call: ControlCall) -> object:
    """The request log, newest first: operation, status, idempotency key, fault. Start here when a program
    misbehaves, then look at one with `request`.
    """
    wanted, limit = call.query.get("operation"), call.whole("limit", _SHOWN)
    with sandbox.reading():
        newest = sandbox.journal.newest_exchanges()
        logged = (exchange for exchange in newest if wanted in (None, exchange.log.operation))
        return {"requests": [request_view(exchange) for exchange in islice(logged, limit)]}


def find(sandbox: SandboxControls, request_id: str) -> LoggedExchange:
    """The request of this id; `LookupError` when the journal has it no longer."""
    with sandbox.reading():
        # a copy, because the journal may drop bodies at any time
        return replace(sandbox.journal.with_causes(request_id)[0])


def one(sandbox: SandboxControls, call: ControlCall) -> object:
    """One request with headers and bodies, and the reason why it failed. Account data is masked."""
    exchange = find(sandbox, call.path["id"])
    with sandbox.reading() as world:
        why = reason(exchange, world.limits)
    return {**exchange_view(exchange, reveal=call.reveals), "reason": why}


def code(sandbox: SandboxControls, call: ControlCall) -> object:
    """Code that sends a request like this one, masked unless asked; the key is an environment variable."""
    exchange = find(sandbox, call.path["id"])
    kind = one_of("as", call.query.get("as", "async"), ("async", "sync", "curl"))
    if exchange.body is None:
        raise Refusal(410, _LET_GO)
    stored = _has_answer(sandbox, exchange)
    text, is_masked = written(exchange, sandbox.origin, kind, reveal=call.reveals, is_stored=stored)
    return {"code": text, "masked": is_masked}


def _has_answer(sandbox: SandboxControls, exchange: LoggedExchange) -> bool:
    """True if an answer is stored, still, for the request's idempotency key."""
    log, now = exchange.log, sandbox.clock.now()
    with sandbox.reading() as world:
        tenants = [tenant for tenant in world.tenants.values() if tenant.fingerprint == log.key]
        return any(tenant.replies.find(log.idempotency_key or "", now) for tenant in tenants)


def replay(sandbox: SandboxControls, call: ControlCall) -> object:
    """Send a request again: same key, same idempotency key, same bytes. It is logged as any other."""
    exchange = find(sandbox, call.path["id"])
    if exchange.body is None:
        raise Refusal(410, _LET_GO)
    if exchange.log.key is None:
        raise Refusal(409, "The request carried no key of this sandbox, so it cannot be sent again.")
    return request_view(sandbox.send_again(*_again(exchange, exchange.body)))


def _again(exchange: LoggedExchange, body: bytes) -> tuple[Request, str]:
    log = exchange.log
    path, _, query = log.path.partition("?")
    headers = {**log.headers, REPLAY_HEADER: log.request_id}
    return Request(log.method, path, query, headers, body), log.key or ""
