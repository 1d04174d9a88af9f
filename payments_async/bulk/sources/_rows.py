"""What a source gives: rows that may be paid, and faults of rows that may not."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ..._masking import clean
from ...params import PayoutRequest


@attrs.frozen
class SourceRow:
    """One payout of the input, within the interface's limits (Endpoints, POST /payouts)."""

    number: int
    """Which row of data it is, from 1; headers and empty lines do not count."""
    line: int | None
    """The line of the file where it begins, from 1; None where there are no lines."""
    row_key: str
    """What names it in the batch: the operator's `row_key` in composed form (NFC), else its number."""
    reference: str | None
    """The operator's own reference; None when the batch makes one."""
    request: PayoutRequest
    warnings: tuple[str, ...] = ()
    """What is allowed and yet worth a look, each a sentence that starts with the column."""
    original: Sequence[str] = attrs.field(default=(), eq=False, repr=False)
    """The row as it was read, under the source's `columns`."""


@attrs.frozen
class RowFault:
    """One rule that one row breaks. A row with several faults gives several, one after the other."""

    line: int | None
    """The line of the file where the row begins, from 1; None where there are no lines."""
    number: int | None
    """Which row of data it is, from 1; None for the header."""
    column: str | None
    """The column at fault; None when it is the row as a whole."""
    reason: str
    """The rule, and the kind of the value, never the value: it may be somebody's account."""
    original: Sequence[str] = attrs.field(default=(), eq=False, repr=False)
    """The row as it was read, under the source's `columns`."""
    row_key: str | None = attrs.field(default=None, eq=False, repr=False)
    """What names the row in the batch, as it was read; None when that cannot be read."""
    reference: str | None = attrs.field(default=None, eq=False, repr=False)
    """The operator's own reference, as it was read."""

    def __str__(self) -> str:
        """`line 7, amount: must be at least 1, in major units`."""
        row = "header" if self.number is None else f"row {self.number}"
        where = row if self.line is None else f"line {self.line}"
        return clean(f"{where}, {self.column}: {self.reason}" if self.column else f"{where}: {self.reason}")


SourceItem = SourceRow | RowFault
