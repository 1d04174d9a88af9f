"""Judges a row by all its payouts on the service's list. Pure (States; Endpoints, GET /payouts; gaps H, I).

A row may have several payouts: one of each generation, and whatever else the list shows under its references.
One of them stands for the row: one that arrived; else one on its way; else one that was returned; else one
that failed. Every other that arrived or may still arrive is an extra payout.

The list decides whatever the ledger says of the row:

    row is                       the list shows                        the row becomes
    any                          its payout, as asked for              CREATED with the payout that stands
    NEW, in flight, in doubt     another payout under its reference    CONFLICT
    NEW, REJECTED, CANCELLED     an earlier payout that has not        CREATED with it; CONFLICT if it has
                                 failed                                other content
    in flight, in doubt          only an earlier one that has not      CREATED with it, once its own cannot
                                 failed                                appear any more
    any                          a later payout, as asked for          CREATED, of that payout's generation
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from ...models.statuses import PayoutEnd
from .matching import Match, RowPayout, weight_of
from .outcomes import UNFINISHED, ExtraPayout, RowState
from .payout_status import described, facts_of, failure_of, shows_arrival, status_of
from .records import LedgerRow

OTHER_CONTENT: Final = "other content under its reference"
"""Reason of a conflict: the row's own payout with other content."""
OTHER_PAYOUT: Final = "reference of another payout"
"""Reason of a conflict: another payout has the row's reference."""
_S = RowState
_OTHER: Final = (Match.OTHER_BODY, Match.FOREIGN)
_MOST_LATER: Final = 16
"""Generations that a ledger may be behind: a later reference is reported, and no row gets it."""


@attrs.frozen
class RowFacts:
    """What the list says that a row is: what becomes of it in the ledger, under the names of its columns."""

    state: RowState
    generation: int
    payout_id: str | None = None
    service_status: str | None = None
    payout_end: PayoutEnd = PayoutEnd.OPEN
    had_arrived: bool = False
    """True if the service ever said that this payout had arrived."""
    earlier_arrived: bool = False
    """True if it ever said so of another payout of the row."""
    payout_money: str | None = None
    failure_code: str | None = None
    failure_message: str | None = None


@attrs.frozen
class Judgement:
    facts: RowFacts | None = None  # what to record; None when nothing is new
    standing: RowPayout | None = None
    """The payout that stands for the row; None when the list shows none."""
    extra: tuple[tuple[ExtraPayout, RowPayout], ...] = ()
    """Its payouts beside that one that have arrived or may still arrive."""
    findings: tuple[str, ...] = ()  # what is wrong with the row, by the list
    turn: str | None = None  # a payout that had ended, and is now shown otherwise


@attrs.frozen
class _Ruling:
    """The row as the list leaves it, and the payout that stands for it."""

    state: RowState
    payout_id: str | None
    standing: RowPayout | None = None
    code: str | None = None


def judge(row: LedgerRow, payouts: Sequence[RowPayout], *, absent: bool = False) -> Judgement:
    """Judge a row by all its payouts on the list, also those of generations that this ledger never sent.

    `absent`: its own payout is not shown, and cannot appear any more.
    """
    before, row = row, _at_latest(row, payouts)  # one that moves to a later generation is NEW there
    own = [each for each in payouts if each.generation == row.generation]
    earlier = [each for each in payouts if each.generation < row.generation]
    if row.state is _S.CREATED and row.generation == before.generation:
        ruling = _of_created(row, payouts)
    else:
        decided = _of_own(row, own, earlier) or _of_earlier(row, own, earlier, absent=absent)
        ruling = decided or _Ruling(row.state, row.payout_id)
    return Judgement(
        _facts(before, row, ruling, [each for each in payouts if each.generation > row.generation]),
        ruling.standing,
        tuple(_extra(row, ruling, payouts)),
        tuple(_findings(row, ruling, payouts)),
        _turn(before, ruling, payouts),
    )


def _at_latest(row: LedgerRow, payouts: Sequence[RowPayout]) -> LedgerRow:
    """The row at the generation of its latest payout that has all that it asks for.

    An earlier ledger, since lost, had sent it again.
    """
    latest = max(
        (
            each.generation
            for each in payouts
            if each.is_asked and each.generation <= row.generation + _MOST_LATER
        ),
        default=0,
    )
    if latest <= row.generation:
        return row
    arrived = row.had_arrived or row.earlier_arrived
    return attrs.evolve(row, generation=latest, state=_S.NEW, had_arrived=False, earlier_arrived=arrived)


# The row


