"""Sums that processes share: in a file of the host, or in PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_async import (
    AsyncPayments,
    ConfigurationError,
    DeadlineExceeded,
    Guard,
    GuardRefused,
    LimitStoreUnavailable,
)
from payments_async._guard import key_guard as keys
from payments_async._guard import state as states
from payments_async._guard.sqlite import FileState, MemoryState
from payments_async._runtime import SYSTEM
from payments_async.sandbox import Sandbox
from tests.guard.test_calls import key_guard, refused
from tests.support.motion import PAYOUT
from tests.support.servers import CutProxy, PostgresServer
from tests.sync.scenes import run_with_service

SUMS = [("XOF", 100, "hour"), ("XOF", 1_000, "day")]


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Options of a client whose guard keeps its sums there."""
    if request.param == "sqlite":
        return in_file(tmp_path)
    guard = Guard(most={"XOF": 100}, sums=SUMS)
    return {"guard": guard, "limit_store": request.getfixturevalue("database"), "expected_workers": 1}


@pytest.fixture(autouse=True)
def _all_is_told() -> Iterator[None]:
    """What a test has paid is told before the next one begins."""
    yield
    for state in keys._states.values():
        state.end()


def in_file(folder: Path, **more: Any) -> dict[str, Any]:
    return {"guard": Guard(most={"XOF": 100}, sums=SUMS, state=folder / "guard.sqlite", **more)}


@pytest.fixture
def connected(sandbox: Sandbox) -> Callable[[dict[str, Any]], AsyncPayments]:
    return lambda place: AsyncPayments(sandbox.api_key, base_url=sandbox.base_url, **place)


def begin(client: Any) -> None:
    """What `payments guard begin` does."""
    sums = key_guard(client).sums
    sums.begin()
    sums.state.close()


async def counted(client: AsyncPayments) -> list[tuple[str, str]]:
    """What `payments guard show` says was paid and is held, after all that was told."""
    sums = key_guard(client).sums
    figures = await asyncio.wrap_future(sums.state.submit(sums.figures))
    return [(str(each.paid), str(each.held)) for each in figures]


def payout(amount: int, number: int | str) -> dict[str, Any]:
    return {**PAYOUT, "amount": amount, "reference": f"r-{number}"}


async def test_a_state_counts_for_all_its_clients_once_it_was_begun(
    sandbox: Sandbox, connected: Any, place: dict[str, Any]
) -> None:
    async with connected(place) as client:
        assert (await refused(client.payouts.create(**payout(1, 0)))).rule == "begin"
        begin(client)
        sandbox.on("payouts.create").respond("http:422")
        with pytest.raises(Exception, match="422"):
            await client.payouts.create(**payout(100, "refused by the service"))
        ends = await asyncio.gather(
            *(client.payouts.create(**payout(10, number)) for number in range(1, 16)), return_exceptions=True
        )
        assert sum(isinstance(end, GuardRefused) for end in ends) == 5
        assert len(await client.payouts.list(page_size=100)) == 10
        assert await counted(client) == [("100", "0")] * 2


FORKED = """
import logging
logging.disable()  # each refusal is a warning
from payments_async import Guard, GuardRefused
from tests.guard.test_states import begin

guard = Guard(most={{"XOF": 100}}, sums=[("XOF", 400, "hour")], state={state!r})
client = Payments(key, base_url=base_url, guard=guard)
begin(client)
client.payouts.create(**payout("before"))
children = []
for worker in range(8):
    pid = os.fork()
    if pid == 0:
        made = 0
        for number in range(2):
            try:
                client.payouts.create(**payout(f"{{worker}}-{{number}}"))
                made += 1
            except GuardRefused:
                pass
        sys.exit(made)
    children.append(pid)
print(sum(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children))
client.close()
"""


@pytest.mark.slow
def test_eight_forked_workers_do_not_exceed_what_they_share(sandbox: Sandbox, tmp_path: Path) -> None:
    script = FORKED.format(state=str(tmp_path / "guard.sqlite"))
    assert run_with_service(sandbox, script) == "7\n"  # of 16, each of 50, and one before the forks


PAYS = """
import logging
from payments_async import Guard, GuardRefused
logging.disable()  # each refusal is a warning
guard = Guard(most={{"XOF": 100}}, sums={sums!r}, state={state!r})
try:
    Payments(key, base_url=base_url, guard=guard).payouts.create(**payout({name!r}))
except GuardRefused as error:
    print(error.rule)
"""


