"""The store in an SQLite file: processes of one host, its clock, and files that it refuses."""

from __future__ import annotations

import asyncio
import errno
import multiprocessing
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_async import ConfigurationError, _files
from payments_async._rate_limit import store_sqlite
from payments_async._rate_limit.store import LimitRow, PermitRequest, StoreUnavailable
from payments_async._rate_limit.store_client import open_store
from payments_async._rate_limit.store_sqlite import FORM, ClockReading, SQLiteStore, problem_of
from payments_async._runtime import SYSTEM, SystemRuntime, check_process

ROW = LimitRow("https://api.example/v1", "3f9a", "guard")


class Adding:
    """A rule that adds numbers, and answers with the sum and the store's time."""

    def __init__(self, within: Callable[[], object] = lambda: None) -> None:
        self._within = within

    def read(self, values: Any) -> int:
        return int(values["sum"]) if values is not None else 0

    def write(self, state: int) -> dict[str, int]:
        return {"sum": state}

    def change(
        self, state: int, kind: str, values: dict[str, Any], now: float, waited: float
    ) -> tuple[int, Any]:
        assert waited == 0.0
        self._within()
        return state + values[kind], state + values[kind]


def add(store: SQLiteStore, number: int = 1, rule: Adding | None = None, row: LimitRow = ROW) -> int:
    """The sum after a change."""
    return int(asyncio.run(store.change(row, rule or Adding(), "add", {"add": number}))[0])


def time_of(store: SQLiteStore) -> float:
    """The store's time."""
    return float(asyncio.run(store.change(ROW, Adding(), "add", {"add": 0}))[1])


def closed(store: SQLiteStore) -> None:
    asyncio.run(store.aclose())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "guard.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStore]:
    made = SQLiteStore(str(path))
    yield made
    closed(made)


class Clocks(SystemRuntime):
    """A machine's clocks in the test's hands."""

    def __init__(self) -> None:
        super().__init__()
        self.wall = 1_800_000_000.0
        self.boot: float | None = 100.0
        self.now = lambda: datetime.fromtimestamp(self.wall, UTC)  # type: ignore[assignment] # a test sets it
        self.boottime = lambda: self.boot


# --- Rows ---


def test_rows_are_kept_apart_and_for_the_next_process(store: SQLiteStore, path: Path) -> None:
    others = [attrs.evolve(ROW, kind="refusals"), attrs.evolve(ROW, fingerprint="77")]
    assert [add(store, 5), add(store, 2), *(add(store, 1, row=row) for row in others)] == [5, 7, 1, 1]
    closed(store)
    closed(store)
    assert add(store) == 8
    other = SQLiteStore(str(path))
    assert [add(other), add(store)] == [9, 10]
    closed(other)


async def test_permits_are_a_rule_like_others(path: Path) -> None:
    limits = open_store(f"sqlite:{path}")
    row = attrs.evolve(ROW, kind="write")
    ask = PermitRequest(worker="a", limit=60_000, wanted=1000, held=0, lifetime=35.0)
    first = await limits.reserve(row, ask)
    assert (first.granted, first.waited, first.late) == (125, 0.0, 0.0)
    await limits.close_after_429(row, 20.0)
    assert (await limits.reserve(row, ask)).closed_for > 10.0
    await limits.aclose()


def test_the_file_is_its_owners_alone_and_has_no_account_data(store: SQLiteStore, path: Path) -> None:
    before = os.umask(0)
    try:
        add(store)
    finally:
        os.umask(before)
    assert {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()} == {
        "guard.sqlite": 0o600,
        "guard.sqlite-journal": 0o600,
    }
    with closing(sqlite3.connect(path)) as control:
        assert control.execute("SELECT * FROM states").fetchall() == [(*attrs.astuple(ROW), '{"sum": 1}')]
        assert control.execute("PRAGMA journal_mode").fetchone() == ("delete",)  # not WAL, which would stay


def test_a_commit_is_synced(store: SQLiteStore) -> None:
    add(store)
    assert store._connection is not None
    found = [
        store._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")
    ]
    assert found == [2, "truncate"]