def _of_created(row: LedgerRow, payouts: Sequence[RowPayout]) -> _Ruling:
    """The payout that stands for a created row: its present one, unless another is nearer to arrival."""
    present, rivals = None, list[RowPayout]()
    for each in payouts:
        if each.payout.id == row.payout_id:
            present = each
        elif each.is_asked and each.generation <= row.generation:
            rivals.append(each)
    if rivals:
        weight = weight_of(row.payout_end, had_arrived=row.had_arrived) if present is None else present.weight
        best = _best(rivals)
        if best.weight > weight:
            return _Ruling(row.state, best.payout.id, best)
    return _Ruling(row.state, row.payout_id, present)


def _of_own(row: LedgerRow, own: Sequence[RowPayout], earlier: Sequence[RowPayout]) -> _Ruling | None:
    """The row by the payouts under its present reference; None where they decide nothing."""
    if any(each.is_asked for each in own):
        return _confirmed([*earlier, *own])
    other = next((each for each in own if each.payout.id and each.match in _OTHER), None)
    if other is None or row.state not in (_S.NEW, *UNFINISHED):
        return None
    return _contradicted(other)


def _of_earlier(
    row: LedgerRow, own: Sequence[RowPayout], earlier: Sequence[RowPayout], *, absent: bool
) -> _Ruling | None:
    """The row by its earlier payouts that have not failed; None where they decide nothing."""
    is_open = row.state in UNFINISHED
    if row.state is _S.CONFLICT or (is_open and not absent):
        return None
    alive = [each for each in earlier if each.is_alive and each.payout.id]
    if any(each.is_asked for each in alive):
        return _confirmed([*alive, *own])
    other = next((each for each in alive if each.match is not Match.FOREIGN), None)
    return None if other is None or is_open else _contradicted(other)


def _best(payouts: Iterable[RowPayout]) -> RowPayout:
    """Of equals the latest generation's."""
    return max(payouts, key=lambda each: (each.weight, each.generation))


def _confirmed(payouts: Iterable[RowPayout]) -> _Ruling:
    best = _best(each for each in payouts if each.is_asked)
    return _Ruling(_S.CREATED, best.payout.id, best)


def _contradicted(other: RowPayout) -> _Ruling:
    return _Ruling(_S.CONFLICT, None, other, OTHER_PAYOUT if other.match is Match.FOREIGN else OTHER_CONTENT)


def _facts(before: LedgerRow, row: LedgerRow, ruling: _Ruling, later: Sequence[RowPayout]) -> RowFacts | None:
    """What to record of the row; None when nothing is new."""
    standing = ruling.standing
    if standing is None:
        return None
    is_other = before.payout_id != ruling.payout_id
    money, earlier = standing.other_money, before.earlier_arrived or (before.had_arrived and is_other)
    if ruling.code is not None:
        return RowFacts(
            _S.CONFLICT,
            row.generation,
            earlier_arrived=earlier,
            payout_money=money,
            failure_code=ruling.code,
            failure_message=_listed([standing, *later]),
        )
    status, end = status_of(standing.payout), standing.end
    failure = None if standing.is_alive else failure_of(standing.payout)
    unclear = described(standing.payout) if end is PayoutEnd.UNCLEAR else None
    why = before.failure_code if failure else before.failure_message if unclear else None
    is_same = (before.state, before.generation, before.payout_id) == (
        _S.CREATED,
        row.generation,
        ruling.payout_id,
    )
    known = before.service_status, before.payout_end, before.payout_money, why
    says_nothing = status is None and end is PayoutEnd.OPEN
    if is_same and (says_nothing or known == (status, end, money, failure or unclear)):
        return None
    message = _listed(later) if failure and later else unclear
    had_arrived = shows_arrival(status, end) or (before.had_arrived and not is_other)
    return RowFacts(
        _S.CREATED,
        row.generation,
        ruling.payout_id,
        status,
        end,
        had_arrived,
        earlier,
        money,
        failure,
        message,
    )


def _listed(payouts: Sequence[RowPayout]) -> str:
    texts = [f"{facts_of(each.payout)}{_place(each)}" for each in payouts]
    return f"the list shows {'; and '.join(texts)}"


def _place(each: RowPayout) -> str:
    return f" under its ~g{each.generation}" if each.generation else ""


# What is beside it


def _extra(
    row: LedgerRow, ruling: _Ruling, payouts: Sequence[RowPayout]
) -> Iterable[tuple[ExtraPayout, RowPayout]]:
    present = ruling.payout_id if ruling.state is _S.CREATED else None
    for each in payouts:
        if not each.is_alive or (present is not None and each.payout.id == present):
            continue
        is_own = each.generation == row.generation
        if ruling.state in UNFINISHED and is_own:
            continue  # it may still settle the row
        if not each.is_of_batch:
            continue  # a stranger's
        in_conflict = ruling.state is _S.CONFLICT
        yield (ExtraPayout.MOVED_IN_CONFLICT if in_conflict else ExtraPayout.IN_EXCESS), each


