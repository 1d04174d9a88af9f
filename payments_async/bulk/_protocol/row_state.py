"""The states of a row, their transitions, and how two records of one row are merged. Pure.

    NEW ── intend ──▶ IN_FLIGHT ── confirm ────▶ CREATED
                      │  ▲      ├─ refuse ─────▶ REJECTED ── correct ──▶ NEW
                      │  │      ├─ contradict ─▶ CONFLICT
                      │  └─ intend ─┐
                      └─ doubt ──▶ IN_DOUBT ── confirm, contradict
    NEW ── cancel ──▶ CANCELLED     CREATED ── retry ──▶ NEW of the next generation
    any but REJECTED, CANCELLED ── adopt ──▶ NEW of the generation of a later payout
    NEW, REJECTED, CANCELLED, CONFLICT ── confirm ──▶ CREATED, by a payout that the list shows

Each time a worker takes a row it first records an *intent* and counts it. Until something proves that all
requests of an intent made nothing, a later reader must take it that they made a payout: that is the doubt
that outlives a crash. Of two records of a row, merging takes the one that knows more. So merges may come in
any order, twice or late, and only add knowledge.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import attrs

from ..._attrs import maker


class RowState(StrEnum):
    """The state of a row, as stored."""

    NEW = "NEW"
    IN_FLIGHT = "IN_FLIGHT"
    CREATED = "CREATED"
    REJECTED = "REJECTED"
    CONFLICT = "CONFLICT"
    IN_DOUBT = "IN_DOUBT"
    CANCELLED = "CANCELLED"


class RowChange(StrEnum):
    """The changes that can happen to a row."""

    INTEND = "intend"
    CONFIRM = "confirm"
    REFUSE = "refuse"
    CONTRADICT = "contradict"
    DOUBT = "doubt"
    CANCEL = "cancel"
    CORRECT = "correct"
    RETRY = "retry"
    ADOPT = "adopt"


_S, _C = RowState, RowChange
UNFINISHED: Final = (_S.IN_FLIGHT, _S.IN_DOUBT)
"""States of rows that may have been sent, and of which nothing is proven yet."""
OPEN: Final = frozenset({_S.NEW, *UNFINISHED})
"""States of rows that a batch waits for."""
TRANSITIONS: Final[Mapping[tuple[RowState, RowChange], RowState]] = {
    (_S.NEW, _C.INTEND): _S.IN_FLIGHT,
    (_S.NEW, _C.CANCEL): _S.CANCELLED,
    (_S.NEW, _C.CORRECT): _S.NEW,
    (_S.NEW, _C.CONFIRM): _S.CREATED,
    (_S.NEW, _C.CONTRADICT): _S.CONFLICT,
    (_S.NEW, _C.ADOPT): _S.NEW,
    (_S.IN_FLIGHT, _C.INTEND): _S.IN_FLIGHT,
    (_S.IN_FLIGHT, _C.CONFIRM): _S.CREATED,
    (_S.IN_FLIGHT, _C.REFUSE): _S.REJECTED,
    (_S.IN_FLIGHT, _C.CONTRADICT): _S.CONFLICT,
    (_S.IN_FLIGHT, _C.DOUBT): _S.IN_DOUBT,
    (_S.IN_FLIGHT, _C.ADOPT): _S.NEW,
    (_S.IN_DOUBT, _C.INTEND): _S.IN_FLIGHT,
    (_S.IN_DOUBT, _C.CONFIRM): _S.CREATED,
    (_S.IN_DOUBT, _C.CONTRADICT): _S.CONFLICT,
    (_S.IN_DOUBT, _C.DOUBT): _S.IN_DOUBT,
    (_S.IN_DOUBT, _C.ADOPT): _S.NEW,
    (_S.REJECTED, _C.CORRECT): _S.NEW,
    (_S.REJECTED, _C.CONFIRM): _S.CREATED,
    (_S.REJECTED, _C.CONTRADICT): _S.CONFLICT,
    (_S.CANCELLED, _C.CONFIRM): _S.CREATED,
    (_S.CANCELLED, _C.CONTRADICT): _S.CONFLICT,
    (_S.CREATED, _C.RETRY): _S.NEW,
    (_S.CREATED, _C.ADOPT): _S.NEW,
    (_S.CONFLICT, _C.ADOPT): _S.NEW,
    (_S.CONFLICT, _C.CONFIRM): _S.CREATED,
}
"""All allowed transitions. Any other is refused."""

_ORDER: Final = (_S.NEW, _S.CANCELLED, _S.IN_FLIGHT, _S.REJECTED, _S.IN_DOUBT, _S.CONFLICT, _S.CREATED)
"""The states from least to most known, among records of the same intent.

