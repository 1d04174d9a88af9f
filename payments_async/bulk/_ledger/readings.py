"""One reading of the service's list in the ledger: who has it, where it stands, what it has shown.

One process reads at a time, for a minute, which it renews. Each page is recorded in a transaction that
checks that: what a stopped process read an hour ago is never written over newer words. The next reader goes
on where the last one stood.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ...models import Payout
from ...models.statuses import PayoutEnd
from .._protocol.audit import MOST_FINDINGS, Auditor
from .._protocol.identifiers import parted
from .._protocol.matching import RowPayout, own_payout, read_shown
from .._protocol.outcomes import RowState, Turn
from .._protocol.records import LedgerRow
from .ledger import ROW_COLUMNS, YOUNG, Ledger, readable
from .pages import Kept, ListReading, PageChanges, absent, keep_words
from .tables import TAKEN_FOR, TO_POST_ANEW, batches, decided_by, has_turn, now, payouts, rows

b = sa.bindparam
Judge = Callable[[AsyncConnection, PageChanges], Awaitable[None]]
_FAR: Final = 600.0
"""Seconds: no process has the reading for so long, but one whose clock was put back since."""
_GROUP: Final = 500


class ReadingLost(Exception):
    """Another process has the reading, perhaps since this one slept."""


class ReadingStore:
    """The one reading of a batch's list that is under way."""

    def __init__(self, ledger: Ledger, reading: ListReading, auditor: Auditor) -> None:
        self._ledger, self.reading, self.auditor = ledger, reading, auditor
        self.has_news: bool = False
        """Whether this process's part of the reading has changed a row."""

    @classmethod
    async def begin(cls, ledger: Ledger, since: float | None) -> ReadingStore:
        """Take the reading, where it stands if that is young and reads enough.

        Raises ReadingLost while another process has it, and LedgerError.
        """

        async def work(connection: AsyncConnection) -> ReadingStore:
            mine = batches.c.batch_id == ledger.batch_id
            facts = sa.select(batches, now().label("now")).where(mine).with_for_update()
            found = (await connection.execute(facts)).mappings().one()
            at, until = found["now"], found["reader_until"]
            if at <= until <= at + _FAR and found["reader"] != ledger.me:
                raise ReadingLost
            reading = _going_on(found, since)
            try:
                auditor = Auditor() if reading is None else Auditor.from_json(found["reading_audit"])
            except (ValueError, TypeError):  # what it had found by then is lost
                reading, auditor = None, Auditor()
            reading = reading or ListReading(found["reading"] + 1, at, since, None)
            await connection.execute(
                sa.update(batches)
                .where(mine)
                .values(
                    reader=ledger.me,
                    reader_until=now() + TAKEN_FOR,
                    reading=reading.number,
                    reading_began=reading.began,
                    reading_since=reading.since,
                    reading_cursor=reading.cursor,
                    reading_audit=auditor.to_json(),
                )
            )
            return cls(ledger, reading, auditor)

        return await ledger.database.write(work)

    async def renew(self) -> None:
        """Keep the reading for another minute. Raises ReadingLost and LedgerError."""
        await self._ledger.database.write(self._hold)

    async def _hold(self, connection: AsyncConnection, **facts: Any) -> None:
        is_mine = (
            batches.c.batch_id == self._ledger.batch_id,
            batches.c.reader == self._ledger.me,
            batches.c.reading == self.reading.number,
            batches.c.reader_until > now(),
        )
        held = sa.update(batches).where(*is_mine).values(reader_until=now() + TAKEN_FOR, **facts)
        if not (await connection.execute(held)).rowcount:
            raise ReadingLost

    async def give_up(self, *, anew: bool = False) -> None:
        """Let another process go on at once. `anew`: from the list's beginning."""
        mine = (batches.c.batch_id == self._ledger.batch_id, batches.c.reader == self._ledger.me)
        place = {"reading_cursor": None} if anew else {}
        await self._ledger.database.change(sa.update(batches).where(*mine).values(reader_until=0.0, **place))

    # A page

    async def take(self, page: Sequence[Payout], cursor: str | None) -> None:
        """Judge what a page shows of the batch's rows, and record it. Raises ReadingLost and LedgerError.

        `cursor`: where the next page begins.
        """

        stems = {parted(each.reference)[0] for each in page if each.reference is not None}

        async def judge(connection: AsyncConnection, changes: PageChanges) -> None:
            changes.add(page, await self._rows(connection, rows.c.stem.in_(stems)))

        await self._recorded(judge, reading_cursor=cursor)
        self.reading = attrs.evolve(self.reading, cursor=cursor)

    async def _recorded(self, judge: Judge, **facts: Any) -> None:
        """Judge rows and record it in one transaction, which fails if the reading is another process's."""

        async def work(connection: AsyncConnection) -> PageChanges:
            auditor = Auditor.from_json(self.auditor.to_json())  # its own: it may be done twice
            changes = PageChanges(self._ledger.known, self.reading, auditor)
            await judge(connection, changes)
            await changes.write(connection)
            await self._ledger.note_oldest(connection, changes.oldest)
            await self._hold(connection, reading_audit=auditor.to_json(), **facts)
            return changes

        changes = await self._ledger.database.write(work)
        self._ledger.noted(changes.oldest)
        self.auditor = changes.auditor
        self.has_news |= changes.has_news

    async def _rows(
        self, connection: AsyncConnection, which: sa.ColumnElement[bool]
    ) -> list[tuple[LedgerRow, list[Kept]]]:
        """Rows, held until the transaction ends, each with its payouts that this reading has kept before."""
        mine = sa.select(*ROW_COLUMNS).where(rows.c.batch_id == self._ledger.batch_id, which)
        there = (await connection.execute(mine.order_by(rows.c.id).with_for_update())).mappings()
        found = {row.id: (row, list[Kept]()) for row in readable(there)[0]}
        shown = sa.select(payouts.c.row, payouts.c.shown, payouts.c.is_judged).where(
            payouts.c.row.in_(found), payouts.c.reading == self.reading.number
        )
        for row_id, text, is_judged in (await connection.execute(shown.order_by(payouts.c.id))).all():
            found[row_id][1].append(Kept(read_shown(text), is_judged))
        return [*found.values()]

    # The end

    async def end(self, *, whole: bool) -> None:
        """Judge the rows with several payouts, and what is absent, at the list's end. Raises ReadingLost.

        `whole`: every payout could be read, so that one which is not shown is absent.
        """
        mine = rows.c.batch_id == self._ledger.batch_id
        this = payouts.c.reading == self.reading.number, payouts.c.is_judged.is_(False)
        several = sa.exists(sa.select(payouts.c.id).where(payouts.c.row == rows.c.id, *this))
        ids, after = sa.select(rows.c.id).where(mine, several).order_by(rows.c.id).limit(_GROUP), 0

        async def judge(group: Sequence[int], connection: AsyncConnection, changes: PageChanges) -> None:
            for row, kept in await self._rows(connection, rows.c.id.in_(group)):
                changes.judge_several(row, kept, whole=whole)

        while found := await self._ledger.database.find(ids.where(rows.c.id > after)):
            after = found[-1]["id"]
            await self._recorded(partial(judge, [each["id"] for each in found]))

        async def judge_unseen(connection: AsyncConnection, changes: PageChanges) -> None:
            if not whole:
                return
            unseen = sa.and_(mine, rows.c.seen != self.reading.number)
            again = await connection.execute(absent(unseen, self.reading.began))
            self.has_news |= bool(again.rowcount)
            own = payouts.c.batch_id == self._ledger.batch_id
            await connection.execute(sa.delete(payouts).where(own, payouts.c.reading < self.reading.number))
            await self._note_unseen(connection, changes.auditor)

        is_all = whole and self.reading.since is None
        read_all = {"read_all": self.reading.began} if is_all else {}
        await self._recorded(judge_unseen, reading_cursor=None, read_at=now(), **read_all)

    async def lacks(self) -> bool:
        """Whether this reading, of a part of the list, lacks a payout that an earlier part may show.

        That is so for a row whose reference somebody has used, and for one that waits to be sent again and
        of which not every earlier payout was shown; in each case only until the whole list was read since.
        """
        is_looked_for = sa.and_(
            has_turn(Turn.LOOK), rows.c.seen != self.reading.number, rows.c.decided_at > batches.c.read_all
        )
        waits = sa.and_(
            has_turn(Turn.POST),
            rows.c.generation > 0,
            sa.func.coalesce(rows.c.cleared_at, 0.0) < self.reading.began,
            rows.c.reset_at > batches.c.read_all,
        )
        lacking = sa.select(rows.c.id).join(batches, batches.c.batch_id == rows.c.batch_id)
        mine = rows.c.batch_id == self._ledger.batch_id
        return await self._ledger.database.has(lacking.where(mine, sa.or_(is_looked_for, waits)))

    async def _note_unseen(self, connection: AsyncConnection, auditor: Auditor) -> None:
        """Note created rows, and rows in conflict, of which the list has shown no payout.

        What was decided after the reading began is not judged by it.
        """
        unseen = (
            rows.c.batch_id == self._ledger.batch_id,
            rows.c.seen != self.reading.number,
            decided_by(self.reading.began),
        )
        for state, text in _UNSEEN.items():
            where = (*unseen, rows.c.state == state.value)
            count = (await connection.execute(sa.select(sa.func.count()).where(*where))).scalar_one()
            numbers = sa.func.coalesce(rows.c.number, rows.c.id).label("number")
            first = sa.select(numbers, rows.c.payout_id).where(*where).order_by(rows.c.id)
            kind = "missing" if state is RowState.CREATED else "differing"
            for found in (await connection.execute(first.limit(MOST_FINDINGS))).all() if count else ():
                auditor.note(text.format(found.number, found.payout_id), kind)
            setattr(auditor, kind, getattr(auditor, kind) + max(0, count - MOST_FINDINGS))

    # Afterwards

    async def make_new(
        self,
        ids: Sequence[int],
        decide: Callable[[LedgerRow, Sequence[RowPayout]], int | str],
        *,
        dry_run: bool,
    ) -> list[tuple[LedgerRow, int | str]]:
        """Give rows their next generation, in a transaction that still holds this reading.

        `decide`: the generation of a row, by its payouts that this reading has shown, or why it is left.
        Returns the rows with what was decided. Raises ReadingLost and LedgerError.
        """

        async def work(connection: AsyncConnection) -> list[tuple[LedgerRow, int | str]]:
            await self._hold(connection)
            decided, changes = list[tuple[LedgerRow, int | str]](), list[dict[str, Any]]()
            for row, kept in await self._rows(connection, rows.c.id.in_(ids)):
                shown = [each.payout for each in kept]
                if not shown and row.seen == self.reading.number:  # it has not failed
                    shown = [own_payout(row)]
                listed = [RowPayout.of(row, each, self._ledger.known.binding) for each in shown]
                generation = decide(row, listed)
                decided.append((row, generation))
                if isinstance(generation, int):
                    changes.append({"_id": row.id, "_old": row.generation, "_generation": generation})
            if changes and not dry_run:
                await keep_words(connection, [each["_id"] for each in changes])
                await connection.execute(_MAKE_NEW, changes)
            return decided

        return await self._ledger.database.write(work)


