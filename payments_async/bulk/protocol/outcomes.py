"""What became of a row, in one word, and groups of such words. Pure (States; gaps H, I)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final

from ...models.statuses import PayoutEnd
from .row_state import RowState


class Outcome(StrEnum):
    """What became of a row, as far as the ledger knows. Each row has exactly one."""

    NOT_STARTED = "not_started"
    """It was never sent."""
    CANCELLED = "cancelled"
    """It was never sent, and will not be."""
    REJECTED = "rejected"
    """The service refused it: there is no payout."""
    UNDER_WAY = "under_way"
    """A request for it may be on its way."""
    IN_DOUBT = "in_doubt"
    """It is not known whether there is a payout."""
    CONFLICT = "conflict"
    """Its reference belongs to another payout, or to its own with other content."""
    NOT_FINAL = "not_final"
    """Its payout was created, and is not known to be final."""
    ARRIVED = "arrived"
    """Its payout has arrived."""
    FAILED = "failed"
    """Its payout has finally failed, and never arrived."""
    RETURNED = "returned"
    """Its payout had arrived, and the service now says that it was reversed, has failed or was cancelled."""


class ExtraPayout(StrEnum):
    """What a payout is that stands for no row, and has arrived or may still arrive."""

    MOVED_IN_CONFLICT = "moved_in_conflict"
    """Its row is in conflict."""
    IN_EXCESS = "in_excess"
    """Its row has another payout, or was not sent."""


_O = Outcome
CREATED: Final = (_O.NOT_FINAL, _O.ARRIVED, _O.FAILED, _O.RETURNED)
"""Outcomes of rows whose payouts were created."""
OPEN: Final = (_O.NOT_STARTED, _O.UNDER_WAY, _O.IN_DOUBT)
"""Outcomes of rows that a batch waits for."""
UNFINISHED: Final = (_O.UNDER_WAY, _O.IN_DOUBT)
"""Outcomes of rows that may have been paid, and of which nothing is proven."""
NOT_ARRIVED: Final = (_O.FAILED, _O.RETURNED)
"""Outcomes of rows whose payouts are final, and the recipients do not have the money."""
OF_STATE: Final[Mapping[RowState, tuple[Outcome, ...]]] = {
    RowState.NEW: (_O.NOT_STARTED,),
    RowState.CANCELLED: (_O.CANCELLED,),
    RowState.REJECTED: (_O.REJECTED,),
    RowState.IN_FLIGHT: (_O.UNDER_WAY,),
    RowState.IN_DOUBT: (_O.IN_DOUBT,),
    RowState.CONFLICT: (_O.CONFLICT,),
    RowState.CREATED: CREATED,
}
"""{state: the outcomes of rows in it}."""


def outcome_of(state: RowState, end: PayoutEnd, *, had_arrived: bool) -> Outcome:
    """The outcome of a row in this state, whose payout has ended so."""
    if state is not RowState.CREATED:
        return OF_STATE[state][0]
    if end is PayoutEnd.FAILED:
        return _O.RETURNED if had_arrived else _O.FAILED
    return _O.ARRIVED if end is PayoutEnd.ARRIVED else _O.NOT_FINAL


GROUPS: Final[Mapping[str, tuple[Outcome, ...]]] = {
    "asked": tuple(_O),
    **{outcome.value: (outcome,) for outcome in _O if outcome not in CREATED},
    "created": CREATED,
    **{outcome.value: (outcome,) for outcome in CREATED},
}
"""{word: the outcomes that it counts}, in the order of tables: each outcome, `asked` and `created`."""


def outcomes_of(words: Collection[str]) -> frozenset[Outcome]:
    """The outcomes that these words of `GROUPS` count. Raises ValueError for any other word."""
    if unknown := sorted({str(word) for word in words} - GROUPS.keys()):
        wrong, there = ", ".join(map(repr, unknown)), ", ".join(GROUPS)
        raise ValueError(f"no row is ever {wrong}; there are: {there}")
    return frozenset(outcome for word in words for outcome in GROUPS[word])
