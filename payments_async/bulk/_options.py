"""What a run is asked for, checked before anything is sent."""

from __future__ import annotations

import math
from decimal import Decimal

from ..params import Money, decimal_if_readable
from ._closing import StopRules
from .errors import BulkError


def stop_rules(
    max_amount: Money | None, max_rows: int | None, max_failure_rate: float | None, concurrency: int
) -> StopRules:
    """The rules that end a run early. Raises BulkError for an option that cannot be used."""
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise BulkError("concurrency must be a whole number, 1 or more")
    rules = StopRules(decimal_if_readable(max_amount), max_rows, max_failure_rate)
    if rules.max_amount is not None and not isinstance(rules.max_amount, Decimal):
        raise BulkError("max_amount must be exact: a Decimal, a whole number or decimal text")
    return rules


def require_seconds(name: str, value: object) -> None:
    """Raise BulkError for anything but a positive number of seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise BulkError(f"{name} must be a positive number of seconds")
