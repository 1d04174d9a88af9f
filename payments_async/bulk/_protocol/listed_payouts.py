"""Judges a row by all its payouts on the service's list. Pure (States; Endpoints, GET /payouts; gaps H, I).

A row may have several payouts: one of each generation, and whatever else the list shows under its references.
One of them stands for the row: one that arrived; else one on its way; else one that was returned; else one
that failed. Every other that arrived or may still arrive is an extra payout.

The list decides whatever the ledger says of the row:

    row is                       the list shows                        the row becomes
    CREATED, CONFLICT            its payout, as asked for              CREATED with the payout that stands
    under way, in doubt          its payout, as asked for              CREATED
    NEW                          its payout, as asked for              CREATED, and nothing is sent
    NEW, under way, in doubt     another payout under its reference    CONFLICT
    NEW, REJECTED, CANCELLED     an earlier payout that has not        CREATED with it; CONFLICT if it has
                                 failed                                other content
    under way, in doubt          only an earlier one that has not      CREATED with it, once its own cannot
                                 failed                                appear any more
    neither under way            a later payout, as asked for          CREATED, of that payout's generation
    nor in doubt
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from ...models import Payout, PayoutStatus
from ...models.statuses import PayoutEnd
from . import row_state, transitions
from .identifiers import Proof, at_generation, parted
from .matching import MONEY, Expected, Found, Match, differing, expected, match_of, other_account, shown
from .outcomes import ExtraPayout
from .payout_status import described, end_of, facts_of, failure_of, money_of, status_of
from .records import Binding, LedgerRow, NewRow, RowOutcome
from .row_state import UNFINISHED, RowKnowledge, RowState

OTHER_CONTENT: Final = "other content under its reference"
"""Reason of a conflict: the row's own payout with other content; without proofs perhaps a stranger's."""
OTHER_PAYOUT: Final = "reference of another payout"
"""Reason of a conflict: another payout has the row's reference."""
_S = RowState
_OTHER: Final = (Match.OTHER_BODY, Match.FOREIGN)
_MOST_LATER: Final = 16
"""Generations that a ledger may be behind: a later reference is reported, and no row gets it."""
_ADOPTING: Final = frozenset({_S.NEW, *UNFINISHED, _S.CREATED, _S.CONFLICT})
"""States of rows that can get the generation of a later payout."""


@attrs.frozen
class RowPayout:
    """A payout that the list shows under one of a row's references."""

    payout: Payout
    generation: int
    asked: Expected
    """What the row asks for, at this generation."""
    found: Found
    match: Match
    end: PayoutEnd

    @classmethod
    def of(cls, row: LedgerRow, payout: Payout, binding: Binding) -> RowPayout:
        """Compare a payout with the row that asks for it, as the row is now."""
        asking: LedgerRow | NewRow | None = row
        generation = row.known.generation
        if payout.reference != row.reference:
            generation = parted(payout.reference or "")[1]
            asking = _at_generation(row, binding, generation)
        found = shown(payout)
        asked = expected(row if asking is None else asking)
        match = Match.FOREIGN if asking is None else match_of(asked, found)
        is_earlier = generation < row.known.generation
        had_arrived = (
            row.had_arrived if payout.id == row.known.payout_id else is_earlier and row.earlier_arrived
        )
        return cls(payout, generation, asked, found, match, end_of(payout, had_arrived=had_arrived))

    @property
    def is_alive(self) -> bool:
        """True if it has arrived or may still arrive."""
        return self.end is not PayoutEnd.FAILED

    @property
    def other_money(self) -> str | None:
        """What it is of, if the service shows another sum than was asked for: `XOF 10.3`."""
        asked, said = self.asked.details, self.found.details
        if "amount" not in said:
            return None
        is_other = any(said.get(name) not in (None, asked[name]) for name in MONEY)
        return money_of(self.payout) if is_other else None

    @property
    def difference(self) -> str | None:
        """Describe how another payout is shown than was asked for, without account data; else None."""
        payout_id, parts = self.payout.id, []
        if self.other_money is not None:
            details = self.asked.details
            asked = f"{details['currency']} {details['amount']:f}"
            parts.append(f"{payout_id} is of {self.other_money}, and {asked} was asked for")
        if differences := self._differences():
            parts.append(f"the list shows {payout_id} {' and '.join(differences)}")
        if not parts and self.match is not Match.EQUAL and self.found.details.keys() >= set(MONEY):
            parts.append(f"the list shows too little of {payout_id} to tell that it is the row's")
        return "; ".join(parts) or None

    def _differences(self) -> list[str]:
        if self.match is not Match.EQUAL:
            return differing(self.asked, self.found)
        account = other_account(self.asked, self.found)  # its proof is equal, and takes a while to read
        return [] if account is None else [account]

    @property
    def weight(self) -> int:
        """The greater, the sooner it stands for its row."""
        payout = self.payout
        had_arrived = payout.status == PayoutStatus.REVERSED or payout.completed_at is not None
        return _weight(self.end, had_arrived=had_arrived)


