"""What a page of the service's list makes of the batch's rows: judged, gathered, and written at once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any, Final

import attrs
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ..._assumptions import ABANDONED_AFTER
from ...models import Amount, Payout
from ...models.statuses import PayoutEnd
from .._protocol.audit import Auditor
from .._protocol.identifiers import Identity, Proof, parted
from .._protocol.listed_payouts import RowFacts, judge, may_be_sent
from .._protocol.matching import Match, RowPayout, own_payout, shown_text
from .._protocol.outcomes import ExtraPayout, RowState, Turn
from .._protocol.payout_status import end_of, ended_at, facts_of, seconds_of
from .._protocol.records import Batch, LedgerRow
from .tables import TO_POST, has_turn, now, payouts, rows, words
from .values import units_of

b = sa.bindparam
_CLOCKS: Final = 3_600.0
"""Seconds by which the service's clock and the database's may differ."""


@attrs.frozen
class ListReading:
    number: int
    began: float  # when its first page was asked for, by the database's clock
    since: float | None
    """The service's time from which on the list is read; None for all of it."""
    cursor: str | None  # where it goes on; None at the beginning


@attrs.frozen
class Kept:
    """A payout that this reading has shown before."""

    payout: Payout
    is_judged: bool  # True if its page has judged the row by it


class PageChanges:
    """What the rows of a page become: gathered, and then written a statement a kind.

    `auditor`: adds up what the reading shows.
    """

    def __init__(self, batch: Batch, reading: ListReading, auditor: Auditor) -> None:
        self._binding, self._reading, self.auditor = batch.binding, reading, auditor
        self._forgotten = batch.forgotten_before and batch.forgotten_before + _CLOCKS
        self._facts: list[dict[str, Any]] = []
        self._words: list[dict[str, Any]] = []
        self._turned: list[int] = []
        self._kept: dict[str, dict[str, Any]] = {}
        self._seen: list[int] = []
        self._cleared: list[int] = []
        self._forbidden: list[int] = []
        self._absent: list[int] = []
        self.oldest: float | None = None

    def add(self, page: Sequence[Payout], found: Sequence[tuple[LedgerRow, Sequence[Kept]]]) -> None:
        """Judge the rows that one payout decides; keep those of the others for the list's end.

        `found`: the rows of these payouts, each with its payouts that this reading has kept before.
        """
        by_stem = {row.stem: (row, kept) for row, kept in found}
        named = dict[str, list[Payout]]()
        for payout in page:
            stem, _ = parted(payout.reference or "")
            if stem in by_stem:
                named.setdefault(stem, []).append(payout)
                self._note_age(payout)
            else:
                self._stranger(payout)
        for stem, shown in named.items():
            row, kept = by_stem[stem]
            self._add_row(row, [RowPayout.of(row, each, self._binding) for each in shown], kept)

    def _add_row(self, row: LedgerRow, listed: Sequence[RowPayout], kept: Sequence[Kept]) -> None:
        is_first = row.seen != self._reading.number
        if is_first:
            self._seen.append(row.id)
        is_usual = _is_usual(row, listed) and all(each.is_judged for each in kept)
        # another page may have shown it otherwise
        if is_usual and (is_first or judge(row, listed).facts is None):
            for each in listed if is_first else ():
                if each.match is not Match.EQUAL or not each.is_alive or each.contradicts:
                    self._keep(row.id, each.payout, is_judged=True)  # as a retry looks at it
            self._judged(row, listed, is_counted=not is_first, has_first=is_first)  # what is beside it
            return
        if not is_first and not kept and row.payout_id is not None:  # by it a page before has decided
            self._keep(row.id, own_payout(row), is_judged=True)
        for each in listed:
            self._keep(row.id, each.payout)
        if row.generation:
            self._allow(row, listed, is_whole=False)

    def _allow(self, row: LedgerRow, listed: Sequence[RowPayout], *, is_whole: bool) -> None:
        """Allow or forbid a later payout of a row, by its payouts on the list: at once where one lives."""
        if is_whole and may_be_sent(row, listed):
            self._cleared.append(row.id)
        elif is_whole or any(each.generation < row.generation and each.is_alive for each in listed):
            self._forbidden.append(row.id)

    def judge_several(self, row: LedgerRow, kept: Sequence[Kept], *, whole: bool) -> None:
        """Judge a row by all its payouts, at the list's end."""
        listed = [RowPayout.of(row, each.payout, self._binding) for each in kept]
        is_absent = row.last_sent is not None and row.last_sent <= self._reading.began - ABANDONED_AFTER
        is_counted = any(each.is_judged for each in kept)
        is_news = self._judged(row, listed, is_counted=is_counted, has_first=True, absent=whole and is_absent)
        if not is_news and row.generation:  # a row that becomes another is looked at once more before
            self._allow(row, listed, is_whole=whole)
        if whole and all(each.generation != row.generation for each in listed):
            self._absent.append(row.id)  # the list shows earlier payouts of it only

    def _judged(
        self,
        row: LedgerRow,
        listed: Sequence[RowPayout],
        *,
        is_counted: bool,
        has_first: bool,
        absent: bool = False,
    ) -> bool:
        """Judge a row by these payouts; True if anything is new."""
        judgement = judge(row, listed, absent=absent)
        self.auditor.take(row, listed, judgement, is_counted=is_counted, has_first=has_first)
        if judgement.facts is not None:
            self._record(row, judgement.facts, judgement.standing)
        for word, each in judgement.extra:
            self._keep(row.id, each.payout, word, row.currency, is_judged=len(listed) == 1)
        return judgement.facts is not None

    def _record(self, row: LedgerRow, facts: RowFacts, standing: RowPayout | None) -> None:
        """Note what a row becomes, and what the service says of its payout: one it had before has turned."""
        service_at = None if standing is None else ended_at(standing.payout)
        self._facts.append(
            {
                **dict(zip(_PARAMETERS, _listed(facts), strict=True)),
                "_id": row.id,
                "_state": facts.state.value,
                "_payout_end": facts.payout_end.value,
                "_is_found": row.is_found or row.state is not RowState.CREATED,
                "_decided_at": row.decided_at if row.state is facts.state else None,
                "_service_at": service_at,
            }
        )
        if facts.state is RowState.CREATED and facts.payout_id is not None:
            word = {
                "row": row.id,
                "payout_id": facts.payout_id,
                "status": facts.service_status,
                "contradicts": facts.payout_end is PayoutEnd.UNCLEAR,
                "service_at": service_at,
            }
            self._words.append(word)
            if row.state is RowState.CREATED and row.payout_id is not None:
                self._turned.append(row.id)

    def _note_age(self, payout: Payout) -> None:
        born = seconds_of(payout.created_at)
        self.oldest = min((at for at in (self.oldest, born) if at is not None), default=None)

    def _stranger(self, payout: Payout) -> None:
        """A payout under a reference that no row has: in excess where it has this batch's proof.

        Not if it is as old as rows that an outbox has forgotten.
        """
        if (seconds_of(payout.created_at) or 0.0) < self._forgotten:
            return
        proof = Proof.of(payout.metadata)
        own = Identity(self._binding.environment, self._binding.batch_id, "").proof("").batch
        if proof is None or proof.batch != own or end_of(payout) is PayoutEnd.FAILED:
            return
        self._note_age(payout)
        self._keep(None, payout, ExtraPayout.IN_EXCESS, _NO_CURRENCY)
        its = "which has this batch's proof, and a reference that no row has"
        self.auditor.note(f"the list shows {facts_of(payout)}, {its}")

    def _keep(
        self,
        row: int | None,
        payout: Payout,
        beside: ExtraPayout | None = None,
        currency: str = "",
        *,
        is_judged: bool = False,
    ) -> None:
        text = shown_text(payout)
        units, scale = (0, 0) if beside is None else self._money(payout)
        form = hashlib.sha256(f"{row}\n{text}".encode()).hexdigest()
        self._kept[form] = {
            "batch_id": self._binding.batch_id,
            "row": row,
            "reading": self._reading.number,
            "form": form,
            "shown": text,
            "is_judged": is_judged,
            "beside": None if beside is None else beside.value,
            "units": units,
            "scale": scale,
            "currency": ((payout.amount or Amount()).currency or currency)[:3] if beside else "",
        }

    def _money(self, payout: Payout) -> tuple[int, int]:
        """The amount of a payout beside the rows. One that cannot be added up is a finding, and is 0."""
        value = (payout.amount or Amount()).value
        with suppress(ValueError, ArithmeticError):
            if value is not None and value > 0:
                return units_of(value)
        self.auditor.note(f"{facts_of(payout)}: a payout beside the rows, whose amount cannot be added up")
        return 0, 0

    @property
    def has_news(self) -> bool:
        """Whether a row becomes another."""
        return bool(self._facts or self._cleared or self._absent)

    async def write(self, connection: AsyncConnection) -> None:
        if self._turned:  # a row's first change: its word until then
            await keep_words(connection, self._turned)
        if self._words:
            await connection.execute(words.insert().values(at=now()), self._words)
        if self._facts:
            await connection.execute(_RECORD_LISTED, self._facts)
        began = self._reading.began
        is_older = sa.func.coalesce(rows.c.reset_at, 0.0) <= began
        for ids, only, values in (
            (self._seen, (), {"seen": self._reading.number}),
            (self._forbidden, (), {"cleared_at": None}),
            (self._cleared, (is_older,), {"cleared_at": began}),
        ):
            if ids:
                await connection.execute(sa.update(rows).where(rows.c.id.in_(ids), *only).values(values))
        if self._absent:
            await connection.execute(absent(rows.c.id.in_(self._absent), began))
        if self._kept:
            forms = sa.delete(payouts).where(
                payouts.c.batch_id == self._binding.batch_id, payouts.c.form.in_(self._kept)
            )
            await connection.execute(forms)
            await connection.execute(payouts.insert(), [*self._kept.values()])


