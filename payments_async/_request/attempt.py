"""Makes the HTTP request of one attempt: address, headers, body, time-out. Pure.

(Conventions; Authentication; Limits, Idempotency.)
"""

from __future__ import annotations

from .. import _assumptions
from .._http.addresses import same_service
from .._http.types import HTTPRequest
from ..errors import PaymentsError, ResponseMismatch
from ..params import PreparedRequest
from .auth import SecretKey
from .idempotency import HEADER
from .prepare import Call
from .settings import Settings


def make_request(
    call: Call, settings: Settings, key: SecretKey, deadline: float | None, now: float
) -> HTTPRequest:
    """Make the request of one attempt, with at most the time that is left (monotonic seconds)."""
    timeout = call.timeout or settings.timeout
    if deadline is not None:
        timeout = min(timeout, max(deadline - now, 0.001))
    headers = _headers(call, settings, key)
    body = None if call.prepared is None else call.prepared.body
    url = settings.base_url + call.path
    return HTTPRequest(call.operation.method, url, headers, body, timeout, may_send=call.may_send)


def is_sent(request: HTTPRequest | None) -> bool:
    """Return whether any byte of a request may have been sent; None stands for a request never made."""
    return request is not None and request.sent


def refuse_connection(request: HTTPRequest | None, error: PaymentsError) -> None:
    """Close a connection that gave another call's answer: its next answer may be wrong, too."""
    if isinstance(error, ResponseMismatch) and request is not None and request.connection is not None:
        request.connection.abort()


def _headers(call: Call, settings: Settings, key: SecretKey) -> dict[str, str]:
    """Our headers; the caller's replace those of the same name, whatever their case."""
    headers: dict[str, str] = {
        "Authorization": key.authorization,
        "User-Agent": settings.user_agent,
        "Accept": "application/json",
        "Accept-Encoding": "gzip" if call.prepared is None else "identity",
    }
    if call.prepared is not None:
        headers["Content-Type"] = "application/json"
        headers[HEADER] = call.prepared.idempotency_key
    if not call.headers:
        return headers
    theirs = {name.lower() for name in call.headers}
    return {**{name: value for name, value in headers.items() if name.lower() not in theirs}, **call.headers}


def foreign(prepared: PreparedRequest, base_url: str, key: SecretKey) -> str | None:
    """The reason not to send a prepared request to this address or environment; None to send it."""
    if prepared.base_url != base_url and not same_service(prepared.base_url, base_url):
        return f"this request was prepared for {prepared.base_url}; this client talks to another address"
    if prepared.environment != key.environment:
        return f"this request was prepared for {prepared.environment}, the key is a {key.environment} key"
    return None


def unprotected(prepared: PreparedRequest, age: float, *, same_key: bool) -> str | None:
    """The reason why a request of this age may be carried out twice if sent now; None when it cannot."""
    if not same_key:
        return (
            "this request was prepared under another secret key; if that key was rotated within its "
            "project, send it with rotated_key=True"
        )
    if prepared.reference is None and age >= _assumptions.KEY_TRUSTED_FOR:
        return (
            "this request was prepared over 23 hours ago, and its key may protect it no longer: "
            "prepare it anew if it was never sent, else look for its record"
        )
    return None
