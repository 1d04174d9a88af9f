"""The options of a run, checked before anything is sent, and the keyword arguments of a batch's methods."""

from __future__ import annotations

import math
import os
from decimal import Decimal
from typing import Final, TypedDict
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


class ReadingOptions(TypedDict, total=False):
    """The options for reading an input, of `load` and `preview`."""

    batch_id: str | None
    """The batch's name; by default the hash of the input. Every row's reference is made of it, so that the
    same batch is never paid twice, not even from another ledger. A live key needs a name for a new batch,
    unless every row has a reference of its own."""
    reference_prefix: str
    """A prefix for every reference that is made."""
    proofs: bool
    """Mark each payout with one metadata pair that shows whose it is; rows keep nine. Default True."""
    skip_invalid: bool
    """Leave rows with faults out, instead of refusing the input."""
    rejects: str | os.PathLike[str] | None
    """A file for the rows with faults, to be corrected (mode 0600), each with the reference that it has
    in this batch. The input is then read once more."""
    doubts: bool
    """Accept values that are allowed and probably a slip, such as a phone number of another country, with a
    warning; False makes each a fault. Default True."""
    strict_amounts: bool
    """Refuse amounts of more than 15 significant digits, instead of warning."""


class LoadOptions(ReadingOptions, total=False):
    """The options of `load`: those for reading, and the changes it may make."""

    accept_edits: bool
    """Accept an edited input: give rows that are new or rejected their new content, under the same
    reference, and cancel new rows that were removed. All or nothing: any other difference is refused."""
    pay_again: bool
    """Import an input that another ledger in the folder holds as another batch: its rows are paid again."""
