"""How well a payment method has worked of late (gap J): what the API and the hosted page both show."""

from __future__ import annotations

from .records.records import GATEWAY_ERROR
from .records.tenants import Tenant

WINDOW_MINUTES = 15
_DEGRADED_FROM, _UNAVAILABLE_FROM = 0.25, 0.9
"""Shares of the window's attempts that failed at the gateway."""

_LEAST = 5
"""Attempts from which such a share says something."""


def method_health(tenant: Tenant, now: float, method: str, country: str | None) -> str:
    """`available` (nothing known), `operational`, `degraded` or `unavailable`, by how attempts ended.

    Only failures of the gateway count: a payer who declines, or has no money, says nothing of the method.
    """
    since = now - WINDOW_MINUTES * 60
    ended = failed = 0
    for attempt in reversed(tenant.attempts.values()):
        if attempt.created_at <= since:
            break
        if (attempt.method, attempt.country) == (method, country) and attempt.is_final:
            ended += 1
            failed += attempt.failure is not None and attempt.failure.category == GATEWAY_ERROR
    if not ended:
        return "available"
    if ended < _LEAST or failed / ended < _DEGRADED_FROM:
        return "operational"
    return "degraded" if failed / ended < _UNAVAILABLE_FROM else "unavailable"
