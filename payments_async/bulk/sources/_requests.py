"""Makes the rows of an input from cells: number, key, hash, and all faults of each row.

The same rows have the same hash, whatever the file format.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import attrs

from ..._validation.receivers import IS_SCIENTIFIC, SCIENTIFIC
from ..._validation.tables import doubts, receiver_doubts
from ...params import Instrument, PayoutRequest
from ..errors import RowFault
from ._cells import Cells, Faults, build, digits_warning, text_faults
from ._columns import AMOUNT, REFERENCE, ROW_KEY, compared, row_key_fault


@attrs.frozen
class Row:
    """One payout of the input, within the interface's limits (Endpoints, POST /payouts)."""

    number: int
    """The row's number among the rows of data, from 1; headers and empty lines do not count."""
    line: int | None
    """The line of the file where the row begins, or the sheet's row, from 1; None where there are none."""
    row_key: str
    """The row's name in the batch: the operator's `row_key` in composed form (NFC), else its number."""
    reference: str | None
    """The operator's own reference; None when the batch makes one."""
    request: PayoutRequest
    warnings: tuple[str, ...] = ()
    """Warnings about values that are allowed but doubtful; each sentence starts with the column."""
    original: Sequence[str] = attrs.field(default=(), eq=False, repr=False)
    """The row as it was read, under the source's `columns`."""

    @property
    def amount(self) -> Decimal:
        """What it asks for, major units."""
        assert isinstance(self.request.amount, Decimal)
        return self.request.amount


SourceItem = Row | RowFault
"""An item of a source: a row that may be paid, or one fault of a row that may not."""


def fault_of(item: SourceItem, column: str, reason: str) -> RowFault:
    """One more fault of an item's row."""
    kept = (tuple(item.original), item.row_key, item.reference)
    return RowFault(item.line, item.number, column, reason, *kept)


_FORM: Final = b"payments-sdk rows 1\n"  # a change of the format below changes every batch's identity


def _typed(value: Any) -> Any:
    """Encode a value that JSON has no type for, with its type, so that it differs from the same text."""
    return {f"${type(value).__name__}": str(value)}


canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), check_circular=False, default=_typed
).encode
"""Encode a value as JSON text that differs whenever the value, or its type, does."""


_ODD: Final = ("\\u0000", "\\udc")
"""Escapes in a row's canonical line that show text which `text_faults` may refuse."""
_EXPONENT: Final = re.compile(SCIENTIFIC, re.ASCII | re.IGNORECASE)
_AMOUNT_EXPONENT: Final = re.compile(SCIENTIFIC.replace("E[+-]", "E[+-]?"), re.ASCII | re.IGNORECASE)
"""An amount is a number in any case, so that `1E2` was rounded like `1E+2`."""
_NONE: Final[Faults] = {}
_NOBODY: Final = ("type", "country")
_WHOM: Final = {f"instrument.{field.name}" for field in attrs.fields(Instrument) if field.name not in _NOBODY}
_IS_TOTAL: Final = "; if the row is a total, leave the row out"


def _rounded_faults(cells: Cells) -> Faults:
    """Find texts that a spreadsheet has rounded, but destinations: see `_validation/receivers.py`."""
    return {
        name: f"{IS_SCIENTIFIC}; go back to the original data, and keep it as text"
        for name in (AMOUNT, ROW_KEY, REFERENCE)
        if isinstance(cell := cells.get(name), str) and _is_rounded(name, cell.strip())
    }


def _is_rounded(name: str, text: str) -> bool:
    return bool(_AMOUNT_EXPONENT.fullmatch(text) if name == AMOUNT else _EXPONENT.fullmatch(text))


