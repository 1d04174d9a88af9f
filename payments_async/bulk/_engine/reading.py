"""One reading of the service's list: judges the rows of each page, and records what became of them.

A row with one payout is judged on the page that shows it. A row of a later generation, or one of which the
list shows several payouts, is judged again with each page that shows another, and at the list's end.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

import attrs

from ..._assumptions import ABANDONED_AFTER
from ...models import Payout
from ...models._masking import clean
from .._ledger.ledger import Ledger
from .._protocol.clocks import Timestamps, age, since_last_send
from .._protocol.identifiers import earlier_references, later_references
from .._protocol.listed_payouts import Judgement, RowPayout, judge, later_generation
from .._protocol.records import LedgerRow, NewRow, RowOutcome, RowSet
from .._protocol.row_state import OPEN, UNFINISHED
from .extra_payouts import ExtraPayouts
from .service import Service

_log = logging.getLogger("payments_async")
_MOST_TURNS: Final = 100
_GROUP: Final = 500
_ORDER: Final = "row {}: the list did not show its payouts from the newest to the oldest: read it again"
Record = Callable[[Sequence[RowOutcome]], Awaitable[Collection[LedgerRow]]]
"""Records outcomes, and returns the rows that they changed."""


@attrs.frozen
class JudgedRow:
    """A row, its payouts on the list, and what they say."""

    before: LedgerRow
    """The row before this page; of `ListReading.end`, before the reading."""
    row: LedgerRow
    """The row as the ledger has it now."""
    payouts: tuple[RowPayout, ...]
    judgement: Judgement

    @property
    def shows_own(self) -> bool:
        """True if the list shows a payout under the row's present reference."""
        return any(each.generation == self.before.known.generation for each in self.payouts)

    @property
    def earlier_lives(self) -> bool:
        """True if an earlier payout of the row has arrived, or may still arrive."""
        return any(each.is_alive and each.generation < self.row.known.generation for each in self.payouts)


@attrs.define
class SeveralPayouts:
    """The payouts of one row that the list has shown so far."""

    before: LedgerRow
    """The row before the reading."""
    is_partial: bool
    """True if a page before may have shown one that is not kept."""
    payouts: dict[tuple[object, ...], Payout] = attrs.field(factory=dict)
    """Each payout in each form in which it was shown: a stale copy may call one failed that lives."""
    changed_in: int = 0
    """The entry of the row's last change when this reading saw it last."""


