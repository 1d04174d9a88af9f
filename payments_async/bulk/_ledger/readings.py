"""One reading of the service's list in the ledger: who has it, where it stands, what it has shown.

One process reads at a time, for a minute, which it renews. Each page is recorded in a transaction that
checks that: what a stopped process read an hour ago is never written over newer words. The next reader goes
on where the last one stood.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ...models import Payout
from ...models.statuses import PayoutEnd
from .._protocol.audit import MOST_FINDINGS, Auditor
from .._protocol.identifiers import parted
from .._protocol.listed_payouts import RowPayout
from .._protocol.records import LedgerRow
from .._protocol.row_state import RowState, Turn
from .._protocol.shown_payouts import own_payout, read_shown
from .ledger import ROW_COLUMNS, YOUNG, Ledger, readable
from .pages import Kept, PageChanges, absent
from .tables import TAKEN_FOR, batches, decided_by, has_turn, now, payouts, rows

b = sa.bindparam
_FAR: Final = 600.0
"""Seconds: no process has the reading for so long, but one whose clock was put back since."""
_GROUP: Final = 500


class ReadingLost(Exception):
    """Another process has the reading, or took it while this one slept."""


@attrs.frozen
class ListReading:
    number: int
    began: float  # when its first page was asked for, by the database's clock
    since: float | None
    """The service's time from which on the list is read; None for all of it."""
    cursor: str | None  # where it goes on; None at the beginning


