"""What became of a row, in the words of whoever looks for it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum
from typing import Final

from .protocol.payout_status import has_failed
from .protocol.records import LedgerRow
from .protocol.row_state import RowState


class RowFate(StrEnum):
    """What became of rows that were sent, for `export`; with the other states, each row has exactly one."""

    COMPLETED = "COMPLETED"
    """CREATED, and the payout has arrived."""
    FAILED = "FAILED"
    """CREATED, and the payout is over and did not arrive: what `retry_failed` is for."""
    PENDING = "PENDING"
    """CREATED, and the payout is not known to be over."""
    UNKNOWN = "UNKNOWN"
    """IN_FLIGHT or IN_DOUBT: nobody can tell yet whether there is a payout."""


def fate_of(row: LedgerRow) -> RowFate | None:
    """The fate of a row; None for one that was never sent, or is decided without a payout of its own."""
    if row.state in (RowState.IN_FLIGHT, RowState.IN_DOUBT):
        return RowFate.UNKNOWN
    if row.state is not RowState.CREATED:
        return None
    if not row.final:
        return RowFate.PENDING
    return RowFate.FAILED if has_failed(row) else RowFate.COMPLETED


def chosen(asked: Collection[RowState | RowFate]) -> Callable[[LedgerRow], bool]:
    """Whether a row is in one of these. Raises ValueError for a word that is neither a state nor a fate."""
    words = {str(each) for each in asked}
    if unknown := sorted(words - _WORDS):
        told, there = ", ".join(map(repr, unknown)), ", ".join(sorted(_WORDS))
        raise ValueError(f"no row is ever {told}; there are: {there}")
    return lambda row: row.state in words or fate_of(row) in words


_WORDS: Final = frozenset([*RowState, *RowFate])