def test_a_change_that_the_rule_refuses_leaves_the_row_and_no_lock(store: SQLiteStore, path: Path) -> None:
    add(store, 5)

    def refuse() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(store.change(ROW, Adding(refuse), "add", {"add": 1}))
    other = SQLiteStore(str(path))
    assert [add(other), add(store)] == [6, 7]
    closed(other)


@pytest.mark.parametrize("content", ["{", "[]", '{"total": 1}'])
def test_a_row_that_cannot_be_read_is_named_and_left(store: SQLiteStore, path: Path, content: str) -> None:
    add(store)
    with closing(sqlite3.connect(path)) as control:
        control.execute("UPDATE states SET content = ?", [content])
        control.commit()
        with pytest.raises(
            ConfigurationError, match=r"guard\.sqlite has a row that cannot be read.* 3f9a, guard"
        ):
            add(store)
        assert control.execute("SELECT content FROM states").fetchone() == (content,)


def test_a_file_that_was_removed_is_made_again_and_one_that_was_replaced_is_used(
    store: SQLiteStore, path: Path
) -> None:
    add(store, 5)
    path.rename(path.with_name("kept"))
    assert add(store) == 1
    path.with_name("kept").replace(path)
    assert add(store) == 6


# --- Processes ---

_SPAWN = multiprocessing.get_context("spawn")


def adding(path: str, count: int, answers: Connection) -> None:
    """A process that adds 1 so many times, and tells each sum."""
    store = SQLiteStore(path)
    for _ in range(count):
        while True:
            try:
                answers.send(add(store))
                break
            except StoreUnavailable:  # the other process had many turns: a busy machine
                pass


