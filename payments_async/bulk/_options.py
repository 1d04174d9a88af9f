"""Checks of a batch's name, of its limits, and of the options of a run, before anything is sent."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final
from unicodedata import normalize

from .._validation.rules import name_problem
from ..params import Money, decimal_if_readable
from .errors import BulkError

_LONGEST: Final = 191
"""Characters of a batch's name at most, as for a row's."""


def limits(
    max_amount: Money | None, max_rows: int | None, max_failure_rate: float | None
) -> tuple[Decimal | None, int | None, float | None]:
    """Check the limits of a batch. Raises BulkError for an invalid one."""
    if max_rows is not None and not _is_whole(max_rows, 0):
        raise BulkError("max_rows must be a whole number, 0 or more")
    if max_failure_rate is not None and not _is_number(max_failure_rate, 0, 1):
        raise BulkError("max_failure_rate must be a share: a number from 0 to 1")
    most = decimal_if_readable(max_amount)
    if most is not None and (not isinstance(most, Decimal) or not most.is_finite() or most < 0):
        raise BulkError("max_amount must be exact, and 0 or more: a Decimal, a whole number or decimal text")
    return most, max_rows, max_failure_rate


def require_count(name: str, value: object) -> None:
    """Raise BulkError for anything but a whole number of 1 or more."""
    if not _is_whole(value, 1):
        raise BulkError(f"{name} must be a whole number, 1 or more")


def require_seconds(name: str, value: object, *, allows_none: bool = False) -> None:
    """Raise BulkError for anything but a positive number of seconds; `allows_none`: 0 is allowed too."""
    if not _is_number(value, 0, math.inf) or value == math.inf or (value == 0 and not allows_none):
        what = "number of seconds, 0 or more" if allows_none else "positive number of seconds"
        raise BulkError(f"{name} must be a {what}")


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: object, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def composed(batch_id: str | None) -> str | None:
    """A batch's name as ledgers have it, with its letters composed (NFC); what is no text stays as it is."""
    return normalize("NFC", batch_id) if isinstance(batch_id, str) else batch_id


def require_batch_id(value: object) -> None:
    """Raise BulkError for an invalid batch id. An empty text is one: it must not count as no id."""
    if value is None:
        return
    if not isinstance(value, str) or not value.strip():
        raise BulkError("batch_id must be text, not blank; leave it out to name the batch by its input")
    if not value.isprintable():
        raise BulkError("batch_id must be of printable characters: no line ends, tabs or other control ones")
    if problem := name_problem(value):
        raise BulkError(f"batch_id {problem}")
    if len(value) > _LONGEST:
        raise BulkError(f"batch_id must have at most {_LONGEST} characters, and has {len(value)}")