def _weight(end: PayoutEnd, *, had_arrived: bool) -> int:
    if end is PayoutEnd.ARRIVED:
        return 3
    if end is not PayoutEnd.FAILED:
        return 2
    return 1 if had_arrived else 0


def _at_generation(row: LedgerRow, binding: Binding, generation: int) -> NewRow | None:
    try:
        return at_generation(row, binding, generation)
    except ValueError:  # its reference would be too long: the row has no such payout
        return None


@attrs.frozen
class Judgement:
    """What the list says of a row."""

    outcome: RowOutcome | None = None
    """What to record; None when nothing is new."""
    standing: RowPayout | None = None
    """The payout that stands for the row; None when the list shows none."""
    extra: tuple[tuple[ExtraPayout, Payout], ...] = ()
    """Its payouts beside that one that have arrived or may still arrive."""
    findings: tuple[str, ...] = ()
    """What is wrong with the row, by the list."""
    turn: str | None = None
    """A payout that had ended, and is now shown otherwise."""


@attrs.frozen
class _Ruling:
    """The row as the list leaves it, and the payout that stands for it."""

    known: RowKnowledge
    standing: RowPayout | None = None
    code: str | None = None


def judge(
    row: LedgerRow,
    payouts: Sequence[RowPayout],
    *,
    absent: bool = False,
    unsent: bool = False,
    lost: bool = False,
) -> Judgement:
    """Judge a row by its payouts on the list, those of later generations that it cannot get among them.

    `absent`: its own payout is not shown, and cannot appear any more. `unsent`: nothing was sent for it since
    it was made new. `lost`: its ledger has lost commits, so that it may have been sent in any state.
    """
    before = row
    if lost and row.state in _LESS_KNOWN:
        row = attrs.evolve(row, known=attrs.evolve(row_state.after_loss(row.known, 1), state=_S.IN_FLIGHT))
    own = [each for each in payouts if each.generation == row.known.generation]
    if unsent:
        row = attrs.evolve(row, known=attrs.evolve(row.known, cleared=row.known.intents))
    earlier = [each for each in payouts if each.generation < row.known.generation]
    if row.state is _S.CREATED:
        ruling = _of_created(row, payouts)
    else:
        decided = _of_own(row, own, earlier) or _of_earlier(row, own, earlier, absent=absent, unsent=unsent)
        ruling = decided or _Ruling(row.known)
    return Judgement(
        _outcome(before, ruling, [each for each in payouts if each.generation > row.known.generation]),
        ruling.standing,
        tuple(_extra(row, ruling, payouts)),
        tuple(_findings(row, ruling, payouts)),
        _turn(before, ruling, payouts),
    )


_LESS_KNOWN: Final = (_S.NEW, _S.REJECTED, *UNFINISHED)
"""States of rows that may have been sent since, for all that a ledger knows which has lost commits."""


# The row


def _of_created(row: LedgerRow, payouts: Sequence[RowPayout]) -> _Ruling:
    """The payout that stands for a created row: its present one, unless another is nearer to arrival."""
    present, rivals = None, list[RowPayout]()
    for each in payouts:
        if each.payout.id == row.known.payout_id:
            present = each
        elif each.match is Match.EQUAL and each.payout.id and each.generation <= row.known.generation:
            rivals.append(each)
    if rivals:
        weight = _weight(row.payout_end, had_arrived=row.had_arrived) if present is None else present.weight
        best = _best(rivals)
        if best.weight > weight:
            return _Ruling(attrs.evolve(row.known, payout_id=str(best.payout.id)), best)
    return _Ruling(row.known, present)


def _of_own(row: LedgerRow, own: Sequence[RowPayout], earlier: Sequence[RowPayout]) -> _Ruling | None:
    """The row by the payouts under its present reference; None where they decide nothing."""
    if row.state in (_S.REJECTED, _S.CANCELLED):
        return None
    found = [each for each in own if each.payout.id]
    equal = [each for each in found if each.match is Match.EQUAL]
    if equal:
        return _confirmed(row, [*(each for each in earlier if each.match is Match.EQUAL), *equal])
    other = next((each for each in found if each.match in _OTHER), None)
    if other is None or row.state is _S.CONFLICT:
        return None
    return _contradicted(row, other)