def started(path: Path, count: int) -> tuple[Any, Connection]:
    ours, theirs = _SPAWN.Pipe(duplex=False)
    process = _SPAWN.Process(target=adding, args=(str(path), count, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def told(answers: Connection) -> Iterator[int]:
    """Sums until the process has ended."""
    while True:
        try:
            yield answers.recv()
        except EOFError:
            return


def test_two_processes_lose_none_of_each_others_changes(store: SQLiteStore, path: Path) -> None:
    both = [started(path, 200) for _ in range(2)]
    sums = [each for _, answers in both for each in told(answers)]
    for process, _ in both:
        process.join()
    assert sorted(sums) == [*range(1, 401)]
    assert add(store) == 401


def test_a_process_that_is_killed_leaves_whole_changes_and_no_lock(store: SQLiteStore, path: Path) -> None:
    for _ in range(3):
        process, answers = started(path, sys.maxsize)
        sums = told(answers)
        seen = next(sums) + 20
        while next(sums) < seen:
            pass
        process.kill()
        last = [seen, *sums][-1]
        process.join()
        assert add(store) in (last + 1, last + 2)  # the last one may have been cut off before it was told


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_uses_a_connection_of_its_own(store: SQLiteStore) -> None:
    add(store)
    inherited = store._connection
    pid = os.fork()
    if not pid:
        verdict = 1
        try:
            check_process()  # the door of each call
            is_other = add(store) == 2 and store._connection is not inherited
            verdict = 0 if is_other and inherited in store_sqlite._INHERITED else 2
        finally:
            os._exit(verdict)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert store._connection is inherited
    assert add(store) == 3


def test_what_a_child_inherits_is_kept_and_not_closed(store: SQLiteStore) -> None:
    add(store)
    inherited = store._connection
    store_sqlite._after_fork()
    closed(store)
    assert inherited is not None
    assert inherited.execute("SELECT 1").fetchone() == (1,)
    store_sqlite._INHERITED.remove(inherited)
    inherited.close()


def test_a_fork_waits_for_a_transaction(store: SQLiteStore) -> None:
    free: list[bool] = []

    def look() -> None:
        free.append(store_sqlite._turn.acquire(blocking=False))

    def look_elsewhere() -> None:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()

    add(store, rule=Adding(look_elsewhere))
    assert free == [False]


# --- The clock ---


def test_the_clock_begins_at_the_wall_clock_and_goes_on_when_that_is_set(path: Path) -> None:
    clocks = Clocks()
    store = SQLiteStore(str(path), runtime=clocks)
    start = clocks.wall
    assert time_of(store) == start
    for step in (-86_400.0, 3 * 86_400.0):  # set back, and forward
        clocks.wall += step
        clocks.boot = (clocks.boot or 0.0) + 10.0
        time_of(store)
    assert time_of(store) == start + 20.0
    clocks.boot = 0.0
    assert time_of(store) == start + 20.0
    closed(store)


def test_after_a_restart_of_the_machine_the_wall_clock_says_how_long_it_took(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot_id = tmp_path / "boot_id"
    monkeypatch.setattr(store_sqlite, "BOOT_ID", str(boot_id))
    clocks, times = Clocks(), []
    for boot, wall in (("one\n", 0.0), ("two\n", 90.0), ("three\n", -500.0), (None, 30.0)):
        boot_id.unlink(missing_ok=True)
        if boot is not None:
            boot_id.write_text(boot)
        clocks.wall += wall
        clocks.boot = 7.0
        store = SQLiteStore(str(path), runtime=clocks)
        times.append(time_of(store) - 1_800_000_000.0)
        closed(store)
    assert times == [0.0, 90.0, 90.0, 120.0]


@pytest.mark.parametrize(
    ("boot", "boottime", "wall", "passed"),
    [
        ("a", 103.0, 9_000.0, 3.0),
        ("a", 90.0, 9_000.0, 0.0),
        ("b", 103.0, 1_004.0, 4.0),
        ("b", 103.0, 900.0, 0.0),
        ("a", None, 1_005.0, 5.0),
    ],
)
def test_time_that_has_passed(boot: str, boottime: float | None, wall: float, passed: float) -> None:
    last = ClockReading("a", 100.0, 1_000.0, 50.0)
    assert last.after(boot, boottime, wall) == ClockReading(boot, boottime, wall, 50.0 + passed)
    never = attrs.evolve(last, boottime=None)
    assert never.after("a", 103.0, 1_006.0).value == 56.0


# --- Files that are refused ---


def refused(store: SQLiteStore, kind: type[Exception] = ConfigurationError) -> str:
    with pytest.raises(kind) as caught:
        asyncio.run(store.change(ROW, Adding(), "add", {"add": 1}))
    assert caught.value.__cause__ is None
    return str(caught.value)


@pytest.mark.parametrize("url", ["sqlite:", "sqlite:guard.sqlite", "sqlite://host/guard", "sqlite:/a\0b"])
def test_an_address_without_an_absolute_path_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="must be sqlite:/absolute/path"):
        open_store(url)


def test_a_path_with_signs_and_of_a_link_is_taken(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "a?mode=memory#%20 é")
    store = open_store(f"sqlite://{tmp_path}/link")
    assert isinstance(store, SQLiteStore)
    add(store)
    closed(store)
    assert (tmp_path / "a?mode=memory#%20 é").exists()


def written(statement: str) -> Callable[[Path], None]:
    """Make a database that is not ours."""

    def make(path: Path) -> None:
        with closing(sqlite3.connect(path)) as control:
            control.executescript(statement)

    return make


def ours(damage: Callable[[Path], object]) -> Callable[[Path], None]:
    """Make a store, and damage it."""

    def make(path: Path) -> None:
        store = SQLiteStore(str(path))
        add(store)
        closed(store)
        damage(path)

    return make


def overwrite(path: Path) -> None:
    """Fill all pages but the header's own bytes."""
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda path: path.write_text("amount,currency\n" * 99),
            "is damaged, or no database: choose another",
        ),
        (written("CREATE TABLE t (x)"), "of another application: choose another path"),
        (written("PRAGMA application_id = 7"), "of another application: choose another path"),
        (ours(written(f"PRAGMA user_version = {FORM + 1}")), "has form 2, newer than 1: update this library"),
        (ours(written("DROP TABLE states")), "is damaged"),
        (ours(overwrite), "is damaged"),
        (ours(lambda path: path.chmod(0o640)), r"others than its owner \(mode 640\): chmod 600 it"),
        (ours(lambda path: path.chmod(0o602)), r"mode 602"),
        (ours(lambda path: path.with_name("b").hardlink_to(path)), "a second name"),
        (lambda path: path.mkdir(), "is no regular file: choose"),
    ],
)
def test_a_file_that_is_no_store_is_refused_and_left(
    path: Path, store: SQLiteStore, make: Callable[[Path], object], said: str
) -> None:
    make(path)
    if path.is_file():
        path.chmod(path.stat().st_mode & 0o666 if "mode" in said else 0o600)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(ConfigurationError, match=said) as caught:
        asyncio.run(store.change(ROW, Adding(), "add", {"add": 1}))
    assert str(caught.value).startswith(f"the limit store sqlite:{path}")
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_file_of_another_user_is_refused(store: SQLiteStore, path: Path) -> None:
    add(store)
    found = path.stat()
    assert problem_of(found, os.geteuid()) is None
    assert "another user: run as its owner" in str(problem_of(found, found.st_uid + 1))