def paid_by_another_process(sandbox: Sandbox, state: Path, name: str) -> str:
    """What a program says that pays 50 and ends without closing its client."""
    return run_with_service(sandbox, PAYS.format(sums=SUMS, state=str(state), name=name))


async def test_a_program_that_ends_has_told_what_it_paid_and_knows_a_state_that_was_put_back(
    sandbox: Sandbox, connected: Any, tmp_path: Path
) -> None:
    path, copy = tmp_path / "guard.sqlite", tmp_path / "copy.sqlite"
    async with connected(in_file(tmp_path)) as client:
        begin(client)
        assert await asyncio.to_thread(paid_by_another_process, sandbox, path, "one") == ""
        assert await counted(client) == [("50", "0")] * 2
        await asyncio.to_thread(move, path, copy)
        assert await asyncio.to_thread(paid_by_another_process, sandbox, path, "two") == ""
        await asyncio.to_thread(move, copy, path)
        assert await asyncio.to_thread(paid_by_another_process, sandbox, path, "three") == "begin\n"
        begin(client)
        assert (await refused(client.payouts.create(**payout(51, 4)))).allowed == 50  # as the copy knows


def move(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.chmod(0o640), "may be used by others than its owner .*chmod 600"),
        (lambda path: os.link(path, f"{path}.2"), "has a second name"),
        (lambda path: (path.unlink(), path.mkdir()), "is no regular file"),
        (lambda path: path.write_text("no database" * 100), "is damaged, or no database"),
        (lambda path: mark(path, "application_id = 7"), "is a database of another application"),
        (lambda path: mark(path, "user_version = 9"), "another version of this library"),
    ],
)
async def test_a_file_that_cannot_be_used_refuses_at_once_and_says_why(
    sandbox: Sandbox, connected: Any, tmp_path: Path, spoil: Any, said: str
) -> None:
    async with connected(in_file(tmp_path)) as client:
        begin(client)
        spoil(tmp_path / "guard.sqlite")
        with pytest.raises(ConfigurationError, match=rf"guard's sums cannot be read: .*guard.sqlite.*{said}"):
            await client.payouts.create(**payout(1, 1))
    assert not sandbox.books.payouts()


def mark(path: Path, pragma: str) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA {pragma}")


async def test_a_file_in_a_folder_that_is_not_there_is_not_made(connected: Any, tmp_path: Path) -> None:
    async with connected(in_file(tmp_path / "none")) as client:
        with pytest.raises(ConfigurationError, match=r"cannot be made .*make its folder"):
            await client.payouts.create(**payout(1, 1))


async def test_a_database_that_gives_no_rights_says_which_are_missing(
    connected: Any, postgres: PostgresServer
) -> None:
    with postgres.database() as name:
        postgres.query(name, "CREATE ROLE clerk LOGIN PASSWORD 'x'")
        address = f"postgresql://clerk:x@127.0.0.1:{postgres.port}/{name}"
        place = {"guard": Guard(most={"XOF": 100}, sums=SUMS), "limit_store": address, "expected_workers": 1}
        async with connected(place) as client:
            with pytest.raises(ConfigurationError, match="GRANT USAGE, CREATE ON SCHEMA payments"):
                await client.payouts.create(**payout(1, 1))


async def test_tables_of_another_version_are_told(connected: Any, postgres: PostgresServer) -> None:
    with postgres.database() as name:
        postgres.query(name, "CREATE SCHEMA payments; CREATE TABLE payments.guards (account text)")
        address = f"postgresql://postgres@127.0.0.1:{postgres.port}/{name}"
        place = {"guard": Guard(most={"XOF": 100}, sums=SUMS), "limit_store": address, "expected_workers": 1}
        async with connected(place) as client:
            with pytest.raises(ConfigurationError, match=r"of another version: drop payments\.guards"):
                await client.payouts.create(**payout(1, 1))


