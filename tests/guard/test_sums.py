"""The rule of sums: what a window holds, when there is room, whose clock counts, what a lost state grants."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from payments_async import ConfigurationError
from payments_async._guard import clocks, postgresql, sqlite
from payments_async._guard.postgresql import DatabaseState
from payments_async._guard.progress_note import noted
from payments_async._guard.sqlite import FileState, MemoryState
from payments_async._guard.state import StateUnavailable
from payments_async._guard.sums import LEASE, SETTLING, GuardSums, WriteAmount, amount_of, units_of
from payments_async._runtime import SystemRuntime

HOUR, DAY = 3_600, 86_400
BEGAN = 1_000_000.0
HELD = LEASE + SETTLING
LIMITS: Any = {"GHS": [(HOUR, Decimal(100))]}


class Time(SystemRuntime):
    """Time that passes when a test says so, on a machine whose clocks may be set."""

    def __init__(self) -> None:
        super().__init__()
        self.at = BEGAN
        self.wall_is_ahead = 0.0
        self.boottime = self.monotonic = lambda: self.at

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.at + self.wall_is_ahead, UTC)


@pytest.fixture
def time() -> Time:
    return Time()


def begun(state: Any, limits: Any = LIMITS) -> GuardSums:
    """The sums in a state, whose windows are trusted."""
    sums = sums_in(state, limits)
    sums.begin()
    return sums


def sums_in(state: Any, limits: Any = LIMITS) -> GuardSums:
    """The sums in a state, for a process that has not seen them yet."""
    sums = GuardSums(state, "account")
    sums.limits = limits
    return sums


def amount(write: str, value: str, claim: str = "one") -> WriteAmount:
    return WriteAmount(write, "GHS", Decimal(value), claim)


def fits(sums: GuardSums, value: str, write: str = "new") -> bool:
    """Whether an amount fits; it is then held."""
    return sums.reserve(amount(write, value)) is None


@pytest.mark.parametrize(
    ("outcome", "at", "has_room"),
    [
        (None, HELD + HOUR - 1, False),  # it may be carried out until then, and counts an hour from there
        (None, HELD + HOUR, True),
        ("paid", 10 + HOUR - 1, False),
        ("paid", 10 + HOUR, True),
        ("unpaid", 10, True),
        ("never", 10, True),
    ],
)
def test_an_amount_counts_for_the_windows_length_after_its_answer(
    time: Time, outcome: Any, at: float, has_room: bool
) -> None:
    sums = begun(MemoryState(time))
    assert fits(sums, "60", "first")
    time.at = BEGAN + 10
    if outcome is not None:
        sums.settle(amount("first", "60"), outcome)
    time.at = BEGAN + at
    assert fits(sums, "40.01") is has_room


@pytest.mark.parametrize(
    ("outcomes", "has_room"),
    [
        ([("unpaid", "one")], False),  # a refusal to one of two proves nothing
        ([("unpaid", "one"), ("unpaid", "two")], False),
        ([("never", "two")], True),
        ([("paid", "two"), ("unpaid", "one")], False),
    ],
)
def test_who_has_reserved_a_write_beside_another_does_not_free_it(
    time: Time, outcomes: Any, has_room: bool
) -> None:
    sums = begun(MemoryState(time))
    for claim in ("one", "two"):
        assert sums.reserve(amount("first", "60", claim)) is None
    for outcome, claim in outcomes:
        sums.settle(amount("first", "60", claim), outcome)
    assert fits(sums, "41") is has_room


@pytest.mark.parametrize(
    ("is_paid", "at", "counts_until"),
    [
        (False, HELD, HELD + HELD + HOUR),  # renewed for attempts that begin then
        (False, HELD + HOUR - 1, 2 * HELD + HOUR - 1 + HOUR),
        (True, HOUR - 1, HOUR),
    ],
)
def test_a_write_that_comes_again_while_it_counts_takes_nothing_more(
    time: Time, is_paid: bool, at: float, counts_until: float
) -> None:
    sums = begun(MemoryState(time))
    assert fits(sums, "60", "first")
    if is_paid:
        sums.settle(amount("first", "60"), "paid")
    time.at = BEGAN + at
    assert fits(sums, "60", "first")
    assert not fits(sums, "41")
    time.at = BEGAN + counts_until - 1
    assert not fits(sums, "41")
    time.at = BEGAN + counts_until
    assert fits(sums, "41")


def test_a_write_whose_key_may_protect_it_no_longer_is_reserved_as_new(time: Time) -> None:
    sums = begun(MemoryState(time), {"GHS": [(7 * DAY, Decimal(100))]})
    assert fits(sums, "60", "first")
    time.at = BEGAN + DAY
    assert not fits(sums, "60", "first")


def test_of_several_windows_the_one_without_room_is_named_with_the_time_of_room(time: Time) -> None:
    limits = {"GHS": [(HOUR, Decimal(100)), (DAY, Decimal(150))], "XOF": [(HOUR, Decimal(10))]}
    sums = begun(MemoryState(time), limits)
    assert fits(sums, "100", "first")
    sums.settle(amount("first", "100"), "paid")
    time.at = BEGAN + HOUR
    assert fits(sums, "50", "second")
    shortage = sums.reserve(amount("third", "1"))
    assert shortage is not None
    window = shortage.window
    assert (window.seconds, window.most, window.paid + window.held) == (DAY, Decimal(150), Decimal(150))
    assert (shortage.wait, window.wait) == (DAY - HOUR, 0.0)
    held = sums.reserve(amount("fourth", "100"))  # what is held may be given back at any time
    assert held is not None
    assert (held.window.seconds, held.wait) == (HOUR, 1.0)


@pytest.mark.parametrize("counted", [(), (DAY,)])
def test_a_new_window_is_not_known_though_others_are(time: Time, counted: tuple[int, ...]) -> None:
    sums = begun(MemoryState(time), {"GHS": [(seconds, Decimal(100)) for seconds in counted]})
    sums.limits = LIMITS
    assert [each.wait for each in sums.figures()] == [HELD + HOUR]
    sums.begin()
    assert [each.wait for each in sums.figures()] == [0.0]


def test_what_counts_nowhere_any_more_and_has_no_key_is_forgotten(time: Time) -> None:
    sums = begun(MemoryState(time))
    assert fits(sums, "60", "first")
    time.at += HELD + HOUR + DAY
    assert fits(sums, "60", "second")
    with sums.state.transaction(keeps=False) as run:
        assert run("SELECT write FROM guard_amounts").fetchall() == [("second",)]


def test_who_only_looks_changes_nothing(time: Time) -> None:
    sums = sums_in(MemoryState(time))
    for _ in range(2):
        assert [each.wait for each in sums.figures()] == [HELD + HOUR]
        time.at += 60.0


@pytest.mark.parametrize(
    ("value", "units"), [("1", 10_000), ("0.0001", 1), ("1.00001", 10_001), ("1e30", 10**34)]
)
def test_amounts_are_counted_to_four_decimals_and_rounded_up(value: str, units: int) -> None:
    assert units_of(Decimal(value)) == units
    assert amount_of(units) >= Decimal(value)


def test_what_is_broken_off_changes_nothing(time: Time) -> None:
    sums = begun(MemoryState(time))
    with pytest.raises(KeyboardInterrupt), sums.state.transaction(keeps=True) as run:
        run("DELETE FROM guards")
        raise KeyboardInterrupt
    assert fits(sums, "100")


# --- A state that was lost or put back ---


@pytest.mark.parametrize("loss", ["lost", "put back"])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_file_that_was_lost_or_put_back_refuses_and_counts_what_it_knows(
    tmp_path: Path, time: Time, loss: str, is_new: bool
) -> None:
    path, copy = tmp_path / "guard.sqlite", tmp_path / "copy.sqlite"
    first = begun(FileState(str(path), time))
    assert fits(first, "30", "first")
    first.state.close()
    shutil.copy(path, copy)
    assert fits(first, "50", "second")
    first.state.close()
    path.unlink()
    if loss == "put back":
        shutil.copy(copy, path)
    sums = sums_in(FileState(str(path), time)) if is_new else first
    shortage = sums.reserve(amount("third", "1"))
    assert shortage is not None
    assert (shortage.window.wait, shortage.wait) == (HELD + HOUR, HELD + HOUR)
    time.at += HELD + HOUR - 1
    assert not fits(sums, "1")
    sums.begin()
    assert fits(sums, "71") is (loss == "lost")  # 30 of the copy still count, for another second
    assert fits(sums, "70", "fourth") is (loss == "put back")
    assert fits(first, "0.01", "fifth") is (loss == "lost")


def test_a_file_that_is_removed_in_use_is_made_anew_and_not_trusted(tmp_path: Path, time: Time) -> None:
    path = tmp_path / "guard.sqlite"
    sums = begun(FileState(str(path), time))
    assert fits(sums, "60")
    path.unlink()
    assert not fits(sums, "1")
    assert path.exists()
    sums.state.close()


def test_a_database_that_lost_its_rows_is_trusted_no_more_by_who_had_seen_them(
    database: str, time: Time
) -> None:
    state = DatabaseState(database, time)
    sums = begun(state)
    assert fits(sums, "60")
    with state.transaction(keeps=True) as run:
        for table in ("guards", "guard_amounts"):
            run(f"DELETE FROM {table}")
    assert not fits(sums, "1")
    sums.begin()
    assert fits(sums, "100", "another")
    state.close()


# --- A state that cannot be used ---


@pytest.mark.parametrize("ends", [True, False])
def test_a_file_that_another_process_has_is_waited_for_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time: Time, ends: bool
) -> None:
    path = tmp_path / "guard.sqlite"
    sums = begun(FileState(str(path), time))
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")

        def pause() -> float:
            if ends:
                other.rollback()
            time.at += sqlite.PATIENCE / 2 + 0.1
            return 0.0

        monkeypatch.setattr(time, "random", pause)
        if ends:
            assert fits(sums, "1")
        else:
            with pytest.raises(StateUnavailable, match="SQLITE_BUSY"):
                fits(sums, "1")
    sums.state.close()


@pytest.mark.parametrize(
    ("where", "name", "found", "said"),
    [
        (sqlite, "network_file_system", "nfs", "file system of type nfs: put it on a local disk"),
        (os, "geteuid", -1, "belongs to another user"),
    ],
)
def test_a_file_on_a_network_or_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time: Time, where: Any, name: str, found: Any, said: str
) -> None:
    monkeypatch.setattr(where, name, lambda *_: found)
    with pytest.raises(ConfigurationError, match=said):
        fits(sums_in(FileState(str(tmp_path / "guard.sqlite"), time)), "1")


def test_the_file_of_another_application_is_not_touched(tmp_path: Path, time: Time) -> None:
    path = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(path)) as shop:
        shop.execute("PRAGMA journal_mode = WAL")
        shop.execute("CREATE TABLE orders (id)")
    path.chmod(0o600)
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match="another application"):
        fits(sums_in(FileState(str(path), time)), "1")
    assert path.read_bytes() == before


def test_a_file_is_used_where_files_have_no_owners_and_no_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time: Time
) -> None:
    monkeypatch.delattr(os, "geteuid")
    path = str(tmp_path / "guard.sqlite")
    with monkeypatch.context() as patch:
        patch.setattr("sys.platform", "win32")
        sums = begun(FileState(path, time))
        assert fits(sums, "1")
        assert sums.seen is not None
        assert noted(path, "account") == sums.seen.serial
    sums.state.close()


@pytest.mark.parametrize(
    ("oldest", "end", "said"),
    [
        (990_000, "", "is older than PostgreSQL 99"),
        (140_000, "_none", "refuses the user, the password or the database's name"),
    ],
)
def test_a_database_that_cannot_be_used_says_why(
    database: str, monkeypatch: pytest.MonkeyPatch, time: Time, oldest: int, end: str, said: str
) -> None:
    monkeypatch.setattr("payments_async._postgresql.OLDEST", oldest)
    with pytest.raises(ConfigurationError, match=said):
        fits(sums_in(DatabaseState(database + end, time)), "1")


def test_an_address_is_judged_before_it_is_connected_to(time: Time) -> None:
    assert DatabaseState("postgresql:///shop?host=/none", time).place
    with pytest.raises(ConfigurationError, match="sslmode=verify-full"):
        DatabaseState("postgresql://db.test/shop", time)


# --- Clocks ---


@pytest.mark.parametrize("moved", [25 * HOUR, -25 * HOUR])
@pytest.mark.parametrize("who", ["a process that has seen it", "a new process", "a new one on another host"])
@pytest.mark.parametrize("where", ["file", "database"])
def test_a_clock_that_is_set_brings_no_room(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    time: Time,
    moved: float,
    who: str,
    where: str,
) -> None:
    state: Any = FileState(str(tmp_path / "guard.sqlite"), time)
    if where == "database":
        state = DatabaseState(request.getfixturevalue("database"), time)
    elif "another host" in who:
        pytest.skip("a file is of one host")
    set_clock(monkeypatch, time, 0.0)
    sums = begun(state)
    assert fits(sums, "60", "first")
    sums.settle(amount("first", "60"), "paid")
    if "new" in who:
        sums = sums_in(state)
    if "another host" in who:  # whose own clocks are right; else the whole machine's was set
        monkeypatch.setattr(clocks, "_boot_id", lambda: "another")
        set_clock(monkeypatch, time, moved)
    else:
        set_clock(monkeypatch, time, moved)
        time.wall_is_ahead = moved
    for passed, has_room in ((1.0, False), (HOUR - 1.001, False), (clocks.HOST_CLOCKS, True)):
        time.at += passed
        set_clock(monkeypatch, time, moved)
        assert fits(sums, "41") is has_room
    state.close()


def set_clock(patch: pytest.MonkeyPatch, time: Time, moved: float) -> None:
    """Have the database's clock show the time, so many seconds ahead."""
    patch.setattr(postgresql, "CLOCK", f"{time.at + moved}::float8")