_UNSEEN: Final = {
    RowState.CREATED: "row {}: {} is not in the list",
    RowState.CONFLICT: "row {}: in conflict, and its payout is not in the list",
}


def _going_on(found: Mapping[Any, Any], since: float | None) -> ListReading | None:
    """The reading that another process has left, if it is young and reads all that is wanted."""
    had = found["reading_since"]
    reads_enough = had is None or (since is not None and had <= since)
    is_young = 0.0 <= found["now"] - found["reading_began"] < YOUNG
    if found["reading_cursor"] is None or not reads_enough or not is_young:
        return None
    return ListReading(found["reading"], found["reading_began"], had, found["reading_cursor"])


_MAKE_NEW: Final = (
    sa.update(rows)
    .where(rows.c.id == b("_id"), rows.c.generation == b("_old"), rows.c.state == RowState.CREATED.value)
    .values(
        {
            **TO_POST_ANEW,
            "generation": b("_generation"),
            "epoch": sa.case((rows.c.generation == b("_generation"), rows.c.epoch + 1), else_=0),
            "payout_end": PayoutEnd.OPEN.value,
            "earlier_arrived": sa.or_(rows.c.earlier_arrived, rows.c.had_arrived),
            "reset_at": now(),
            "is_found": True,
        }
        | dict.fromkeys(("doubted", "had_arrived"), False)
        | dict.fromkeys(("last_sent", "cleared_at", "payout_id", "service_status", "payout_money"))
        | dict.fromkeys(("decided_at", "service_at"))
    )
)
