"""The changes of a row as pure functions: from the row before and an event to the row after.

Which state may follow which is in `row_state.py`.

`entry` is the number of the chain's entry that the change will be part of. What is known of a row changes by
the functions of `row_state` alone, which raise IllegalTransition for a change that its state does not allow.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from ..._attrs import evolver
from ...models.statuses import PayoutEnd, PayoutStatus
from . import row_state
from .identifiers import parted
from .records import LedgerRow, NewRow, Resend, RowOutcome
from .row_state import OPEN, RowKnowledge, RowState

_evolved: Final = evolver(LedgerRow)


class TransitionRefused(Exception):
    """The change does not fit the row."""


def claimed(row: LedgerRow, entry: int) -> LedgerRow:
    """Record an intent to send a new row."""
    return _intended(row, row_state.intend(row.known), entry)


def resent(row: LedgerRow, resend: Resend, entry: int) -> LedgerRow:
    """Record an intent to send an unfinished row again, with the same key or the next epoch's."""
    known = row_state.intend(row.known, next_epoch=resend.next_key is not None, absent=resend.absent)
    if resend.next_key is not None:
        row = attrs.evolve(row, idempotency_key=resend.next_key, key_intent=None)
    return _intended(row, known, entry)


def _intended(row: LedgerRow, known: RowKnowledge, entry: int) -> LedgerRow:
    first = entry if row.first_intent is None else row.first_intent
    key = entry if row.key_intent is None else row.key_intent
    return _evolved(row, known=known, first_intent=first, key_intent=key, last_intent=entry, changed_in=entry)


def doubted(row: LedgerRow, losses: int, *, proven: bool) -> LedgerRow:
    """Count the intents that a ledger may lack of an open row after so many losses of commits.

    `proven`: a reading of the list has shown what was lost, so that none of a row that is new made a payout.
    They count all the same: an outcome of one ranks below the row's next intent. Decided rows stay so.
    """
    if not losses or row.state not in OPEN:
        return row
    known = row_state.after_loss(row.known, losses)
    if proven and row.state is RowState.NEW:
        known = attrs.evolve(known, cleared=known.intents)
    return attrs.evolve(row, known=known)


def perhaps_resent(row: LedgerRow, losses: int, entry: int) -> LedgerRow | None:
    """Count the lost intents of a row in doubt, the last one as late as now; None if that is recorded."""
    known = row_state.after_loss(row.known, losses)
    if known == row.known:
        return None
    return _evolved(row, known=known, last_intent=entry, changed_in=entry)


def recorded(row: LedgerRow, outcome: RowOutcome, entry: int) -> LedgerRow | None:
    """Add new facts to a row; None when they change nothing.

    The facts come from the record that is believed: an overruled outcome adds none. An outcome of another
    generation or body adds none either: a ledger that lost commits gives both a second time.
    """
    if outcome.known.generation != row.known.generation or outcome.body_hash not in (None, row.body_hash):
        return None
    known = _known_with(row, outcome)
    is_other = known.payout_id != row.known.payout_id
    is_account = _is_account(outcome.known, known) or (is_other and outcome.latest)
    facts = _facts(row, outcome, is_other=is_other) if is_account else {}
    if known == row.known and all(getattr(row, name) == value for name, value in facts.items()):
        return None
    earlier = row.earlier_arrived or (is_other and row.had_arrived)
    return _evolved(row, known=known, earlier_arrived=earlier, changed_in=entry, **facts)


def _known_with(row: LedgerRow, outcome: RowOutcome) -> RowKnowledge:
    """What is known with an outcome. The latest reading says which payout stands for a created row."""
    known, learned = row.known, outcome.known
    if outcome.latest and known.state is learned.state is RowState.CREATED:
        return attrs.evolve(known, payout_id=learned.payout_id)
    return row_state.merge(known, learned)


def _is_account(known: RowKnowledge, merged: RowKnowledge) -> bool:
    """True if this is the record that was believed; the other may have counted later intents."""
    return known is merged or attrs.evolve(known, intents=merged.intents) == merged