async def test_a_state_that_is_away_refuses_and_comes_back(
    connected: Any, postgres: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CutProxy(("127.0.0.1", postgres.port)) as proxy:
        address = database.replace(f":{postgres.port}/", f":{proxy.port}/")
        place = {"guard": Guard(most={"XOF": 100}, sums=SUMS), "limit_store": address, "expected_workers": 1}
        async with connected(place) as client:
            begin(client)
            await client.payouts.create(**payout(1, 1))
            proxy.cut()
            with monkeypatch.context() as impatient:
                impatient.setattr(states, "PATIENCE", 0.05)
                with pytest.raises(LimitStoreUnavailable, match="guard's sums cannot be read") as caught:
                    await client.payouts.create(**payout(1, 2))
            assert (caught.value.effect, caught.value.attempts) == ("none", ())
            proxy.heal()
            while True:
                try:
                    await client.payouts.create(**payout(99, 3))
                    break
                except LimitStoreUnavailable:
                    pass


async def test_a_state_that_is_away_for_a_moment_is_tried_again(
    connected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked, failures = FileState._checked, [OSError(5, "Input/output error")]

    def failing_once(state: FileState) -> Any:
        if failures:
            raise failures.pop()
        return checked(state)

    async with connected(in_file(tmp_path)) as client:
        begin(client)
        monkeypatch.setattr(FileState, "_checked", failing_once)
        await client.payouts.create(**payout(1, 1))
    assert not failures


async def test_a_forked_child_and_the_end_of_a_process_leave_what_was_counted(
    connected: Any, tmp_path: Path
) -> None:
    async with connected(in_file(tmp_path)) as client:
        begin(client)
        await client.payouts.create(**payout(60, 1))
        assert await counted(client) == [("60", "0")] * 2
        for happens in (states._after_fork, keys._after_fork, states._at_exit):
            happens()
            assert (await refused(client.payouts.create(**payout(41, 2)))).allowed == 40


async def test_sums_in_postgresql_without_its_library_say_what_to_install(
    connected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "payments_async._guard.postgresql", None)
    place = {"guard": Guard(most={"XOF": 100}, sums=SUMS), "limit_store": "postgresql://127.0.0.1/none"}
    with pytest.raises(ConfigurationError, match="sums in PostgreSQL need"):
        connected({**place, "expected_workers": 1})


async def test_a_deadline_that_passes_while_the_sums_are_read_is_what_the_error_says(
    connected: Any, tmp_path: Path
) -> None:
    async with connected(in_file(tmp_path)) as client:
        begin(client)
        with closing(sqlite3.connect(tmp_path / "guard.sqlite")) as busy, busy:
            busy.execute("BEGIN EXCLUSIVE")
            with pytest.raises(DeadlineExceeded) as caught:
                await client.payouts.create(**payout(1, 1), deadline=0.2)
        assert (caught.value.effect, caught.value.attempts) == ("none", ())
        await client.payouts.create(**payout(100, 2))


@pytest.mark.parametrize(
    "spoil", [Path.mkdir, lambda path: path.write_text("x"), lambda path: path.write_text("1.0")]
)
async def test_a_note_that_cannot_be_used_refuses_and_says_where_it_is(
    sandbox: Sandbox,
    connected: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[Path], object],
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    async with connected(in_file(tmp_path)) as client:
        begin(client)
        (note,) = (tmp_path / "home" / "payments-sdk").iterdir()
        note.unlink()
        spoil(note)
        with pytest.raises(ConfigurationError, match=r"cannot note in .*payments-sdk/guard-.*XDG_STATE_HOME"):
            await client.payouts.create(**payout(50, 1))
    assert not sandbox.books.payouts()


@pytest.mark.parametrize(("home", "is_noted"), [("home", True), ("~nobody/none", False)])
def test_a_relative_folder_of_notes_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str, is_noted: bool
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / home) if is_noted else home)
    monkeypatch.chdir(tmp_path)
    guard = attrs.evolve(in_file(tmp_path)["guard"])
    client = AsyncPayments("sk_sandbox_" + "n" * 40, base_url="http://127.0.0.1:9/v1", guard=guard)
    if is_noted:
        begin(client)
        assert list((tmp_path / home / ".local/state/payments-sdk").iterdir())
    else:
        with pytest.raises(ConfigurationError, match="there is no home directory"):
            begin(client)
    assert not (tmp_path / "relative").exists()


def test_two_first_uses_at_one_moment_start_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two would work on one connection: with a database, within one transaction."""
    made: list[threading.Thread] = []

    class Counted(threading.Thread):
        def __init__(self, **facts: Any) -> None:
            super().__init__(**facts)
            made.append(self)
            os.sched_yield()  # the other user's turn

    monkeypatch.setattr(states, "_states", [])
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(100):
            state, both = MemoryState(SYSTEM), threading.Barrier(2)

            def use(state: MemoryState = state, both: threading.Barrier = both) -> None:
                both.wait()
                state.submit(lambda: None)

            users = [threading.Thread(target=use) for _ in range(2)]
            with monkeypatch.context() as patch:
                patch.setattr(threading, "Thread", Counted)
                for each in users:
                    each.start()
                for each in users:
                    each.join()
            state.end()
    finally:
        sys.setswitchinterval(before)
    assert len(made) == 100
