"""What a page of the service's list makes of the batch's rows: judged, gathered, and written at once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import attrs
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ..._assumptions import ABANDONED_AFTER
from ...models import Amount, Payout
from ...models.statuses import PayoutEnd
from .._protocol.audit import Auditor
from .._protocol.identifiers import Identity, Proof, parted
from .._protocol.listed_payouts import Judgement, RowFacts, RowPayout, judge, may_be_sent
from .._protocol.matching import Match
from .._protocol.outcomes import ExtraPayout
from .._protocol.payout_status import end_of, ended_at, facts_of
from .._protocol.records import Batch, LedgerRow
from .._protocol.row_state import RowState, Turn
from .._protocol.shown_payouts import own_payout, shown_text
from .tables import has_turn, now, payouts, rows, words
from .values import units_of

b = sa.bindparam
_CLOCKS: Final = 3_600.0
"""Seconds by which the service's clock and the database's may differ."""


@attrs.frozen
class Kept:
    """A payout that this reading has shown before."""

    payout: Payout
    is_judged: bool  # True if its page has judged the row by it


class PageChanges:
    """What the rows of a page become: gathered, and then written a statement a kind."""

    def __init__(self, batch: Batch, number: int, began: float) -> None:
        self._binding, self._number, self._began = batch.binding, number, began
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

    def add(
        self,
        page: Sequence[Payout],
        found: Mapping[str, LedgerRow],
        kept: Mapping[int, Sequence[Kept]],
        auditor: Auditor,
    ) -> None:
        """Judge the rows that one payout decides; keep those of the others for the list's end."""
        named = dict[int, list[Payout]]()
        by_id = {row.id: row for row in found.values()}
        for payout in page:
            row = None if payout.reference is None else found.get(parted(payout.reference)[0])
            if row is None:
                self._stranger(payout, auditor)
            else:
                named.setdefault(row.id, []).append(payout)
                self._note_age(payout)
        for number, shown in named.items():
            row = by_id[number]
            is_first = row.seen != self._number
            if is_first:
                self._seen.append(row.id)
            listed = [RowPayout.of(row, each, self._binding) for each in shown]
            is_usual = _is_usual(row, shown) and all(each.is_judged for each in kept.get(number, ()))
            # another page may have shown it otherwise
            if is_usual and (is_first or judge(row, listed).facts is None):
                self._judge_alone(row, listed, auditor, is_first=is_first)
            else:
                self._keep_several(row, listed, has_own=is_first or number in kept)

    def _judge_alone(
        self, row: LedgerRow, listed: Sequence[RowPayout], auditor: Auditor, *, is_first: bool
    ) -> None:
        for each in listed:
            if is_first and (each.match is not Match.EQUAL or not each.is_alive or each.contradicts):
                self._keep(row.id, each.payout, is_judged=True)  # as a retry looks at it
        self._judged(row, listed, auditor, is_counted=not is_first, has_first=is_first)  # what is beside it

    def _keep_several(self, row: LedgerRow, listed: Sequence[RowPayout], *, has_own: bool) -> None:
        """Keep a row's payouts for the list's end, with the one that a page before has decided it by."""
        if not has_own and row.payout_id is not None:
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

    def judge_several(self, row: LedgerRow, kept: Sequence[Kept], auditor: Auditor, *, whole: bool) -> None:
        """Judge a row by all its payouts, at the list's end."""
        listed = [RowPayout.of(row, each.payout, self._binding) for each in kept]
        is_absent = row.last_sent is not None and row.last_sent <= self._began - ABANDONED_AFTER
        is_counted = any(each.is_judged for each in kept)
        judgement = self._judged(
            row, listed, auditor, is_counted=is_counted, has_first=True, absent=whole and is_absent
        )
        if judgement.facts is None and row.generation:
            self._allow(row, listed, is_whole=whole)
        if whole and all(each.generation != row.generation for each in listed):
            self._absent.append(row.id)  # the list shows earlier payouts of it only

    def _judged(
        self,
        row: LedgerRow,
        listed: Sequence[RowPayout],
        auditor: Auditor,
        *,
        is_counted: bool,
        has_first: bool,
        absent: bool = False,
    ) -> Judgement:
        judgement = judge(row, listed, absent=absent)
        auditor.take(row, listed, judgement, is_counted=is_counted, has_first=has_first)
        if judgement.facts is not None:
            self._record(row, judgement.facts, judgement)
        for word, each in judgement.extra:
            self._keep(row.id, each.payout, word, row.currency, auditor, is_judged=len(listed) == 1)
        return judgement

    def _record(self, row: LedgerRow, facts: RowFacts, judgement: Judgement) -> None:
        standing = judgement.standing
        self._facts.append(
            {
                "_id": row.id,
                "_state": facts.state.value,
                "_generation": facts.generation,
                "_payout_id": facts.payout_id,
                "_status": facts.status,
                "_end": facts.end.value,
                "_arrived": facts.had_arrived,
                "_earlier": facts.earlier_arrived,
                "_money": facts.money,
                "_code": facts.code,
                "_message": facts.message,
                "_found": row.is_found or row.state is not RowState.CREATED,
                "_decided": row.decided_at if row.state is facts.state else None,
                "_service_at": None if standing is None else ended_at(standing.payout),
            }
        )
        if facts.state is RowState.CREATED and facts.payout_id is not None:
            word = {
                "row": row.id,
                "payout_id": facts.payout_id,
                "status": facts.status,
                "contradicts": facts.end is PayoutEnd.UNCLEAR,
                "service_at": None if standing is None else ended_at(standing.payout),
            }
            self._words.append(word)
            if row.state is RowState.CREATED and row.payout_id is not None:
                self._turned.append(row.id)

    def _note_age(self, payout: Payout) -> None:
        self.oldest = min((at for at in (self.oldest, _born(payout)) if at is not None), default=None)

    def _stranger(self, payout: Payout, auditor: Auditor) -> None:
        """A payout under a reference that no row has: in excess where it has this batch's proof.

        Not if it is as old as rows that an outbox has forgotten.
        """
        if (_born(payout) or 0.0) < self._forgotten:
            return
        proof = Proof.of(payout.metadata)
        own = Identity(self._binding.environment, self._binding.batch_id, "").proof("").batch
        if proof is None or proof.batch != own or end_of(payout) is PayoutEnd.FAILED:
            return
        self._note_age(payout)
        self._keep(None, payout, ExtraPayout.IN_EXCESS, _NO_CURRENCY, auditor)
        its = "which has this batch's proof, and a reference that no row has"
        auditor.note(f"the list shows {facts_of(payout)}, {its}")

    def _keep(
        self,
        row: int | None,
        payout: Payout,
        beside: ExtraPayout | None = None,
        currency: str = "",
        auditor: Auditor | None = None,
        *,
        is_judged: bool = False,
    ) -> None:
        text = shown_text(payout)
        units, scale = _money(payout, auditor) if beside is not None and auditor is not None else (0, 0)
        form = hashlib.sha256(f"{row}\n{text}".encode()).hexdigest()
        self._kept[form] = {
            "batch_id": self._binding.batch_id,
            "row": row,
            "reading": self._number,
            "form": form,
            "shown": text,
            "is_judged": is_judged,
            "beside": None if beside is None else beside.value,
            "units": units,
            "scale": scale,
            "currency": ((payout.amount or Amount()).currency or currency)[:3] if beside else "",
        }

    @property
    def has_news(self) -> bool:
        """Whether a row becomes another."""
        return bool(self._facts or self._cleared or self._absent)

    async def write(self, connection: AsyncConnection) -> None:
        if self._words:
            if self._turned:  # a row's first change: its word until then
                await self.keep_words(connection, self._turned)
            await connection.execute(words.insert().values(at=now()), self._words)
        if self._facts:
            await connection.execute(_RECORD_LISTED, self._facts)
        if self._seen:
            seen = sa.update(rows).where(rows.c.id.in_(self._seen))
            await connection.execute(seen.values(seen=self._number))
        if self._forbidden:
            forbidden = sa.update(rows).where(rows.c.id.in_(self._forbidden))
            await connection.execute(forbidden.values(cleared_at=None))
        if self._cleared:
            cleared = sa.update(rows).where(
                rows.c.id.in_(self._cleared), sa.func.coalesce(rows.c.reset_at, 0.0) <= self._began
            )
            await connection.execute(cleared.values(cleared_at=self._began))
        if self._absent:
            await connection.execute(absent(rows.c.id.in_(self._absent), self._began))
        if self._kept:
            forms = sa.delete(payouts).where(
                payouts.c.batch_id == self._binding.batch_id, payouts.c.form.in_(self._kept)
            )
            await connection.execute(forms)
            await connection.execute(payouts.insert(), [*self._kept.values()])

    @staticmethod
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


