"""When the disk is full, fails or loses the file: intents are refused, outcomes kept, doubt never hidden."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiosqlite
import attrs
import pytest

from payments_async.bulk._ledger.sqlite.connection import RESERVE_SIZE
from payments_async.bulk._ledger.sqlite.driver import to_its_end
from payments_async.bulk._ledger.sqlite.file import DiskReserve, FileWatch
from payments_async.bulk._ledger.sqlite.ledger import SqliteLedger
from payments_async.bulk.ledger_errors import (
    LedgerBroken,
    LedgerClosed,
    LedgerDamaged,
    LedgerForeign,
    LedgerFull,
    LedgerGone,
    LedgerReadOnly,
)
from tests.support.ledgers import BINDING, Clock, begun, counts, created, imported, new_row, new_rows, numbers
from tests.support.patience import until

Commit = Callable[[aiosqlite.Connection], Awaitable[None]]


@attrs.define
class Disk:
    """What commits meet, one after the other; then they go well."""

    faults: list[tuple[int, str]] = attrs.field(factory=list)
    """SQLite's code, and whether it strikes `before` or `after` the commit was done."""
    between: Callable[[], object] = lambda: None

    def commit(self, really: Commit) -> Commit:
        async def committed(connection: aiosqlite.Connection) -> None:
            code, when = self.faults.pop(0) if self.faults else (0, "")
            if when != "before":
                await really(connection)
            self.between()
            if code:
                error = sqlite3.OperationalError("as planned")
                error.sqlite_errorcode = code
                raise error

        return committed


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """A disk that fails as planned."""
    disk = Disk()
    monkeypatch.setattr(aiosqlite.Connection, "commit", disk.commit(aiosqlite.Connection.commit))
    return disk


async def test_a_full_disk_at_an_intent_marks_nothing(tmp_path: Path, path: Path, disk: Disk) -> None:
    async with await begun(path) as ledger:
        disk.faults = [(sqlite3.SQLITE_FULL, "before")]
        with pytest.raises(LedgerFull, match="disk is full; make room"):
            await ledger.claim(2)
        assert counts(ledger) == {"not_started": 5}
        assert os.stat(tmp_path / "ledger.ballast").st_size == RESERVE_SIZE
        assert numbers(await ledger.claim(2)) == [1, 2]
        assert (await ledger.check()).findings == ()


async def test_sqlite_itself_rolls_back_what_does_not_fit(path: Path) -> None:
    async with await begun(path, 600) as ledger:
        await _limit_pages(ledger)
        with pytest.raises(LedgerFull):
            await ledger.claim(600)
        assert counts(ledger) == {"not_started": 600}
        assert [row async for row in ledger.unfinished()] == []
        assert (await ledger.check()).findings == ()


async def _limit_pages(ledger: SqliteLedger) -> None:
    driver = ledger._handle._connection
    async with driver.execute("PRAGMA max_page_count=1") as cursor:
        await cursor.fetchall()


