"""A call as the request that goes out: address, headers, body, time. Pure (Conventions; Authentication)."""

from __future__ import annotations

from ._auth import Key
from ._calls import Call
from ._idempotency import HEADER
from ._settings import Settings
from ._wire import Flight


def make_flight(call: Call, settings: Settings, key: Key, deadline: float | None, now: float) -> Flight:
    """One attempt. `deadline` and `now` are monotonic seconds; the attempt gets no more time than is left."""
    timeout = call.timeout or settings.timeout
    if deadline is not None:
        timeout = min(timeout, max(deadline - now, 0.001))
    headers = _headers(call, settings, key)
    body = None if call.prepared is None else call.prepared.body
    return Flight(call.operation.method, settings.base_url + call.path, headers, body, timeout)


def _headers(call: Call, settings: Settings, key: Key) -> dict[str, str]:
    """Ours, and the caller's over them, whatever their case."""
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
