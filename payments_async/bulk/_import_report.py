"""What an input came to: imported now, known already, or only looked at."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

import attrs

from .protocol.totals import brief

if TYPE_CHECKING:
    from .loading.differences import InputDifference


@attrs.frozen
class ImportReport:
    """What a batch's input came to."""

    batch_id: str
    rows: int
    """Rows of the batch."""
    totals: Mapping[str, Decimal] = attrs.field(repr=brief)
    """{currency: the sum of their amounts, major units}, rows that were called off included."""
    is_new: bool
    """Whether they were imported now, or would be by `load`; False when the ledger has them already."""
    skipped: int
    """Rows left out because of faults, when they were read now."""
    warnings: tuple[str, ...]
    """The first of what is allowed and yet worth a look."""
    corrected: int = 0
    """Rows that were given another body, because edits were accepted."""
    cancelled: int = 0
    """Rows that were called off, because edits were accepted."""
    differences: tuple[InputDifference, ...] = ()
    """Of a preview: the first rows that the ledger has otherwise."""
    differing: int = 0
    """How many such rows there are in all."""
    input_totals: Mapping[str, Decimal] = attrs.field(
        default=attrs.Factory(lambda self: self.totals, takes_self=True), repr=brief
    )
    """{currency: what the input's rows come to now}: other than `totals` where it was edited since."""
    payable: Mapping[str, Decimal] = attrs.field(
        default=attrs.Factory(lambda self: self.totals, takes_self=True), repr=brief
    )
    """{currency: what is paid when every row is}: `totals` without the rows that were called off.

    This is what there is to confirm before paying.
    """