async def test_a_full_disk_at_an_outcome_gives_up_the_reserve_and_new_intents_wait_for_room(
    tmp_path: Path, path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await begun(path) as ledger:
        (row,) = (await ledger.claim(1)).rows
        disk.faults = [(sqlite3.SQLITE_FULL, "before")]
        await ledger.record([created(row)])
        with monkeypatch.context() as full:
            full.setattr(os, "fsync", _no_room)
            with pytest.raises(LedgerFull, match="no room is left on the disk for the outcomes"):
                await ledger.claim(1)
        assert "ledger.ballast" not in os.listdir(tmp_path)
        assert counts(ledger) == {"not_started": 4, "created": 1}
        assert numbers(await ledger.claim(1)) == [2]
    async with await SqliteLedger.open(path, clock=Clock()) as ledger:
        assert counts(ledger) == {"not_started": 3, "under_way": 1, "created": 1}
        assert (await ledger.check()).findings == ()


def _no_room(_: int) -> None:
    raise OSError(28, "No space left on device")


async def test_an_outcome_that_does_not_fit_even_then_is_the_callers_to_keep(path: Path, disk: Disk) -> None:
    async with await begun(path) as ledger:
        (row,) = (await ledger.claim(1)).rows
        disk.faults = [(sqlite3.SQLITE_FULL, "before")] * 2
        with pytest.raises(LedgerFull):
            await ledger.record([created(row)])
        assert counts(ledger) == {"not_started": 4, "under_way": 1}
        disk.faults = [(sqlite3.SQLITE_FULL, "before")]
        with pytest.raises(LedgerFull):  # no ballast is left to give up
            await ledger.record([created(row)])
        await ledger.record([created(row)])
        assert counts(ledger) == {"not_started": 4, "created": 1}


@pytest.mark.parametrize("when", ["before", "after"])
async def test_an_io_error_at_a_commit_makes_the_ledger_unusable_until_it_is_opened_again(
    path: Path, disk: Disk, when: str
) -> None:
    async with await begun(path) as ledger:
        disk.faults = [(sqlite3.SQLITE_IOERR_FSYNC, when)]
        for _ in range(2):
            with pytest.raises(LedgerBroken, match="open the ledger again and check it"):
                await ledger.claim(2)
        with pytest.raises(LedgerBroken):
            await ledger.first()
    async with await SqliteLedger.open(path, clock=Clock()) as ledger:
        assert counts(ledger) == (
            {"not_started": 5} if when == "before" else {"not_started": 3, "under_way": 2}
        )
        assert (await ledger.check()).findings == ()


async def test_a_ledger_that_may_not_be_written_is_reported_and_stays_usable(path: Path, disk: Disk) -> None:
    async with await begun(path) as ledger:
        disk.faults = [(sqlite3.SQLITE_READONLY, "before")]
        with pytest.raises(LedgerReadOnly, match="cannot be written"):
            await ledger.claim(1)
        assert numbers(await ledger.claim(1)) == [1]


async def test_no_failure_shows_what_was_being_written(path: Path, disk: Disk) -> None:
    async with await SqliteLedger.open(path, clock=Clock(), create=True) as ledger:
        disk.faults = [(sqlite3.SQLITE_IOERR, "before")]
        with pytest.raises(LedgerBroken) as caught:
            await imported(ledger, [new_row(1, body=b"+22990000001")])
    error: BaseException | None = caught.value
    while error is not None:
        assert "22990000001" not in f"{error!r} {vars(error)}"
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("lost", ["ledger", "ledger-wal"])
@pytest.mark.parametrize("how", ["deleted", "replaced"])
async def test_a_file_that_is_lost_in_mid_run_is_noticed_before_the_next_intent(
    tmp_path: Path, path: Path, lost: str, how: str
) -> None:
    async with await begun(path) as ledger:
        (row,) = (await ledger.claim(1)).rows
        await ledger.claim(1)
        os.rename(tmp_path / lost, tmp_path / "elsewhere")
        if how == "replaced":
            (tmp_path / lost).touch()
        with pytest.raises(LedgerGone, match=f"/{lost} was deleted, moved or replaced"):
            await ledger.claim(1)
        await ledger.record([created(row)])
        assert counts(ledger) == {"not_started": 3, "under_way": 1, "created": 1}
        (tmp_path / lost).unlink(missing_ok=True)
        os.rename(tmp_path / "elsewhere", tmp_path / lost)
        assert numbers(await ledger.claim(1)) == [3]


async def test_a_file_replaced_before_the_first_intent_is_noticed_too(tmp_path: Path, path: Path) -> None:
    await (await begun(path)).close()
    async with await SqliteLedger.open(path, clock=Clock()) as ledger:
        os.rename(path, tmp_path / "elsewhere")
        path.touch()
        with pytest.raises(LedgerGone):
            await ledger.claim(1)


async def test_a_caller_that_is_cancelled_does_not_break_a_commit_off(path: Path, disk: Disk) -> None:
    async with await begun(path) as ledger:
        claiming = asyncio.ensure_future(ledger.claim(2))
        disk.between = lambda: asyncio.get_running_loop().call_soon(claiming.cancel)
        with pytest.raises(asyncio.CancelledError):
            await claiming
        disk.between = lambda: None
        assert numbers(await ledger.claim(2)) == [3, 4]
        assert counts(ledger) == {"not_started": 1, "under_way": 4}
    async with await SqliteLedger.open(path, clock=Clock()) as ledger:
        assert [row.number async for row in ledger.unfinished()] == [1, 2, 3, 4]


async def test_a_commit_of_a_cancelled_caller_that_waits_is_made_before_the_file_closes(path: Path) -> None:
    ledger = await begun(path)
    claiming, waiting = (asyncio.ensure_future(ledger.claim(2)) for _ in range(2))
    await asyncio.sleep(0)
    waiting.cancel()
    await ledger.close()
    await claiming
    with pytest.raises(LedgerClosed):
        await ledger.claim(1)
    async with await SqliteLedger.open(path, clock=Clock()) as ledger:
        assert counts(ledger) == {"not_started": 1, "under_way": 4}


async def test_an_edit_that_waits_is_refused_when_the_file_closes(path: Path) -> None:
    ledger = await begun(path)
    claiming = asyncio.ensure_future(ledger.claim(2))
    await until(ledger._handle._turn.locked)
    editing = asyncio.ensure_future(ledger.edit(lambda edits: edits.cancel([5])))
    await asyncio.sleep(0)
    await ledger.close()
    await claiming
    with pytest.raises(LedgerClosed):
        await editing
    async with await SqliteLedger.open(path, clock=Clock()) as ledger:
        assert counts(ledger) == {"not_started": 3, "under_way": 2}


async def test_work_comes_to_its_end_and_is_undone_however_often_its_caller_is_cancelled() -> None:
    gate, undone = asyncio.Event(), list[str]()

    async def work() -> str:
        await gate.wait()
        return "done"

    async def undo(result: str) -> None:
        undone.append(result)

    waiting = asyncio.ensure_future(to_its_end(work(), undo))
    for _ in range(3):
        await asyncio.sleep(0)
        waiting.cancel()
    await asyncio.sleep(0)
    assert not waiting.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert undone == ["done"]


async def test_an_import_that_is_cancelled_is_rolled_back(path: Path) -> None:
    async def endless() -> Any:
        for row in new_rows(700):
            yield row
        importing.cancel()
        await asyncio.Event().wait()

    async with await SqliteLedger.open(path, clock=Clock(), create=True) as ledger:
        importing = asyncio.ensure_future(ledger.import_rows(BINDING, endless()))
        with pytest.raises(asyncio.CancelledError):
            await importing
        assert ledger.is_empty
        await imported(ledger, new_rows(2))
        assert counts(ledger) == {"not_started": 2}


async def test_an_import_cut_off_in_a_statement_is_rolled_back(path: Path) -> None:

    def rows() -> Any:
        for row in new_rows(2000):
            if row.number == 1500:
                importing.cancel()
            yield row

    async with await SqliteLedger.open(path, clock=Clock(), create=True) as ledger:
        importing = asyncio.ensure_future(imported(ledger, rows()))
        with pytest.raises(asyncio.CancelledError):
            await importing
    async with await SqliteLedger.open(path, clock=Clock(), create=True) as ledger:
        assert ledger.is_empty


async def test_rows_changed_by_something_else_are_noticed(path: Path) -> None:
    async with await begun(path) as ledger:
        driver = ledger._handle._connection
        trigger = (
            "CREATE TRIGGER meddler BEFORE UPDATE ON row_states WHEN old.number = 2 "
            "BEGIN SELECT RAISE(IGNORE); END"
        )
        await driver.execute(trigger)
        with pytest.raises(LedgerDamaged, match="changed by something else"):
            await ledger.claim(3)
        with pytest.raises(LedgerDamaged):
            await ledger.claim(1)


async def test_a_disk_that_fails_at_the_end_still_gives_the_lock_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = await begun(path)
    really = aiosqlite.Connection.close

    async def failing(connection: aiosqlite.Connection) -> None:
        await really(connection)
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as broken:
        broken.setattr(aiosqlite.Connection, "close", failing)
        await ledger.close()
    async with await SqliteLedger.open(path, clock=Clock()) as ledger:
        assert counts(ledger) == {"not_started": 5}


async def test_a_failure_while_opening_leaves_nothing_open(path: Path) -> None:
    await (await begun(path)).close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096])
    with pytest.raises(LedgerDamaged):
        await SqliteLedger.open(path, clock=Clock())
    path.write_bytes(whole)
    async with await SqliteLedger.open(path, clock=Clock()) as ledger:
        assert counts(ledger) == {"not_started": 5}