def _of_earlier(
    row: LedgerRow, own: Sequence[RowPayout], earlier: Sequence[RowPayout], *, absent: bool, unsent: bool
) -> _Ruling | None:
    """The row by its earlier payouts that have not failed; None where they decide nothing."""
    is_open = row.state in UNFINISHED and not unsent
    if row.state is _S.CONFLICT or (is_open and not absent):
        return None
    alive = [each for each in earlier if each.is_alive and each.payout.id]
    equal = [each for each in alive if each.match is Match.EQUAL]
    if equal:
        return _confirmed(
            row, [*equal, *(each for each in own if each.match is Match.EQUAL and each.payout.id)]
        )
    other = next((each for each in alive if each.match is not Match.FOREIGN), None)
    return None if other is None or is_open else _contradicted(row, other)


def _best(payouts: Iterable[RowPayout]) -> RowPayout:
    """Of equals the latest generation's."""
    return max(payouts, key=lambda each: (each.weight, each.generation))


def _confirmed(row: LedgerRow, payouts: Sequence[RowPayout]) -> _Ruling:
    best = _best(payouts)
    return _Ruling(row_state.confirm(row.known, str(best.payout.id)), best)


def _contradicted(row: LedgerRow, other: RowPayout) -> _Ruling:
    code = OTHER_PAYOUT if other.match is Match.FOREIGN else OTHER_CONTENT
    return _Ruling(row_state.contradict(row.known), other, code)


def _outcome(row: LedgerRow, ruling: _Ruling, later: Sequence[RowPayout]) -> RowOutcome | None:
    """What to record of the row; None when nothing is new."""
    standing, known = ruling.standing, ruling.known
    if standing is None:
        return None
    if ruling.code is not None:
        return RowOutcome(
            row.number,
            known,
            failure_code=ruling.code,
            failure_message=_listed([standing, *later]),
            payout_money=standing.other_money,
            body_hash=row.body_hash,
        )
    status, end, failure = status_of(standing.payout), standing.end, _failure(standing)
    unclear = described(standing.payout) if end is PayoutEnd.UNCLEAR else None
    why = row.failure_code if failure else row.failure_message if unclear else None
    facts = row.service_status, row.payout_end, row.payout_money, why
    says_nothing = status is None and end is PayoutEnd.OPEN
    if known == row.known and (
        says_nothing or facts == (status, end, standing.other_money, failure or unclear)
    ):
        return None
    return RowOutcome(
        row.number,
        known,
        status,
        end,
        failure,
        _listed(later) if failure and later else unclear,
        standing.other_money,
        row.body_hash,
        latest=True,
    )


def _failure(standing: RowPayout) -> str | None:
    return None if standing.is_alive else failure_of(standing.payout, had_arrived=True)


def _listed(payouts: Sequence[RowPayout]) -> str:
    texts = [f"{facts_of(each.payout)}{_place(each)}" for each in payouts]
    return f"the list shows {'; and '.join(texts)}"


def _place(each: RowPayout) -> str:
    return f" under its ~g{each.generation}" if each.generation else ""


# What is beside it


def _extra(
    row: LedgerRow, ruling: _Ruling, payouts: Sequence[RowPayout]
) -> Iterable[tuple[ExtraPayout, Payout]]:
    state, generation = ruling.known.state, row.known.generation
    present = ruling.known.payout_id if state is _S.CREATED else None
    for each in payouts:
        if not each.is_alive or (present is not None and each.payout.id == present):
            continue
        is_own = each.generation == generation
        if state in UNFINISHED and is_own:
            continue  # it may still settle the row
        if state is not _S.CONFLICT:
            yield ExtraPayout.IN_EXCESS, each.payout
        elif each.asked.proof is None:
            yield (ExtraPayout.MOVED_IN_CONFLICT if is_own else ExtraPayout.IN_EXCESS), each.payout
        elif _is_of_batch(each):
            yield ExtraPayout.MOVED_IN_CONFLICT, each.payout


def _is_of_batch(each: RowPayout) -> bool:
    proof = Proof.of(each.payout.metadata)
    return proof is not None and each.asked.proof is not None and proof.batch == each.asked.proof.batch


_PAST: Final = "row {}: {}, an earlier payout of it, is {} on the list"
_LATER: Final = (
    "row {}: the list shows {}, a later payout of it that this ledger does not know of; "
    "pay the row by no other means before you have looked at it"
)


def _findings(row: LedgerRow, ruling: _Ruling, payouts: Sequence[RowPayout]) -> Iterable[str]:
    number, state, generation = row.number, ruling.known.state, row.known.generation
    if ruling.standing is not None and ruling.standing.end is PayoutEnd.UNCLEAR and ruling.code is None:
        yield f"row {number}: {ruling.standing.payout.id} is {described(ruling.standing.payout)}"
    for each in payouts:
        payout = each.payout
        if each.generation > generation:
            yield _LATER.format(number, f"{facts_of(payout)}{_place(each)}")
        elif each.generation < generation:
            if each.is_alive and payout.id != ruling.known.payout_id:
                yield _PAST.format(number, payout.id, described(payout))
        elif state is _S.CONFLICT:
            yield f"row {number}: in conflict, and the list shows {facts_of(payout)}"
        elif state is not _S.CREATED:
            yield f"row {number}: {state}, and the list shows {facts_of(payout)}"
        elif payout.id != ruling.known.payout_id and each.is_alive:
            yield f"row {number}: {payout.id} has its reference, beside {ruling.known.payout_id}"