def test_an_empty_file_is_used(store: SQLiteStore, path: Path) -> None:
    path.touch(0o600)
    assert add(store) == 1


def test_a_missing_folder_is_not_made(tmp_path: Path) -> None:
    said = refused(SQLiteStore(str(tmp_path / "nowhere" / "guard")))
    assert said.endswith("cannot be made (No such file or directory): make its folder, writable by this user")
    assert not (tmp_path / "nowhere").exists()


def test_a_network_file_system_is_refused_before_anything_is_made(
    path: Path, store: SQLiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"9 1 0:1 / {tmp_path} rw - nfs4 server:/x rw\n")
    monkeypatch.setattr(_files, "MOUNTS", str(mounts))
    assert refused(store).endswith("lies on a file system of type nfs4: put it on a local disk")
    assert not path.exists()


# --- Files that cannot be used now ---


def test_a_file_that_another_process_makes_first_is_used(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, is_made = SQLiteStore._make, SQLiteStore._is_made

    def twice(self: SQLiteStore) -> None:
        make(self)
        make(self)

    def late(self: SQLiteStore, connection: sqlite3.Connection) -> bool:
        found = is_made(self, connection)
        if not found and not connection.in_transaction:
            monkeypatch.undo()
            other = SQLiteStore(str(path))
            for step in (other.change(ROW, Adding(), "add", {"add": 5}), other.aclose()):
                with pytest.raises(StopIteration):
                    step.send(None)  # a loop runs here already, and nothing in it waits
        return found

    monkeypatch.setattr(SQLiteStore, "_make", twice)
    monkeypatch.setattr(SQLiteStore, "_is_made", late)
    assert add(store) == 6


def test_a_store_that_another_process_keeps_locked_is_unavailable(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_sqlite, "PATIENCE", 0.01)
    store = SQLiteStore(str(path))
    add(store)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert refused(store, StoreUnavailable).endswith("cannot be used now (SQLITE_BUSY)")
    assert add(store) == 2
    closed(store)


@pytest.mark.parametrize(
    ("limit", "name"), [("query_only = 1", "SQLITE_READONLY"), ("max_page_count = 1", "SQLITE_FULL")]
)
def test_a_disk_that_takes_no_more_makes_it_unavailable(store: SQLiteStore, limit: str, name: str) -> None:
    add(store)
    assert store._connection is not None
    store._connection.execute(f"PRAGMA {limit}")
    with pytest.raises(StoreUnavailable, match=rf"cannot be used now \({name}\)"):
        asyncio.run(store.change(attrs.evolve(ROW, address="x" * 9_999), Adding(), "add", {"add": 1}))
    assert add(store) == 2


def test_a_file_that_the_disk_has_no_room_for_is_unavailable(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(store_sqlite.os, "open", full)
        said = refused(store, StoreUnavailable)
    assert said.endswith("cannot be used now (No space left on device)")
    assert add(store) == 1


def test_the_systems_clocks_are_used_unless_told_otherwise(store: SQLiteStore) -> None:
    before = SYSTEM.now().timestamp()
    assert before <= time_of(store) <= time_of(store)