class RowMaker:
    """Makes the rows of one reading of a source, and their hash.

    The hash is SHA-256 over the rows in order, each as one line of JSON: names sorted, ASCII, no white space.
    Empty cells and lines, the order of columns, line endings and byte order marks do not affect it.
    """

    __slots__ = ("_has_keys", "_hash", "_number")

    def __init__(self) -> None:
        self._has_keys: bool | None = None  # None until a column or the first row tells
        self._hash = hashlib.sha256(_FORM)
        self._number = 0

    @property
    def fingerprint(self) -> str:
        """The hash of everything so far: 64 hexadecimal digits."""
        return self._hash.hexdigest()

    def expect_no_keys(self) -> None:
        """Expect no row of this input to have a key: it has no column for them."""
        self._has_keys = False

    def row(
        self, cells: Cells, original: Sequence[str], *, line: int | None = None, faults: Faults = _NONE
    ) -> Sequence[SourceItem]:
        """Make a row of `cells`, or list all its faults, with those that the file's reader found."""
        request, found = build(cells)
        for name in ("instrument", "instrument.type"):
            if name in found and AMOUNT in cells and not _WHOM.intersection(cells):
                found[name] += _IS_TOTAL
        amount = cells.get(AMOUNT) if AMOUNT in found else request.amount
        hashed = self.count(cells if amount is None else {**cells, AMOUNT: str(amount)})
        odd = text_faults(cells) if any(sign in hashed for sign in _ODD) else _NONE
        found |= {**odd, **_rounded_faults(cells), **faults}
        return self.checked_row(request, cells.get(ROW_KEY), original, found, line)

    def count(self, row: object) -> str:
        """Add a row to the hash. Returns its line of JSON; `null` for a value that is nested too deep.

        Its amount is given as text: `50.1` is the same row from any format.
        """
        try:
            line = canonical(row)
        except RecursionError:
            line = "null"
        self._hash.update(f"{line}\n".encode("ascii"))
        return line

    def checked_row(
        self,
        request: PayoutRequest,
        key: Any,
        original: Sequence[str],
        faults: Faults,
        line: int | None = None,
    ) -> Sequence[SourceItem]:
        """Make a row of a checked request, or list all its faults."""
        self._number += 1
        if problem := self._key_problem(key):
            faults = {ROW_KEY: problem, **faults}
        if faults:
            return self._faulty(faults, original, line, key, request.reference)
        warning = digits_warning(request.amount)
        slips = (*([f"{AMOUNT} {warning}"] if warning else ()), *doubts(request), *receiver_doubts(request))
        row_key = str(self._number) if key is None else compared(key)
        return (Row(self._number, line, row_key, request.reference, request, slips, original),)

    def broken(
        self, reason: str, original: Sequence[str], *, line: int | None = None, cells: Cells = _NONE
    ) -> Sequence[SourceItem]:
        """Report a row that cannot be split into cells. `cells` are those that are certain all the same.

        In an input with keys, a row with an unreadable key may have the key of another row.
        """
        self._number += 1
        self.count(list(original))
        hides_key = self._has_keys is not False and ROW_KEY not in cells
        faults = {"": f"{reason}; its row_key cannot be read" if hides_key else reason}
        found = self._faulty(faults, original, line, cells.get(ROW_KEY), cells.get(REFERENCE))
        return [attrs.evolve(fault, hides_key=hides_key) for fault in found]

    def _faulty(
        self, faults: Faults, original: Sequence[str], line: int | None, key: Any, reference: Any
    ) -> Sequence[RowFault]:
        if key is None and self._has_keys is False:
            key = self._number
        kept = (tuple(original), _text(key), _text(reference))
        return [
            RowFault(line, self._number, column or None, reason, *kept) for column, reason in faults.items()
        ]

    def _key_problem(self, key: object) -> str | None:
        """Refuse keys in only some rows: one row's key could equal another row's number."""
        has_key = key is not None
        if self._has_keys is None:
            self._has_keys = has_key
        if has_key != self._has_keys:
            others = "have one" if self._has_keys else "have none"
            return f"is {'given' if has_key else 'missing'} here, other rows {others}"
        return row_key_fault(key) if has_key else None


def _text(name: object) -> str | None:
    """Convert a name to the text it would be written as. A number in its place is reported as a fault."""
    return None if name is None else str(name)