In doubt stands above rejected: of two records of the same requests the doubtful one is believed.
"""
_RANKS: Final = {state: place for place, state in enumerate(_ORDER)}
_SETTLED: Final = {_S.CONFLICT: 1, _S.CREATED: 2}
"""States that stay true whatever is tried later, because a reference is used up for ever."""
_BITS: Final = {"generation": 12, "intents": 24, "revision": 16}
_FEWEST_BITS: Final = min(_BITS.values())


class IllegalTransition(ValueError):
    """A change that is not in the table; nothing was changed."""

    def __init__(self, state: RowState, change: RowChange) -> None:
        super().__init__(f"a row that is {state} cannot {change}")
        self.state = state
        self.change = change


LOST_INTENTS: Final = 1 << 12
"""Intents that a ledger may lack of one row after it lost commits: more than are made in weeks."""


@attrs.frozen
class RowKnowledge:
    """One record of a row. Counters only grow within a generation."""

    state: RowState = RowState.NEW
    generation: int = 0
    """How many payouts of this row have finally failed."""
    revision: int = 0
    """How often the operator corrected the body."""
    epoch: int = 0
    """How many idempotency keys are no longer used."""
    intents: int = 0
    """How often a worker took the row to send it."""
    cleared: int = 0
    """All intents up to this one are known to have made no payout."""
    payout_id: str = ""

    @property
    def may_have_paid(self) -> bool:
        """True if a request of this generation may have made a payout."""
        return self.cleared < self.intents

    @property
    def was_doubtful(self) -> bool:
        """True if an intent before the latest may have made a payout that is not known."""
        return self.cleared < self.intents - 1


knowledge: Final = maker(RowKnowledge)
"""Makes a record of a row; the constructor takes three times as long."""


def _changed(known: RowKnowledge, change: RowChange) -> RowState:
    state = TRANSITIONS.get((known.state, change))
    if state is None:
        raise IllegalTransition(known.state, change)
    return state


def intend(known: RowKnowledge, *, next_epoch: bool = False, absent: bool = False) -> RowKnowledge:
    """Record that a worker takes the row. The ledger stores it only if it still holds exactly `known`.

    `absent`: it is proven that no request of any intent that `known` counts made a payout, be it by the list
    or because the worker made the latest intent itself and saw each of its requests refused.
    Raises IllegalTransition when the row is decided.
    """
    state = _changed(known, RowChange.INTEND)
    cleared = known.intents if absent else known.cleared
    epoch, intents = known.epoch + next_epoch, known.intents + 1
    return knowledge(state, known.generation, known.revision, epoch, intents, cleared)


def confirm(known: RowKnowledge, payout_id: str) -> RowKnowledge:
    """Record that a payout of this row exists. Raises IllegalTransition."""
    state, counts = _changed(known, RowChange.CONFIRM), (known.epoch, known.intents, known.cleared)
    return knowledge(state, known.generation, known.revision, *counts, payout_id)


def refuse(known: RowKnowledge) -> RowKnowledge:
    """Record that the service refused the row, with nothing in doubt. Raises IllegalTransition."""
    return attrs.evolve(known, state=_changed(known, RowChange.REFUSE), cleared=known.intents)


def contradict(known: RowKnowledge) -> RowKnowledge:
    """Record that the reference belongs to another payout or body. Raises IllegalTransition."""
    return attrs.evolve(known, state=_changed(known, RowChange.CONTRADICT))


def doubt(known: RowKnowledge) -> RowKnowledge:
    """Record that the outcome of the row is unknown. Raises IllegalTransition."""
    return attrs.evolve(known, state=_changed(known, RowChange.DOUBT))


def cancel(known: RowKnowledge) -> RowKnowledge:
    """Cancel a row that was never sent. Raises IllegalTransition for any other."""
    return attrs.evolve(known, state=_changed(known, RowChange.CANCEL))


def correct(known: RowKnowledge) -> RowKnowledge:
    """Give the row another body: same reference, new key. Raises IllegalTransition.

    A row in flight or in doubt keeps its body until its outcome is known.
    """
    return attrs.evolve(known, state=_changed(known, RowChange.CORRECT), revision=known.revision + 1)


def after_loss(known: RowKnowledge, losses: int) -> RowKnowledge:
    """Count the intents that a ledger may lack of a row, after so many losses; none is cleared.

    A refusal of one of them then ranks below, and a later refusal is not final by itself.
    Idempotent.
    """
    uncounted = max(0, losses - known.intents // LOST_INTENTS)
    return attrs.evolve(known, intents=known.intents + uncounted * LOST_INTENTS)


def retry(known: RowKnowledge, *, finally_failed: bool) -> RowKnowledge:
    """Begin a new generation, after a payout that failed. Raises IllegalTransition.

    `finally_failed`: the service was just asked, and the payout has failed for good.
    """
    state = _changed(known, RowChange.RETRY)
    if not finally_failed:
        raise IllegalTransition(known.state, RowChange.RETRY)
    return RowKnowledge(state, generation=known.generation + 1)


def adopt(known: RowKnowledge, generation: int) -> RowKnowledge:
    """Begin the generation of a later payout that another ledger had requested. Raises IllegalTransition."""
    state = _changed(known, RowChange.ADOPT)
    if generation <= known.generation:
        raise IllegalTransition(known.state, RowChange.ADOPT)
    return RowKnowledge(state, generation=generation)


def rank(known: RowKnowledge) -> int:
    """Rank an account by how much it knows, as one integer under 2**63, which updates compare and set.

    The generation counts first, then whether the row is settled, then intents, revision and state. Raises
    OverflowError for counters that no batch reaches.
    """
    generation, intents, revision = known.generation, known.intents, known.revision
    if (generation | intents | revision) >> _FEWEST_BITS:  # negative ones too
        _refuse_overflow(known)
    settled, state = _SETTLED.get(known.state, 0), _RANKS[known.state]
    return (((generation << 2 | settled) << 24 | intents) << 16 | revision) << 3 | state


def _refuse_overflow(known: RowKnowledge) -> None:
    for name, bits in _BITS.items():
        count = getattr(known, name)
        if not 0 <= count < 1 << bits:
            raise OverflowError(f"{name} is {count}, outside what a ledger can hold")


def merge(known: RowKnowledge, other: RowKnowledge) -> RowKnowledge:
    """Merge two records of a row: the one that knows more, or the doubtful one of two equals.

    Commutative, associative and idempotent; the result's rank is never below either's.
    """
    more, less = (known, other) if _weight(known) >= _weight(other) else (other, known)
    if more.generation == less.generation and more.intents < less.intents:
        return attrs.evolve(more, intents=less.intents)  # settled by an earlier intent than the latest
    return more


def _weight(known: RowKnowledge) -> tuple[int, int, int, int, int, int, int, str]:
    level = _SETTLED.get(known.state, 0)
    return (
        known.generation,
        level,
        0 if level else known.intents,
        known.revision,
        _RANKS[known.state],
        -known.cleared,
        known.epoch,
        known.payout_id,
    )
