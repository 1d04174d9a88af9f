"""A batch in a ledger: its facts, and rows that are taken to be sent and recorded afterwards.

Each statement adds knowledge, or takes other rows than the last time, so that each may be carried out twice.
Who writes a row names what he writes about: the row, its generation, his send. Nobody asks for permission.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

import attrs
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ..._runtime import Runtime
from ...models._masking import clean
from ...models.statuses import PayoutEnd
from .._protocol.answers import Word
from .._protocol.outcomes import RowState, Turn
from .._protocol.payout_status import shows_arrival
from .._protocol.records import Account, Batch, LedgerRow
from ..errors import LedgerError, LedgerMismatch, LedgerMissing
from .database import SEE, Database, DatabaseAddress
from .tables import TAKEN_FOR, batches, has_turn, now, rows
from .values import COLUMNS, UnreadableRow, batch_of, row_of

b = sa.bindparam
SENT_WITHIN: Final = TAKEN_FOR - 15.0
"""Seconds after rows were asked for in which they may be sent: well before another process may take them."""
YOUNG: Final = 900.0
"""Seconds for which a reading of the list allows a later payout of a row."""
_HOUR: Final = 3_600.0
_NO_ROW: Final = (1 << 62) - 1
ROW_COLUMNS: Final = tuple(rows.c[name] for name in COLUMNS)


@attrs.frozen
class Taken:
    rows: tuple[LedgerRow, ...]
    at: float  # when, by the database's clock
    cleared_for: Mapping[int, float]
    """{row id: seconds from `at` in which a later payout of it may be sent}."""
    unreadable: tuple[str, ...] = ()
    """What is wrong with rows that cannot be read. They stay taken, and the others go on."""


class Ledger:
    """One batch in a database. `batch` has its facts as they were read last."""

    def __init__(self, database: Database, batch_id: str | None, runtime: Runtime) -> None:
        self.database, self.runtime = database, runtime
        self.batch_id: str = batch_id or ""  # the batch's name; "" before it has one
        self.batch: Batch | None = None
        self.me: str = f"{socket.gethostname()[:40]}:{os.getpid()}:{runtime.token(6).hex()}"
        """This process's name in the ledger: which host and process has rows."""
        self._oldest: float | None = None
        self._passed = 0
        """The last new row that was taken: the index entries of those before it are passed over.

        Not with each take: one may have been made new since, or added by a transaction that ended late.
        """
        self._has_several = False

    @classmethod
    async def open(
        cls, address: DatabaseAddress, runtime: Runtime, batch_id: str | None, *, create: bool
    ) -> Ledger:
        """Open a batch by its name; without one the only batch of a file. Raises LedgerError, BulkError."""
        async with AsyncExitStack() as undo:
            ledger = cls(await Database.open(address, runtime, create=create), batch_id, runtime)
            undo.push_async_callback(ledger.close)
            if batch_id is None:
                found = await ledger.database.find(sa.select(batches.c.batch_id).limit(2))
                ledger._has_several = len(found) > 1
                ledger.batch_id = found[0]["batch_id"] if len(found) == 1 else ""
            await ledger.refresh()
            undo.pop_all()
        return ledger

    async def close(self) -> None:
        await self.database.close()

    @property
    def label(self) -> str:
        """The ledger for messages: the file, or the database and the batch."""
        path = self.database.path
        return self.database.label if path is not None else f"{self.database.label}, batch {self.batch_id}"

    @property
    def known(self) -> Batch:
        """The batch's facts. Raises LedgerMissing before anything was loaded."""
        if self.batch is None and self._has_several and not self.batch_id:
            raise LedgerError(
                self.database.label, "it has several batches", remedy="name one: batch_id=, or --batch-id"
            )
        if self.batch is None:
            what = f"it has no batch {clean(self.batch_id)}" if self.batch_id else "it has no batch yet"
            raise LedgerMissing(self.database.label, what)
        if self.batch.unreadable is not None:
            problem = f"its batch {clean(self.batch_id)} cannot be read: {self.batch.unreadable}"
            raise LedgerError(self.database.label, problem, remedy=SEE)
        return self.batch

    async def refresh(self) -> Batch | None:
        """Read the batch's facts. None before anything was loaded. Raises LedgerError."""
        mine = sa.select(batches, now().label("now")).where(batches.c.batch_id == self.batch_id)
        found = await self.database.find(mine)
        self.batch = batch_of(found[0]) if found else None
        self._passed = 0
        return self.batch

    async def all_batches(self) -> list[Batch]:
        """Read the facts of all batches of the database, the newest first. Raises LedgerError."""
        every = sa.select(batches, now().label("now")).order_by(batches.c.created_at.desc())
        return [batch_of(found) for found in await self.database.find(every)]

    async def change(self, *, input_hash: str | None = None, **facts: Any) -> bool:
        """Write facts of the batch; of this input only, if one is named. False if it has another by now.

        Raises LedgerError.
        """
        is_of = () if input_hash is None else (batches.c.input_hash == input_hash,)
        changed = await self.database.change(self._mine().where(*is_of).values(**facts))
        await self.refresh()
        return changed > 0

    def _mine(self) -> sa.Update:
        return sa.update(batches).where(batches.c.batch_id == self.batch_id)

    # Whose it is

    def require(self, subject: str, recorded: str, given: str, *, remedy: str = "") -> None:
        """Raise LedgerMismatch if the batch is bound to something else than is given."""
        if given != recorded:
            raise LedgerMismatch(self.label, subject, recorded=recorded, given=given, remedy=remedy)

    async def pin(self, account: Account, *, is_proven: bool = False) -> str:
        """Pin the batch to an account if it has none, or while no row was sent or found.

        `is_proven`: to this one in any case. Returns the key that it is pinned to.
        """

        async def work(connection: AsyncConnection) -> str:
            mine = sa.select(batches.c.account).where(batches.c.batch_id == self.batch_id)
            pinned = (await connection.execute(mine.with_for_update())).scalar_one()
            if pinned == account.key:
                return account.key
            if pinned is not None and not is_proven and await is_touched(connection, self.batch_id):
                return str(pinned)
            await connection.execute(self._mine().values(account=account.key))
            return account.key

        return await self.database.write(work)

    # Taking and recording

    async def take(self, most: int, account: Account, *, needs_confirmation: bool) -> Taken:
        """Take rows that are due. They may be sent once this has returned: that they may be is on the disk.

        A row whose taker has not come back is in doubt from now on. Raises LedgerError.
        """
        facts = (
            sa.select(batches.c.last_row)
            .where(
                batches.c.batch_id == self.batch_id,
                batches.c.account == account.key,
                batches.c.paused.is_(None),
                *([batches.c.confirmed.is_not(None)] if needs_confirmation else []),
            )
            .with_for_update(read=True)
        )
        mine = self._due(account.environment).with_for_update(skip_locked=True, of=rows)

        async def work(connection: AsyncConnection) -> Sequence[Any]:
            found = (await connection.execute(facts)).first()
            if found is None:
                return ()
            last = _NO_ROW if found.last_row is None else found.last_row
            # of new rows those behind the last one that was taken
            is_behind = sa.tuple_(rows.c.due, rows.c.id) > sa.tuple_(
                sa.literal(0.0), sa.literal(self._passed)
            )
            due = mine.where(rows.c.id <= last, is_behind).limit(most)
            taken = [*(await connection.execute(self._taking(due, account))).mappings()]
            if len(taken) < most and self._passed:
                self._passed = 0
                due = mine.where(rows.c.id <= last).limit(most - len(taken))
                taken += (await connection.execute(self._taking(due, account))).mappings()
            return taken

        found = await self.database.write(work)
        if len(found) == most:
            self._passed = max((each["id"] for each in found if each["takes"] == 1), default=0)
        at = found[0]["now"] if found else 0.0
        cleared = {each["id"]: each["cleared_at"] + YOUNG - at for each in found if each["generation"]}
        taken, unreadable = readable(sorted(found, key=lambda each: int(each["id"])))
        return Taken(tuple(taken), at, cleared, tuple(unreadable))

    def _taking(self, due: sa.Select[Any], account: Account) -> sa.sql.dml.ReturningUpdate[Any]:
        """The statement by which rows become this process's, for a minute."""
        return (
            sa.update(rows)
            .where(rows.c.id.in_(sa.select(due.cte("chosen").c.id)))
            .values(
                state=RowState.IN_FLIGHT.value,
                taken_by=self.me,
                due=now() + TAKEN_FOR,
                takes=rows.c.takes + 1,
                doubted=sa.or_(rows.c.doubted, rows.c.state == RowState.IN_FLIGHT.value),
                first_sent=sa.func.coalesce(rows.c.first_sent, now()),
                last_sent=now() + SENT_WITHIN,
                key_since=sa.func.coalesce(rows.c.key_since, now()),
                sent_under=account.key,
            )
            .returning(*ROW_COLUMNS, rows.c.cleared_at, now().label("now"))
        )

    def _due(self, environment: str) -> sa.Select[Any]:
        """Rows that may be taken now.

        A later payout is asked for only under a reading that began after the row was made new, at most a
        quarter of an hour ago, and that showed every earlier payout of it as failed. One from the future was
        made by a clock that has been put back since.
        """
        is_cleared = sa.and_(
            rows.c.cleared_at > now() - YOUNG,
            rows.c.cleared_at <= now(),
            rows.c.cleared_at >= sa.func.coalesce(rows.c.reset_at, 0.0),
        )
        return (
            sa.select(rows.c.id)
            .where(
                rows.c.batch_id == self.batch_id,
                has_turn(Turn.POST),
                rows.c.due <= now(),
                rows.c.environment == environment,
                sa.or_(rows.c.generation == 0, is_cleared),
            )
            .order_by(rows.c.due, rows.c.id)
        )

    async def repair_times(self) -> None:
        """Bring back times of open rows that lie ahead, as the clock was put back since. Raises LedgerError.

        Until then such a row would not be due, no reading would allow a later payout of it, and none would
        prove it absent.
        """
        latest = {
            rows.c.due: now() + TAKEN_FOR,
            rows.c.last_sent: now() + SENT_WITHIN,
            rows.c.reset_at: now(),
        }
        is_ahead = {column: column > now() + _HOUR for column in latest}
        is_open = sa.or_(has_turn(Turn.POST), has_turn(Turn.LOOK))
        await self.database.change(
            sa.update(rows)
            .where(rows.c.batch_id == self.batch_id, is_open, sa.or_(*is_ahead.values()))
            .values({each: sa.case((is_ahead[each], latest[each]), else_=each) for each in latest})
        )

    async def record(self, found: Sequence[Word]) -> None:
        """Record what was proven of sends, in one transaction. Raises LedgerError.

        A creation is a fact whoever reports it. Anything else counts only for the send that it is about: who
        slept beyond his time knows nothing of what was sent since.
        """
        facts = [_fact(word) for word in found if word.is_fact]
        others = [_other(word, self.me) for word in found if not word.is_fact]
        oldest = min((word["_born"] for word in facts if word["_born"] is not None), default=None)

        async def work(connection: AsyncConnection) -> None:
            if facts:
                await connection.execute(_RECORD_FACT, facts)
                if any(word["_revision"] for word in facts):
                    await connection.execute(_RECORD_OTHER_CONTENT, facts)
            if others:
                await connection.execute(_RECORD_WORD, others)
            await self.note_oldest(connection, oldest)

        await self.database.write(work)
        self.noted(oldest)

    async def note_oldest(self, connection: AsyncConnection, oldest: float | None) -> None:
        """Remember the oldest payout of the batch that was shown, by the service's time."""
        if oldest is None or (self._oldest is not None and self._oldest <= oldest):
            return
        is_older = sa.or_(batches.c.oldest.is_(None), batches.c.oldest > oldest)
        await connection.execute(self._mine().where(is_older).values(oldest=oldest))

    def noted(self, oldest: float | None) -> None:
        """Remember that it was noted: the transaction has ended well."""
        if oldest is not None and (self._oldest is None or oldest < self._oldest):
            self._oldest = oldest

    async def holders(self) -> list[str]:
        """The processes that have rows taken now: `host:pid:…`. Raises LedgerError."""
        held = sa.select(rows.c.taken_by).where(
            rows.c.batch_id == self.batch_id,
            has_turn(Turn.POST),
            rows.c.due > now(),
            rows.c.state == RowState.IN_FLIGHT.value,
        )
        return [str(each["taken_by"]) for each in await self.database.find(held.distinct())]


