"""The lock on a ledger: released by the process that took it; a reader of the ledger is waited for."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from payments_async import AsyncPayments
from payments_async.bulk import PayoutBatch
from payments_async.bulk._ledger.sqlite.lock import HighWater, LedgerLock
from payments_async.bulk.ledger_errors import LedgerLocked
from payments_async.sandbox import Sandbox
from tests.support.batches import items, paid, runtime_of


@pytest.fixture
def service() -> Iterator[Sandbox]:
    """A sandbox that is called in process."""
    with Sandbox() as sandbox:
        yield sandbox


def taken(path: Path, *, read_only: bool = False, pid: int | None = None) -> LedgerLock:
    """The lock of a ledger, as this process holds it."""
    return LedgerLock.acquire(
        str(path), pid=os.getpid() if pid is None else pid, since=1.0, read_only=read_only
    )


@contextmanager
def forked() -> Iterator[None]:
    """While inside, a forked child has every file that this process has open."""
    until, end = os.pipe()
    child = os.fork()
    if not child:  # pragma: no cover - another process
        os.close(end)
        os.read(until, 1)
        os._exit(0)
    try:
        yield
    finally:
        os.close(end)
        os.close(until)
        os.waitpid(child, 0)


def test_that_there_is_a_batch_is_on_the_disk_and_later_marks_do_not_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = list[int]()
    monkeypatch.setattr(os, "fsync", synced.append)
    lock = taken(tmp_path / "l")
    lock.note(None)
    assert not synced
    for entry in (1, 2, 3):
        lock.note(HighWater("june", [(1, entry, "ab")]))
    lock.release()
    assert len(synced) == 1
    again = taken(tmp_path / "l")
    again.note(HighWater("june", [(1, 4, "ab")]))
    again.release()
    assert len(synced) == 1


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_lock_given_back_is_free_though_a_forked_child_lives(tmp_path: Path) -> None:
    lock = taken(tmp_path / "l")
    with forked():
        lock.release()
        taken(tmp_path / "l").release()


def test_a_child_that_lets_go_leaves_its_parent_the_lock(tmp_path: Path) -> None:
    lock = taken(tmp_path / "l", pid=os.getppid())  # as a child has it from its parent
    kept = os.dup(lock._descriptor)
    try:
        lock.release()
        with pytest.raises(LedgerLocked):
            taken(tmp_path / "l")
    finally:
        os.close(kept)


def test_a_locked_ledger_says_whether_it_is_only_read(tmp_path: Path) -> None:
    for read_only in (True, False):
        lock = taken(tmp_path / "l", read_only=read_only)
        with pytest.raises(LedgerLocked) as locked:
            taken(tmp_path / "l")
        assert locked.value.read_only is read_only
        lock.release()


@pytest.mark.parametrize(
    "said",
    [
        *(b"", b"{" * 99, b"[" * 2000, b"\xff" * 99, b"[1]"),
        b'{"mark": {"entry": []}}',
        b'{"pid": "x", "since": "y"}',
    ],
)
def test_a_lock_that_says_nothing_readable_is_a_lock_all_the_same(tmp_path: Path, said: bytes) -> None:
    (tmp_path / "l.lock").write_bytes(said)
    lock = taken(tmp_path / "l")
    assert lock.mark is None
    (tmp_path / "l.lock").write_bytes(said)
    with pytest.raises(LedgerLocked, match="in use by another process; ") as locked:
        taken(tmp_path / "l")
    assert (locked.value.pid, locked.value.since) == (None, None)
    lock.release()


@pytest.mark.parametrize("since", ["NaN", "1e300", "-1e18", "null"])
def test_a_lock_without_a_readable_time_is_held_all_the_same(tmp_path: Path, since: str) -> None:
    lock = taken(tmp_path / "l")
    (tmp_path / "l.lock").write_text(f'{{"since": {since}}}')
    with pytest.raises(LedgerLocked) as locked:
        taken(tmp_path / "l")
    assert locked.value.since is None
    lock.release()


@pytest.mark.parametrize("read_only", [True, False])
async def test_a_batch_waits_for_a_process_that_only_reads(
    client: AsyncPayments, tmp_path: Path, read_only: bool
) -> None:
    await paid(tmp_path / "l", client, items(2))
    client_of_the_next: AsyncPayments | None = None if read_only else client
    lock = taken(tmp_path / "l", read_only=True)
    opening = asyncio.ensure_future(PayoutBatch.open(tmp_path / "l", client_of_the_next).__aenter__())
    await asyncio.sleep(0)  # it has found the lock taken
    assert not opening.done()
    lock.release()
    batch = await opening
    assert batch.status().complete
    await batch.__aexit__()


async def test_a_reader_that_stays_is_not_waited_for_for_ever(client: AsyncPayments, tmp_path: Path) -> None:
    await paid(tmp_path / "l", client, items(2))
    lock, began = taken(tmp_path / "l", read_only=True), runtime_of(client).monotonic()
    with pytest.raises(LedgerLocked) as locked:
        await PayoutBatch.open(tmp_path / "l", client).__aenter__()
    assert locked.value.read_only
    assert 5.0 <= runtime_of(client).monotonic() - began < 7.0
    lock.release()


async def test_a_run_on_the_ledger_is_not_waited_for(client: AsyncPayments, tmp_path: Path) -> None:
    await paid(tmp_path / "l", client, items(2))
    async with PayoutBatch.open(tmp_path / "l", client):
        began = runtime_of(client).monotonic()
        with pytest.raises(LedgerLocked) as locked:
            await PayoutBatch.open(tmp_path / "l", client).__aenter__()
        assert not locked.value.read_only
        assert runtime_of(client).monotonic() == began


async def test_a_preview_waits_for_a_reader_too(client: AsyncPayments, tmp_path: Path) -> None:
    await paid(tmp_path / "l", client, items(2))
    lock = taken(tmp_path / "l", read_only=True)
    previewing = asyncio.ensure_future(PayoutBatch.open(tmp_path / "l").preview(items(2)))
    await asyncio.sleep(0)
    lock.release()
    assert (await previewing).is_new is False
