"""What a run is asked for, checked before anything is sent."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final

from ..params import Money, decimal_if_readable
from ._closing import StopRules
from .errors import BulkError

_LONGEST: Final = 191
"""Characters of a batch's name: as many as of a row's."""


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


def require_batch_id(value: object) -> None:
    """Raise BulkError for what cannot name a batch. An empty text is no name, and must not count as none."""
    if value is None:
        return
    if not isinstance(value, str) or not value.strip():
        raise BulkError("batch_id must be text, not blank; leave it out to name the batch by its input")
    if not value.isprintable():
        raise BulkError("batch_id must be of printable characters: no line ends, tabs or other control ones")
    if len(value) > _LONGEST:
        raise BulkError(f"batch_id must have at most {_LONGEST} characters, and has {len(value)}")