async def is_touched(connection: AsyncConnection, batch_id: str) -> bool:
    """Lock the batch's line, so that no take comes between, and say whether a row was sent or found."""
    await connection.execute(
        sa.select(batches.c.batch_id).where(batches.c.batch_id == batch_id).with_for_update()
    )
    idle = rows.c.state.in_([RowState.NEW.value, RowState.CANCELLED.value])
    touched = sa.select(rows.c.id).where(
        rows.c.batch_id == batch_id, sa.or_(rows.c.first_sent.is_not(None), ~idle)
    )
    return (await connection.execute(touched.limit(1))).first() is not None


# What is recorded of a send

_AS_SENT: Final = (rows.c.id == b("_id"), rows.c.generation == b("_generation"))
_RECORD_FACT: Final = (
    sa.update(rows)
    .where(*_AS_SENT, rows.c.revision == b("_revision"), rows.c.state != RowState.CREATED.value)
    .values(
        state=RowState.CREATED.value,
        turn=int(Turn.NOTHING),
        taken_by=None,
        doubted=False,
        payout_id=b("_payout_id"),
        service_status=b("_status"),
        payout_end=b("_end"),
        had_arrived=b("_arrived"),
        is_found=False,
        failure_code=b("_code"),
        failure_message=b("_message"),
        decided_at=now(),
        service_at=b("_service_at"),
    )
)
_RECORD_OTHER_CONTENT: Final = (
    sa.update(rows)
    .where(*_AS_SENT, rows.c.revision != b("_revision"), rows.c.state != RowState.CREATED.value)
    .values(state=RowState.IN_DOUBT.value, turn=int(Turn.LOOK), taken_by=None, doubted=True)
)
"""For a payout of a content that the row has no more: only the list can tell what it is."""
_RECORD_WORD: Final = (
    sa.update(rows)
    .where(
        *_AS_SENT,
        rows.c.revision == b("_revision"),
        rows.c.epoch == b("_epoch"),
        rows.c.taken_by == b("_me"),
        rows.c.takes == b("_send"),
        rows.c.state == RowState.IN_FLIGHT.value,
    )
    .values(
        state=b("_state"),
        turn=b("_turn"),
        taken_by=None,
        due=now() + b("_wait"),
        doubted=sa.or_(rows.c.doubted, b("_doubt")),
        unsent=rows.c.unsent + b("_unsent", type_=sa.Integer),
        first_sent=sa.case((b("_untouched", type_=sa.Boolean), sa.null()), else_=rows.c.first_sent),
        failure_code=b("_code"),
        failure_message=b("_message"),
        decided_at=now(),
    )
)