async def test_the_log_cannot_be_begun_on_a_disk_that_fails(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = await SqliteLedger.open(path, clock=Clock(), create=True)
    really = aiosqlite.Connection.execute_fetchall

    def failing(connection: aiosqlite.Connection, sql: str, *rest: Any) -> Any:
        if "journal_mode" in sql:
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise error
        return really(connection, sql, *rest)

    monkeypatch.setattr(aiosqlite.Connection, "execute_fetchall", failing)
    with pytest.raises(LedgerBroken):
        await imported(ledger, new_rows(1))
    await ledger.close()


async def test_a_roll_back_that_fails_makes_the_ledger_unusable(
    path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(_: aiosqlite.Connection) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    async with await begun(path) as ledger:
        disk.faults = [(sqlite3.SQLITE_FULL, "before")]
        with monkeypatch.context() as broken:
            broken.setattr(aiosqlite.Connection, "rollback", failing)
            with pytest.raises(LedgerBroken):
                await ledger.claim(2)
        with pytest.raises(LedgerBroken):
            await ledger.first()
    async with await SqliteLedger.open(path, clock=Clock()) as ledger:
        assert counts(ledger) == {"not_started": 5}


async def test_a_caller_cancelled_at_any_await_leaves_no_transaction_open(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows are cancelled, or none. The ledger goes on, unless its rows may be cancelled already."""
    await (await begun(path)).close()
    whole, calls, ends, goes_on = path.read_bytes(), itertools.count(1), [False], 0
    while not ends[-1]:
        path.write_bytes(whole)
        Path(f"{path}.lock").unlink()
        async with await SqliteLedger.open(path, clock=Clock()) as ledger:
            with monkeypatch.context() as patched:
                ends.append(await _edited(ledger, next(calls), patched))
            assert not ledger._handle._connection.in_transaction
            with contextlib.suppress(LedgerBroken):
                await ledger.edit(lambda edits: edits.cancel([]))
                goes_on += 1
        async with await SqliteLedger.open(path, clock=Clock()) as ledger:
            assert counts(ledger) in ({"not_started": 5}, {"cancelled": 5})
            assert (await ledger.check()).findings == ()
    assert len(ends) > 5
    assert goes_on > 3


async def _edited(ledger: SqliteLedger, call: int, patched: pytest.MonkeyPatch) -> bool:
    """Cancel all rows, and the caller at this call of SQLite. Returns whether it came to its end."""
    really, calls = aiosqlite.Connection._execute, itertools.count(1)

    async def counting(connection: aiosqlite.Connection, *given: Any) -> Any:
        if next(calls) == call:
            asyncio.get_running_loop().call_soon(editing.cancel)
        return await really(connection, *given)

    patched.setattr(aiosqlite.Connection, "_execute", counting)
    editing = asyncio.ensure_future(ledger.edit(lambda edits: edits.cancel([1, 2, 3, 4, 5])))
    try:
        await editing
    except asyncio.CancelledError:
        return False
    return True


def test_a_ballast_takes_real_room_and_is_dropped_once(tmp_path: Path) -> None:
    ballast = DiskReserve(str(tmp_path / "ballast"), 100_000)
    assert ballast.ready()
    assert os.stat(ballast.path).st_blocks * 512 >= 100_000
    made = os.stat(ballast.path).st_mtime_ns
    assert ballast.ready()
    assert os.stat(ballast.path).st_mtime_ns == made
    os.truncate(ballast.path, 10)
    assert ballast.ready()
    assert os.path.getsize(ballast.path) == 100_000
    assert ballast.drop()
    assert not ballast.drop()
    with pytest.raises(LedgerReadOnly, match=r"cannot be written \(No such file"):
        DiskReserve(str(tmp_path / "nowhere" / "ballast"), 1).ready()


async def test_a_ballast_that_is_a_link_is_no_full_disk(tmp_path: Path, path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(bytes(RESERVE_SIZE))
    async with await begun(path) as ledger:
        for target in (other, tmp_path / "nowhere"):
            (tmp_path / "ledger.ballast").unlink()
            (tmp_path / "ledger.ballast").symlink_to(target)
            with pytest.raises(LedgerForeign, match=r"ledger\.ballast: is a link.*remove it"):
                await ledger.claim(1)
        assert counts(ledger) == {"not_started": 5}
    assert other.stat().st_size == RESERVE_SIZE


def test_a_watch_learns_of_files_as_they_appear(tmp_path: Path) -> None:
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    (tmp_path / "one").touch()
    watch = FileWatch((one, two))
    assert watch.gone() is None
    (tmp_path / "two").touch()
    assert watch.gone() is None
    os.unlink(two)
    assert watch.gone() == two