_PAST: Final = "row {}: {}, an earlier payout of it, is {} on the list"
_LATER: Final = (
    "row {}: the list shows {}, a later payout of it that this ledger does not know of; "
    "pay the row by no other means before you have looked at it"
)


def _findings(row: LedgerRow, ruling: _Ruling, payouts: Sequence[RowPayout]) -> Iterable[str]:
    number, state, generation = row.number, ruling.state, row.generation
    if ruling.standing is not None and ruling.standing.end is PayoutEnd.UNCLEAR and ruling.code is None:
        yield f"row {number}: {ruling.standing.payout.id} is {described(ruling.standing.payout)}"
    for each in payouts:
        payout = each.payout
        if each.generation > generation:
            yield _LATER.format(number, f"{facts_of(payout)}{_place(each)}")
        elif each.generation < generation:
            if each.is_alive and payout.id != ruling.payout_id:
                yield _PAST.format(number, payout.id, described(payout))
        elif state is _S.CONFLICT:
            yield f"row {number}: in conflict, and the list shows {facts_of(payout)}"
        elif state is not _S.CREATED:
            yield f"row {number}: {state}, and the list shows {facts_of(payout)}"
        elif payout.id != ruling.payout_id and each.is_alive:
            yield f"row {number}: {payout.id} has its reference, beside {ruling.payout_id}"


def _turn(row: LedgerRow, ruling: _Ruling, payouts: Sequence[RowPayout]) -> str | None:
    """Describe the turn of the row's payout that had ended; or of one given up, which stands for it again."""
    standing = ruling.standing
    if standing is None or ruling.code is not None:
        return None
    payout = standing.payout
    if row.generation > standing.generation and row.payout_id != payout.id:
        return _PAST.format(row.number, payout.id, described(payout, had_arrived=row.earlier_arrived))
    for each in payouts:
        is_same = (each.end, status_of(each.payout)) == (row.payout_end, row.service_status)
        if row.is_final and each.payout.id == row.payout_id and not is_same:
            said = described(each.payout, had_arrived=row.had_arrived)
            return (
                f"row {row.number}: {each.payout.id} had ended as {row.service_status}, "
                f"and the list shows {said}"
            )
    return None


UNSEEN: Final = "the list does not show its payout"
UNSEEN_EARLIER: Final = "the list does not show an earlier payout of it"


def next_generation(row: LedgerRow, payouts: Sequence[RowPayout]) -> int | str:
    """The generation that a failed row gets, by all its payouts on the list; or why it must not be paid.

    It counts the generations that the list shows as failed: a number whose payout was never shown is not
    passed over, as what stands for the row may be an earlier payout. `row`: as it was before the list was
    read. One that had arrived has failed only once an earlier reading has recorded that: one page of one
    reading may be wrong.
    """
    own = next((each for each in payouts if each.payout.id == row.payout_id), None)
    if own is None or row.state is not _S.CREATED:
        stranger = next((each for each in payouts if each.generation == row.generation), None)
        return UNSEEN if stranger is None else _NOT_ITS.format(stranger.payout.id)
    if (alive := next((each for each in payouts if each.is_alive), None)) is not None:
        if alive.generation == row.generation:
            return f"its payout is {described(alive.payout)}"
        place = "an earlier" if alive.generation < row.generation else "a later"
        return f"the list shows {facts_of(alive.payout)}, {place} payout of it that has not failed"
    if row.payout_end is PayoutEnd.ARRIVED:
        return _turn(row, _Ruling(row.state, row.payout_id, own), payouts) or UNSEEN
    if own.match is not Match.EQUAL:
        return own.difference or UNSEEN
    failed = failed_generations(payouts)
    return failed if failed > own.generation else UNSEEN_EARLIER


def failed_generations(payouts: Iterable[RowPayout]) -> int:
    """How many generations, from the first on, the list shows with payouts that have all failed."""
    shown = {each.generation: True for each in payouts}
    for each in payouts:
        shown[each.generation] &= not each.is_alive
    number = 0
    while shown.get(number):
        number += 1
    return number


def may_be_sent(row: LedgerRow, payouts: Sequence[RowPayout]) -> bool:
    """True if every earlier payout of a row of a later generation is shown, and each has failed."""
    is_alive = any(each.is_alive for each in payouts if each.generation < row.generation)
    return not is_alive and failed_generations(payouts) >= row.generation


_NOT_ITS: Final = "the list shows {} under its reference, which is not the row's payout"