def _fact(word: Word) -> dict[str, Any]:
    row, posted = word.row, word.posted
    assert posted is not None
    return {
        "_id": row.id,
        "_generation": row.generation,
        "_revision": row.revision,
        "_payout_id": posted.payout_id,
        "_status": posted.status,
        "_end": posted.end.value,
        "_arrived": shows_arrival(posted.status, posted.end),
        "_code": posted.code if posted.end is PayoutEnd.FAILED else None,
        "_message": posted.message,
        "_service_at": posted.service_at,
        "_born": posted.created_at,
    }


def _other(word: Word, me: str) -> dict[str, Any]:
    row, posted = word.row, word.posted
    is_told = posted is not None and word.state is not RowState.NEW
    return {
        "_id": row.id,
        "_generation": row.generation,
        "_revision": row.revision,
        "_epoch": row.epoch,
        "_me": me,
        "_send": row.takes,
        "_state": word.state.value,
        "_turn": int(word.turn),
        "_wait": word.wait,
        "_doubt": word.is_doubt,
        "_unsent": int(word.never_left),
        "_untouched": word.never_left and row.is_first_send,
        "_code": posted.code if posted is not None and is_told else None,
        "_message": posted.message if posted is not None and is_told else None,
    }


def readable(found: Iterable[Mapping[Any, Any]]) -> tuple[list[LedgerRow], list[str]]:
    """Read rows, and say what is wrong with those that cannot be read."""
    read, unreadable = list[LedgerRow](), list[str]()
    for each in found:
        try:
            read.append(row_of(each))
        except UnreadableRow as error:
            unreadable.append(str(error))
    return read, unreadable