def _turn(row: LedgerRow, ruling: _Ruling, payouts: Sequence[RowPayout]) -> str | None:
    """Describe the turn of the row's payout that had ended; or of one given up, which stands for it again."""
    standing = ruling.standing
    if standing is None or ruling.code is not None:
        return None
    payout = standing.payout
    if row.known.generation > standing.generation and row.known.payout_id != payout.id:
        return _PAST.format(row.number, payout.id, described(payout, had_arrived=row.earlier_arrived))
    for each in payouts:
        is_same = (each.end, status_of(each.payout)) == (row.payout_end, row.service_status)
        if row.is_final and each.payout.id == row.known.payout_id and not is_same:
            said = described(each.payout, had_arrived=row.had_arrived)
            return (
                f"row {row.number}: {each.payout.id} had ended as {row.service_status}, "
                f"and the list shows {said}"
            )
    return None


def other_status(row: LedgerRow, each: RowPayout) -> str | None:
    """Describe a created row's payout whose status is another than the ledger has now; None if it is not."""
    status, end = status_of(each.payout), each.end
    if status in (None, row.service_status) and end is row.payout_end:
        return None
    said = described(each.payout, had_arrived=row.had_arrived)
    return f"row {row.number}: {each.payout.id} is {said} on the list, and {row.service_status} in the ledger"


UNSEEN: Final = "the list does not show its payout"
UNSEEN_EARLIER: Final = "the list does not show an earlier payout of it"


def retry_block(row: LedgerRow, payouts: Sequence[RowPayout]) -> str | None:
    """Say why a row must not be paid again, by all its payouts on the list; None when each has failed.

    `row`: as it was before the list was read. Its payout that had arrived has failed only once an earlier
    reading has recorded that: one page of one reading may be wrong.
    """
    own = next((each for each in payouts if each.payout.id == row.known.payout_id), None)
    stranger = next(
        (each for each in payouts if each.generation == row.known.generation and each != own), None
    )
    if own is None or row.state is not _S.CREATED:
        return UNSEEN if stranger is None else _NOT_ITS.format(stranger.payout.id)
    if (alive := next((each for each in payouts if each.is_alive), None)) is not None:
        return _alive(row, alive)
    if row.payout_end is PayoutEnd.ARRIVED:
        return _turn(row, _Ruling(row.known, own), payouts)
    if own.match is not Match.EQUAL:
        return own.difference
    generation, generations = row.known.generation, {each.generation for each in payouts}
    if row.known.may_have_paid and generation not in generations:
        return UNSEEN
    return UNSEEN_EARLIER if lacks_earlier(row, payouts) else None


def lacks_earlier(row: LedgerRow, payouts: Iterable[RowPayout]) -> bool:
    """True if the list does not show a payout of each earlier generation of a row that was sent."""
    shown, unsent = {each.generation for each in payouts}, row.unsent_generations
    return any(number not in shown and not unsent >> number & 1 for number in range(row.known.generation))


def _alive(row: LedgerRow, alive: RowPayout) -> str:
    if alive.generation == row.known.generation:
        return f"its payout is {described(alive.payout)}"
    place = "an earlier" if alive.generation < row.known.generation else "a later"
    return f"the list shows {facts_of(alive.payout)}, {place} payout of it that has not failed"


_NOT_ITS: Final = "the list shows {} under its reference, which is not the row's payout"


# A later payout than the ledger knows


def later_generation(
    row: LedgerRow, payouts: Iterable[Payout], binding: Binding
) -> tuple[NewRow, LedgerRow] | None:
    """The row at the generation of its latest payout on the list that has all that it asks for.

    An earlier ledger, since lost, had sent it again. Returns what is sent at that generation, and the row
    with nothing known of it yet. None when the list shows no such payout.
    """
    if row.state not in _ADOPTING:
        return None
    known = row.known.generation
    later = [(each, parted(each.reference or "")[1]) for each in payouts if each.reference != row.reference]
    for payout, generation in sorted(later, key=lambda pair: -pair[1]):
        if not known < generation <= known + _MOST_LATER or not payout.id:
            continue
        new = _at_generation(row, binding, generation)
        if new is None or new.reference != payout.reference:
            continue
        if match_of(expected(new), shown(payout)) is Match.EQUAL:
            return new, transitions.adopted(row, new, row.changed_in)
    return None