async def keep_words(connection: AsyncConnection, ids: Sequence[int]) -> None:
    """Write the word that rows have now, where none of theirs was written yet."""
    has_words = sa.exists(sa.select(words.c.id).where(words.c.row == rows.c.id))
    columns = ("row", "payout_id", "status", "contradicts", "service_at", "at")
    present = sa.select(
        rows.c.id,
        rows.c.payout_id,
        rows.c.service_status,
        rows.c.payout_end == PayoutEnd.UNCLEAR.value,
        rows.c.service_at,
        sa.func.coalesce(rows.c.decided_at, 0.0),
    ).where(rows.c.id.in_(ids), rows.c.payout_id.is_not(None), sa.not_(has_words))
    await connection.execute(words.insert().from_select(columns, present))


_NO_CURRENCY: Final = "XXX"  # the code of ISO 4217 for none
_LISTED: Final = tuple(field.name for field in attrs.fields(RowFacts))
_listed: Final = attrgetter(*_LISTED)
_PARAMETERS: Final = tuple(f"_{name}" for name in _LISTED)
_RECORD_LISTED: Final = (
    sa.update(rows)
    .where(rows.c.id == b("_id"))
    .values(
        {name: b(f"_{name}") for name in (*_LISTED, "is_found", "service_at")}
        | {"turn": int(Turn.NOTHING), "taken_by": None, "doubted": False}
        | {"decided_at": sa.func.coalesce(b("_decided_at", type_=sa.Double()), now())}
    )
)


def absent(which: sa.ColumnElement[bool], began: float) -> sa.Update:
    """Rows in doubt that the list does not show, though no request of them can make a payout any more.

    They are asked for once more, under a key that they never had: the reference lets only one exist.
    """
    return (
        sa.update(rows)
        .where(
            which,
            rows.c.state == RowState.IN_DOUBT.value,
            rows.c.last_sent <= began - ABANDONED_AFTER,
            sa.or_(has_turn(Turn.LOOK), rows.c.doubted),
        )
        .values({**TO_POST, "epoch": rows.c.epoch + 1, "doubted": False})
    )


def _is_usual(row: LedgerRow, listed: Sequence[RowPayout]) -> bool:
    """Whether a page's payouts of a row decide it alone: its own, and no other ever."""
    if row.generation:
        return False
    ids = {each.payout.id for each in listed}
    is_own = all(each.payout.reference == row.reference for each in listed)
    return is_own and len(ids) == 1 and row.payout_id in (None, *ids)
