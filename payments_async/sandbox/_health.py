"""How well a payment method has worked of late (gap J): what the API and the hosted page both show."""

from __future__ import annotations

from ._tenants import Tenant

WINDOW_MINUTES = 15
_DEGRADED_FROM, _UNAVAILABLE_FROM = 0.25, 0.9
"""Shares of failed attempts in the window."""


def method_health(tenant: Tenant, now: float, method: str, country: str | None) -> str:
    """`available` (nothing known), `operational`, `degraded` or `unavailable`, by how attempts ended."""
    since = now - WINDOW_MINUTES * 60
    ended: list[str] = []
    for attempt in reversed(tenant.attempts.values()):
        if attempt.created_at <= since:
            break
        if (attempt.method, attempt.country) == (method, country) and attempt.is_final:
            ended.append(attempt.status)
    if not ended:
        return "available"
    failed = ended.count("failed") / len(ended)
    if failed < _DEGRADED_FROM:
        return "operational"
    return "degraded" if failed < _UNAVAILABLE_FROM else "unavailable"