def test_a_machine_without_a_known_start_goes_by_its_wall_clock_and_by_what_a_process_has_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time: Time
) -> None:
    monkeypatch.setattr(clocks, "BOOT_ID", str(tmp_path / "none"))
    monkeypatch.setattr(clocks, "_boot_id", clocks._boot_id.__wrapped__)
    sums = begun(FileState(str(tmp_path / "guard.sqlite"), time))
    assert fits(sums, "60", "first")
    sums.settle(amount("first", "60"), "paid")
    time.at += 10.0
    time.wall_is_ahead = 25 * HOUR
    assert not fits(sums, "41")
    time.at += HOUR - 10.0
    assert fits(sums_in(sums.state), "41")


# --- Chance ---


@pytest.mark.parametrize("seed", range(6))
def test_no_window_ever_holds_more_than_its_sum_and_no_amount_is_refused_that_fits(
    time: Time, seed: int
) -> None:
    chance = random.Random(seed)
    limits: Any = {
        "GHS": [(60, Decimal(100)), (600, Decimal(400))],
        "XOF": [(60, Decimal(1_000))],
    }
    sums = begun(MemoryState(time), limits)
    paid: list[tuple[str, float, float, Decimal]] = []  # currency, made at, answered at
    waiting: list[tuple[float, WriteAmount]] = []
    refused = needless = 0
    for number in range(1_500):
        time.at += chance.choice([0.0, 0.1, 1.0, chance.expovariate(0.2)])
        currency = chance.choice(["GHS", "XOF"])
        wanted = WriteAmount(str(number), currency, Decimal(chance.randint(1, 60)), "one")
        if sums.reserve(wanted) is None:
            waiting.append((time.at, wanted))
        else:
            refused += 1
            held = sum(each.amount for _, each in waiting if each.currency == currency)
            needless += all(
                held + wanted.amount + in_window(paid, currency, time.at - seconds, time.at) <= most
                for seconds, most in limits[currency]
            )
        while waiting and chance.random() < 0.6:
            began, each = waiting.pop(chance.randrange(len(waiting)))
            is_paid = chance.random() < 0.8
            sums.settle(each, "paid" if is_paid else "unpaid")
            if is_paid:
                paid.append((each.currency, chance.uniform(began, time.at), time.at, each.amount))
    for currency, windows in limits.items():
        for seconds, most in windows:
            for _, made, _, _ in paid:
                assert in_window(paid, currency, made - seconds, made, by=1) <= most
    assert refused > 100
    assert needless == 0


def in_window(paid: Any, currency: str, after: float, until: float, by: int = 2) -> Decimal:
    """What was made (1) or answered (2) in a window."""
    return sum((each[3] for each in paid if each[0] == currency and after < each[by] <= until), Decimal(0))
