"""Checks of a request against the interface's limits, sending nothing: for files, forms and dry runs."""

from __future__ import annotations

from datetime import UTC, datetime

from ._validation.tables import check
from .params import PayoutRequest

_ANY_MOMENT = datetime.max.replace(tzinfo=UTC)  # no rule of a payout's fields depends on the time


def check_payout(request: PayoutRequest) -> dict[str, list[str]]:
    """Check a payout: {field, dotted when nested: [every rule it breaks]}, as in `InvalidRequest`.

    Empty when the payout may be sent (Endpoints, POST /payouts). Texts name rules and types, never values.
    """
    return check(request, now=_ANY_MOMENT)
