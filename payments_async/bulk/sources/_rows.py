"""What a source gives: rows that may be paid, and faults of rows that may not."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ...params import PayoutRequest
from ..errors import RowFault


@attrs.frozen
class Row:
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


SourceItem = Row | RowFault