class ListReading:
    """One reading, in the memory of a page and of the rows that have several payouts."""

    def __init__(
        self,
        ledger: Ledger,
        service: Service,
        *,
        only: RowSet | None = None,
        record: Record | None = None,
        lost: bool = False,
        note: Callable[[str], object] = bool,
    ) -> None:
        """`only`: judge no other rows. `record`: instead of the ledger. `lost`: the ledger lost commits.

        `note`: called with what is wrong with payouts that stand for no row.
        """
        self._ledger, self._service, self._only, self._lost = ledger, service, only, lost
        self._record: Record = record or ledger.record
        self.began: Timestamps = service.moment()
        """When the reading began."""
        self._latest: int | None = None
        self._seen = RowSet()
        self.several: dict[int, SeveralPayouts] = {}
        """{row number: its payouts} of rows that have, or may have, more of them than one page shows."""
        self.turns: list[str] = []
        """The first payouts that had ended, and are now shown otherwise."""
        self.settled: int = 0
        """Rows whose state the list has changed."""
        self.adopted: set[int] = set()
        """The numbers of rows that got the generation of a later payout."""
        self._extra = ExtraPayouts(ledger.header.binding, note)

    async def take(self, page: Sequence[Payout]) -> list[JudgedRow]:
        """Judge what a page shows of the batch's rows, and record it in one commit. Raises LedgerError.

        The rows of `several` are judged for good at the list's end.
        """
        found, unmatched = await self._matched(page)
        judged = await self._judge(
            [(row, self._several(row, payouts) or payouts) for row, payouts in found], absent={}
        )
        for each in judged:
            if each.row.number not in self.several:
                self._extra.take(each.judgement, each.row.currency)
        self._extra.take_unknown(unmatched)
        return judged

    async def end(self, *, whole: bool = True) -> list[JudgedRow]:
        """Judge the rows with several payouts at the list's end. Raises LedgerError.

        `whole`: every payout could be read, so that one which is not shown is absent.
        """
        judged = list[JudgedRow]()
        for numbers in _groups(self.several):
            rows = await self._ledger.numbered(numbers)
            pairs = [(row, [*self.several[number].payouts.values()]) for number, row in rows.items()]
            absent = await self._since_send(rows.values()) if whole else {}
            judged += await self._judge(pairs, absent=absent, is_end=True)
        for each in judged:
            self._extra.take(each.judgement, each.row.currency)
        if whole:
            await self._note_extra()
        return [self._ended(each) for each in judged]

    async def judge_again(self, number: int, *, unsent: bool) -> JudgedRow:
        """Judge a row once more by what this reading has shown, after its end. `unsent`: as for `judge`.

        Raises LedgerError.
        """
        (row,) = (await self._ledger.numbered([number])).values()
        kept = self.several.get(number)
        (judged,) = await self._judge([(row, [*kept.payouts.values()] if kept else [])], {}, unsent=unsent)
        if judged.judgement.outcome is not None:
            self._extra.take(judged.judgement, row.currency)
            await self._note_extra()
        return judged

    async def _note_extra(self) -> None:
        """Record the payouts that stand for no row, once all of the batch's were seen."""
        if self._only is not None or self._lost:
            return
        await self._ledger.refresh()
        if (extra := self._extra.totals) != self._ledger.header.extra:
            await self._ledger.note_extra(extra)

    def _ended(self, judged: JudgedRow) -> JudgedRow:
        kept, judgement = self.several[judged.row.number], judged.judgement
        if kept.is_partial:
            findings = (*judgement.findings, _ORDER.format(judged.row.number))
            judgement = attrs.evolve(judgement, findings=findings)
        return attrs.evolve(judged, before=kept.before, judgement=judgement)

    async def _since_send(self, rows: Collection[LedgerRow]) -> Mapping[int, float]:
        """{row number: seconds that had surely passed since its last request when this reading began}."""
        unfinished = [row for row in rows if row.state in UNFINISHED]
        times = await self._ledger.intent_times(unfinished) if unfinished else {}
        return {
            number: since_last_send(age(at.last, self.began, self._service.started))
            for number, at in times.items()
        }

    async def _matched(
        self, page: Sequence[Payout]
    ) -> tuple[list[tuple[LedgerRow, list[Payout]]], list[Payout]]:
        """Find the rows of a page's payouts, by their references of any generation."""
        if self._latest is None:
            self._latest = await self._ledger.latest_generation()
        named = dict[str, list[Payout]]()
        for payout in page:
            if (name := payout.reference) is not None:
                others = (earlier_references(name, self._latest), later_references(name, self._latest))
                for reference in (name, *others[0], *others[1]):
                    named.setdefault(reference, []).append(payout)
        rows = await self._ledger.by_references(named) if named else []
        known = {id(payout) for row in rows for payout in named[row.reference]}
        found = [
            (row, named[row.reference]) for row in rows if self._only is None or row.number in self._only
        ]
        return found, [payout for payout in page if id(payout) not in known]

    def _several(self, row: LedgerRow, payouts: Sequence[Payout]) -> list[Payout] | None:
        """All payouts of a row so far, if it may have several."""
        kept = self.several.get(row.number)
        if kept is None:
            is_first = self._seen.add(row.number)
            is_usual = all(each.reference == row.reference for each in payouts) and (
                is_first or all(each.id == row.known.payout_id for each in payouts)
            )
            if not row.known.generation and is_usual:
                return None
            kept = self.several[row.number] = SeveralPayouts(row, is_partial=not is_first)
        for payout in payouts:
            form = (payout.id, payout.status, payout.completed_at, payout.failed_at)
            kept.payouts.pop(form, None)  # the one shown last is last
            kept.payouts[form] = payout
        return [*kept.payouts.values()]

    async def _judge(
        self,
        found: Sequence[tuple[LedgerRow, Sequence[Payout]]],
        absent: Mapping[int, float],
        *,
        is_end: bool = False,
        unsent: bool = False,
    ) -> list[JudgedRow]:
        binding = self._ledger.header.binding
        later = {row.number: made for row, each in found if (made := later_generation(row, each, binding))}
        judged = list[JudgedRow]()
        for before, payouts in found:
            row = later[before.number][1] if before.number in later else before
            shown = tuple(RowPayout.of(row, payout, binding) for payout in payouts)
            is_absent = absent.get(row.number, 0.0) >= ABANDONED_AFTER
            judgement = judge(row, shown, absent=is_absent, unsent=unsent, lost=self._lost)
            if is_end and row.state not in OPEN and row.changed_in != self.several[row.number].changed_in:
                judgement = attrs.evolve(judgement, outcome=None)  # another reading has newer words
            judged.append(JudgedRow(before, row, shown, judgement))
        return await self._recorded(judged, {number: new for number, (new, _) in later.items()})

    async def _recorded(self, judged: Sequence[JudgedRow], later: Mapping[int, NewRow]) -> list[JudgedRow]:
        """Record outcomes, and the generations of later payouts. Returns the rows as they are then."""
        made, known = list[tuple[LedgerRow, NewRow, RowOutcome]](), list[RowOutcome]()
        for each in judged:
            if (outcome := each.judgement.outcome) is None:
                continue
            if (new := later.get(each.row.number)) is None:
                known.append(outcome)
            else:
                made.append((each.before, new, outcome))
        changed = {row.number: row for row in (await self._record(known) if known else ())}
        if made:
            self.adopted.update(row.number for row in await self._ledger.adopt(made))
            self._latest = None
            changed |= await self._ledger.numbered(later)
        for each in judged:
            self._note(each.judgement.turn)
        done = [
            attrs.evolve(each, row=changed[each.row.number]) if each.row.number in changed else each
            for each in judged
        ]
        for each in done:
            if (kept := self.several.get(each.row.number)) is not None:
                kept.changed_in = each.row.changed_in
        self.settled += sum(each.row.state is not each.before.state for each in done)
        return done

    def _note(self, turn: str | None) -> None:
        if turn is not None and len(self.turns) < _MOST_TURNS:
            _log.warning("%s", clean(turn))
            self.turns.append(turn)


def _groups(numbers: Collection[int]) -> Iterator[list[int]]:
    in_order = sorted(numbers)
    return (in_order[start : start + _GROUP] for start in range(0, len(in_order), _GROUP))
