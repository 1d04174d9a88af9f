"""The interface's limits on a request, asked without sending anything: for files, forms and dry runs."""

from __future__ import annotations

from datetime import UTC, datetime

from ._validation.tables import check
from .params import PayoutRequest

_ANY_MOMENT = datetime.max.replace(tzinfo=UTC)  # no field of a payout is bound to the present


def check_payout(request: PayoutRequest) -> dict[str, list[str]]:
    """Every fault of a payout: {field, dotted when nested: [every rule it breaks]}, as in `InvalidRequest`.

    Empty when it may be sent (Endpoints, POST /payouts). Texts name rules and kinds, never values.
    """
    return check(request, now=_ANY_MOMENT)