def _born(payout: Payout) -> float | None:
    """When a payout was created, by the service's clock."""
    at = payout.created_at
    return at.timestamp() if isinstance(at, datetime) else None


_NO_CURRENCY: Final = "XXX"  # the code of ISO 4217 for none
_RECORD_LISTED: Final = (
    sa.update(rows)
    .where(rows.c.id == b("_id"))
    .values(
        state=b("_state"),
        turn=int(Turn.NOTHING),
        taken_by=None,
        doubted=False,
        generation=b("_generation"),
        payout_id=b("_payout_id"),
        service_status=b("_status"),
        payout_end=b("_end"),
        had_arrived=b("_arrived"),
        earlier_arrived=b("_earlier"),
        payout_money=b("_money"),
        failure_code=b("_code"),
        failure_message=b("_message"),
        is_found=b("_found"),
        decided_at=sa.func.coalesce(b("_decided", type_=sa.Double()), now()),
        service_at=b("_service_at"),
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
        .values(
            turn=int(Turn.POST),
            due=0.0,
            epoch=rows.c.epoch + 1,
            takes=0,
            unsent=0,
            doubted=False,
            key_since=None,
        )
    )


def _is_usual(row: LedgerRow, shown: Sequence[Payout]) -> bool:
    """Whether a page's payouts of a row decide it alone: its own, and no other ever."""
    if row.generation:
        return False
    ids = {each.id for each in shown}
    is_own = all(each.reference == row.reference for each in shown)
    return is_own and len(ids) == 1 and row.payout_id in (None, *ids)


def _money(payout: Payout, auditor: Auditor) -> tuple[int, int]:
    """The amount of a payout beside the rows. One that cannot be added up is a finding and counts as 0."""
    value = (payout.amount or Amount()).value
    try:
        if value is not None and value > 0:
            return units_of(value)
    except (ValueError, ArithmeticError):
        pass
    auditor.note(f"{facts_of(payout)}: a payout beside the rows, whose amount cannot be added up")
    return 0, 0