@attrs.frozen
class _Facts:
    """What the service says of a row's payout: the fields of a `LedgerRow` of these names."""

    service_status: str | None = None
    payout_end: PayoutEnd = PayoutEnd.OPEN
    had_arrived: bool = False
    payout_money: str | None = None
    failure_code: str | None = None
    failure_message: str | None = None


_NONE: Final = _Facts()


def _facts(row: LedgerRow, outcome: RowOutcome, *, is_other: bool) -> dict[str, Any]:
    """The facts with an outcome. `is_other`: it is about another payout than the row's, or its first."""
    moved = row.state is not outcome.known.state
    # the reason for an old doubt does not describe the payout that was made
    before: _Facts | LedgerRow = _NONE if moved or outcome.latest else row
    is_newer = moved or outcome.latest or not row.is_final or outcome.payout_end.is_final
    says_something = outcome.service_status is not None or outcome.payout_end is not PayoutEnd.OPEN
    said = outcome if says_something and is_newer else before
    explains = outcome.failure_code is not None or outcome.failure_message is not None
    why = outcome if explains or said is outcome else before
    had_arrived = said.payout_end is PayoutEnd.ARRIVED or said.service_status == PayoutStatus.REVERSED
    return {
        "service_status": said.service_status,
        "payout_end": said.payout_end,
        "had_arrived": had_arrived or (row.had_arrived and not is_other),
        "payout_money": outcome.payout_money or before.payout_money,
        "failure_code": why.failure_code,
        "failure_message": why.failure_message,
    }


def corrected(row: LedgerRow, new: NewRow, entry: int) -> LedgerRow:
    """Another body for a row that was refused, under the same reference and a new key.

    Raises TransitionRefused.
    """
    after = attrs.evolve(_replaced(row, new), known=row_state.correct(row.known), changed_in=entry)
    if new.reference != row.reference:
        raise TransitionRefused("a corrected row keeps its reference")
    return after


def retried(row: LedgerRow, new: NewRow, entry: int, *, unsent: bool = False) -> LedgerRow:
    """Give a row whose payout has finally failed a new reference, with nothing known of it yet.

    `unsent`: its present generation was never sent, as an earlier payout of it lived again. Raises
    TransitionRefused, and IllegalTransition when the payout has not finally failed.
    """
    is_failed, generation = row.payout_end is PayoutEnd.FAILED, row.known.generation
    after = _begun(row, new, row_state.retry(row.known, finally_failed=is_failed), entry)
    if not unsent or generation >= _BITS:
        return after
    return attrs.evolve(after, unsent_generations=row.unsent_generations | 1 << generation)


_BITS: Final = 63
"""Generations that `unsent_generations` has a bit for."""


def adopted(row: LedgerRow, new: NewRow, entry: int) -> LedgerRow:
    """Give a row the generation of a later payout that the list shows, with nothing known of it yet.

    Raises TransitionRefused, and IllegalTransition for a row that is rejected or cancelled.
    """
    return _begun(row, new, row_state.adopt(row.known, parted(new.reference)[1]), entry)


def _begun(row: LedgerRow, new: NewRow, known: RowKnowledge, entry: int) -> LedgerRow:
    if new.reference == row.reference:
        raise TransitionRefused("a new payout needs a reference of its own")
    after = attrs.evolve(_replaced(row, new), known=known, changed_in=entry)
    earlier_arrived = row.earlier_arrived or row.had_arrived
    return attrs.evolve(after, first_intent=None, last_intent=None, earlier_arrived=earlier_arrived)


def _replaced(row: LedgerRow, new: NewRow) -> LedgerRow:
    if new.row_key != row.row_key:
        raise TransitionRefused("the row that should replace it has another key")
    if new.idempotency_key == row.idempotency_key:
        raise TransitionRefused("its idempotency key is used up: another body has another")
    content = {name: getattr(new, name) for name in _REPLACED}
    return attrs.evolve(row, **attrs.asdict(_NONE), key_intent=None, **content)


_REPLACED: Final = [
    field.name for field in attrs.fields(NewRow) if field.name not in ("number", "line", "row_key")
]


def cancelled(row: LedgerRow, entry: int) -> LedgerRow:
    """Cancel a row that was never sent."""
    return attrs.evolve(row, known=row_state.cancel(row.known), changed_in=entry)
