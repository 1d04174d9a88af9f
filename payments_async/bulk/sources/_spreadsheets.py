"""What a spreadsheet does to a CSV file: numbers where text was, and most of their digits gone. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ._columns import AMOUNT, REFERENCE, ROW_KEY

_EXPONENT: Final = re.compile(r"[+-]?(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)[Ee][+-][0-9]+", re.ASCII)
"""`2.2990E+10`. The exponent's sign is required: `12E5` may be an account."""
_INSTRUMENT: Final = ("phone_number", "account_number", "bank_code", "memo_tag")
_EXACT: Final = (AMOUNT, ROW_KEY, REFERENCE, *(f"instrument.{field}" for field in _INSTRUMENT))
"""Columns that a rounded number makes another payment."""
_REASON: Final = (
    "is in scientific notation, such as 2.3E+10: a spreadsheet took it for a number, and digits may be lost; "
    "go back to the original data, format this column as text before you fill it in, and export the CSV again"
)


def spreadsheet_faults(cells: Mapping[str, str]) -> dict[str, str]:
    """Cells that a spreadsheet has rounded: {column: what happened, and what to do}."""
    found = {}
    for name in _EXACT:
        cell = cells.get(name)
        if cell is not None and _EXPONENT.fullmatch(cell.strip()):
            found[name] = _REASON
    return found