class ReadingStore:
    """The one reading of a batch's list that is under way."""

    def __init__(self, ledger: Ledger, reading: ListReading, auditor: Auditor) -> None:
        self._ledger, self.reading, self.auditor = ledger, reading, auditor
        self.has_news: bool = False
        """Whether this process's part of the reading has changed a row."""

    @classmethod
    async def begin(cls, ledger: Ledger, since: float | None) -> ReadingStore | None:
        """Take the reading, where it stands if that is young and reads enough; None while another has it."""

        async def work(connection: AsyncConnection) -> ReadingStore | None:
            mine = batches.c.batch_id == ledger.batch_id
            facts = sa.select(batches, now().label("now")).where(mine).with_for_update()
            found = (await connection.execute(facts)).mappings().one()
            at, until = found["now"], found["reader_until"]
            if at <= until <= at + _FAR and found["reader"] != ledger.me:
                return None
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

        async def work(connection: AsyncConnection) -> tuple[Auditor, float | None]:
            auditor = Auditor.from_json(self.auditor.to_json())
            changes = PageChanges(self._ledger.known, self.reading.number, self.reading.began)
            found = await self._rows_of(connection, page)
            kept = await self._kept(connection, [row.id for row in found.values()])
            changes.add(page, found, kept, auditor)
            await changes.write(connection)
            if changes.oldest is not None:
                await self._ledger.note_oldest(connection, changes.oldest)
            await self._hold(connection, reading_cursor=cursor, reading_audit=auditor.to_json())
            self.has_news |= changes.has_news
            return auditor, changes.oldest

        self.auditor, oldest = await self._ledger.database.write(work)
        self._ledger.noted(oldest)
        self.reading = attrs.evolve(self.reading, cursor=cursor)

    async def _rows_of(self, connection: AsyncConnection, page: Sequence[Payout]) -> dict[str, LedgerRow]:
        """The rows of a page's payouts, by their stems, held until the page is recorded."""
        stems = {parted(each.reference)[0] for each in page if each.reference is not None}
        mine = sa.select(*ROW_COLUMNS).where(rows.c.batch_id == self._ledger.batch_id, rows.c.stem.in_(stems))
        found = (await connection.execute(mine.order_by(rows.c.id).with_for_update())).mappings()
        return {row.stem: row for row in readable(found)[0]}

    async def _kept(self, connection: AsyncConnection, ids: Sequence[int]) -> dict[int, list[Kept]]:
        """{row id: its payouts that this reading has shown before}, as far as they are kept."""
        mine = sa.select(payouts.c.row, payouts.c.shown, payouts.c.is_judged).where(
            payouts.c.row.in_(ids), payouts.c.reading == self.reading.number
        )
        found = dict[int, list[Kept]]()
        for row, text, is_judged in (await connection.execute(mine.order_by(payouts.c.id))).all():
            found.setdefault(row, []).append(Kept(read_shown(text), is_judged))
        return found

    # The end

    async def end(self, *, whole: bool) -> None:
        """Judge the rows with several payouts, and what is absent, at the list's end. Raises ReadingLost.

        `whole`: every payout could be read, so that one which is not shown is absent.
        """
        async for group in self._groups():
            await self._judge(group, whole=whole)

        async def work(connection: AsyncConnection) -> Auditor:
            auditor = Auditor.from_json(self.auditor.to_json())
            if not whole:
                await self._hold(connection, reading_cursor=None, reading_audit=None, read_at=now())
                return auditor
            number, began = self.reading.number, self.reading.began
            unseen = sa.and_(rows.c.batch_id == self._ledger.batch_id, rows.c.seen != number)
            again = await connection.execute(absent(unseen, began))
            self.has_news |= bool(again.rowcount)
            old = sa.delete(payouts).where(
                payouts.c.batch_id == self._ledger.batch_id, payouts.c.reading < number
            )
            await connection.execute(old)
            await self._note_unseen(connection, auditor)
            read_all = {"read_all": began} if self.reading.since is None else {}
            await self._hold(connection, reading_cursor=None, reading_audit=None, read_at=now(), **read_all)
            return auditor

        self.auditor = await self._ledger.database.write(work)

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

    async def _groups(self) -> AsyncGenerator[list[int], None]:
        """The ids of rows that have several payouts, or are of a later generation, a group at a time."""
        after = 0
        has = sa.exists(
            sa.select(payouts.c.id).where(
                payouts.c.row == rows.c.id,
                payouts.c.reading == self.reading.number,
                payouts.c.is_judged.is_(False),
            )
        )
        mine = sa.select(rows.c.id).where(rows.c.batch_id == self._ledger.batch_id, has).order_by(rows.c.id)
        while group := await self._ledger.database.find(mine.where(rows.c.id > after).limit(_GROUP)):
            after = group[-1]["id"]
            yield [each["id"] for each in group]

    async def _judge(self, ids: Sequence[int], *, whole: bool) -> None:
        async def work(connection: AsyncConnection) -> Auditor:
            auditor = Auditor.from_json(self.auditor.to_json())
            changes = PageChanges(self._ledger.known, self.reading.number, self.reading.began)
            kept = await self._kept(connection, ids)
            mine = sa.select(*ROW_COLUMNS).where(rows.c.id.in_(ids)).order_by(rows.c.id).with_for_update()
            for row in readable((await connection.execute(mine)).mappings())[0]:
                changes.judge_several(row, kept.get(row.id, []), auditor, whole=whole)
            await changes.write(connection)
            await self._hold(connection, reading_audit=auditor.to_json())
            self.has_news |= changes.has_news
            return auditor

        self.auditor = await self._ledger.database.write(work)

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
            kept, decided = await self._kept(connection, ids), list[tuple[LedgerRow, int | str]]()
            mine = sa.select(*ROW_COLUMNS).where(rows.c.id.in_(ids)).order_by(rows.c.id).with_for_update()
            changes = list[dict[str, Any]]()
            for row in readable((await connection.execute(mine)).mappings())[0]:
                shown = [each.payout for each in kept.get(row.id, [])]
                if not shown and row.seen == self.reading.number:  # it has not failed
                    shown = [own_payout(row)]
                listed = [RowPayout.of(row, each, self._ledger.known.binding) for each in shown]
                generation = decide(row, listed)
                decided.append((row, generation))
                if isinstance(generation, int):
                    changes.append({"_id": row.id, "_old": row.generation, "_generation": generation})
            if changes and not dry_run:
                await PageChanges.keep_words(connection, [each["_id"] for each in changes])
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
        state=RowState.NEW.value,
        turn=int(Turn.POST),
        due=0.0,
        generation=b("_generation"),
        epoch=sa.case((rows.c.generation == b("_generation"), rows.c.epoch + 1), else_=0),
        takes=0,
        unsent=0,
        doubted=False,
        last_sent=None,
        key_since=None,
        reset_at=now(),
        cleared_at=None,
        payout_id=None,
        service_status=None,
        payout_end=PayoutEnd.OPEN.value,
        earlier_arrived=sa.or_(rows.c.earlier_arrived, rows.c.had_arrived),
        had_arrived=False,
        payout_money=None,
        failure_code=None,
        failure_message=None,
        decided_at=None,
        service_at=None,
        is_found=True,
    )
)
