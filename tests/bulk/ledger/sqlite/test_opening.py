"""Opening: whose file, where, whose batch; one run at a time."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest
from aiosqlite import Connection

from payments_async import _files
from payments_async._files import file_system, is_remote
from payments_async.bulk._ledger.batches import FORM
from payments_async.bulk._ledger.sqlite import connection, file
from payments_async.bulk._ledger.sqlite.ledger import SqliteLedger
from payments_async.bulk._protocol.records import Binding
from payments_async.bulk.errors import BulkError
from payments_async.bulk.ledger_errors import (
    LedgerBroken,
    LedgerClosed,
    LedgerDamaged,
    LedgerError,
    LedgerExposed,
    LedgerForeign,
    LedgerLocked,
    LedgerMissing,
    LedgerNewer,
    LedgerOfAnotherAddress,
    LedgerOfAnotherBatch,
    LedgerOfAnotherEnvironment,
    LedgerOfAnotherInput,
    LedgerOfAnotherKey,
    LedgerOlder,
    LedgerOnNetwork,
    LedgerReadOnly,
)
from tests.support.ledgers import BINDING, Clock, begun, counts, tampering

TABLES_OF_FORM_5 = "c413f10b6436c150f0a8e910624ef0eba1711a9b7a4e1e9e464008c8ca01f416"

MOUNTS = """\
21 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 21 0:40 / /srv/share rw,relatime shared:5 - nfs4 server:/x rw
31 30 0:41 / /srv/share/local\\040disk rw - xfs /dev/vdb rw
33 21 0:43 / /home/me/remote rw - fuse.sshfs me@there: rw
not a mount
"""


@pytest.mark.parametrize(
    ("path", "kind", "remote"),
    [
        ("/var/ledger", "ext4", False),
        ("/srv/share/ledger", "nfs4", True),
        ("/srv/shared/ledger", "ext4", False),
        ("/srv/share/local disk/ledger", "xfs", False),
        ("/home/me/remote", "fuse.sshfs", True),
    ],
)
def test_the_file_system_is_that_of_the_closest_mount(path: str, kind: str, remote: bool) -> None:
    assert file_system(path, MOUNTS) == kind
    assert is_remote(kind) is remote


def test_where_mounts_are_not_told_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert file_system("/x", "") is None
    assert not is_remote(None)
    monkeypatch.setattr(_files, "MOUNTS", str(tmp_path / "missing"))
    file.refuse_remote("/x")


async def test_a_network_file_system_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"9 1 0:1 / {tmp_path} rw - cifs //server/x rw\n")
    monkeypatch.setattr(_files, "MOUNTS", str(mounts))
    with pytest.raises(LedgerOnNetwork, match="type cifs; put the ledger on a local disk"):
        await SqliteLedger.open(tmp_path / "ledger", clock=Clock(), create=True)
    assert os.listdir(tmp_path) == ["mounts"]


async def test_every_file_of_a_ledger_is_the_owners_alone(tmp_path: Path, path: Path) -> None:
    before = os.umask(0)
    try:
        async with await begun(path, 3) as ledger:
            await ledger.claim(1)
            modes = {name: os.stat(tmp_path / name).st_mode & 0o777 for name in os.listdir(tmp_path)}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("ledger", "ledger-wal", "ledger.lock", "ledger.ballast"), 0o600)
    assert sorted(os.listdir(tmp_path)) == ["ledger", "ledger.lock"]


@pytest.mark.parametrize("mode", [0o640, 0o604])
async def test_a_ledger_that_others_may_use_is_refused(path: Path, mode: int) -> None:
    await (await begun(path)).close()
    path.chmod(mode)
    with pytest.raises(LedgerExposed, match=rf"mode {mode:03o}.*chmod 600"):
        await SqliteLedger.open(path, clock=Clock())


@pytest.mark.parametrize("mode", [0o600, 0o644])
@pytest.mark.parametrize("content", [b"amount,currency\n1,XOF\n" * 9, b"SQLite format 3\0" + bytes(84)])
async def test_a_file_that_is_no_ledger_is_not_touched(tmp_path: Path, content: bytes, mode: int) -> None:
    path = tmp_path / "input.csv"
    path.write_bytes(content)
    path.chmod(mode)
    with pytest.raises(LedgerForeign, match="no ledger of this package"):
        await SqliteLedger.open(path, clock=Clock(), create=True)
    assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == mode
    assert os.listdir(tmp_path) == ["input.csv"]


async def test_a_folder_and_a_file_with_two_names_are_no_ledger(tmp_path: Path, path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(LedgerForeign, match="no regular file"):
        await SqliteLedger.open(tmp_path / "folder", clock=Clock(), create=True)
    assert os.listdir(tmp_path) == ["folder"]
    await (await begun(path)).close()
    (tmp_path / "other").hardlink_to(path)
    with pytest.raises(LedgerForeign, match="second name"):
        await SqliteLedger.open(path, clock=Clock())


async def test_a_missing_ledger_or_folder_is_not_made(tmp_path: Path, path: Path) -> None:
    with pytest.raises(LedgerMissing, match="is not there"):
        await SqliteLedger.open(path, clock=Clock())
    with pytest.raises(LedgerReadOnly, match=r"lock cannot be written .*No such file"):
        await SqliteLedger.open(tmp_path / "nowhere" / "ledger", clock=Clock(), create=True)
    assert os.listdir(tmp_path) == []


async def test_a_file_that_may_not_be_read_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await begun(tmp_path / "ledger")).close()
    monkeypatch.setattr(file, "open", _refused, raising=False)  # root may read everything
    monkeypatch.setattr(connection, "refuse_remote", lambda path: None)
    with pytest.raises(LedgerReadOnly, match=r"cannot be read \(Permission denied\); make both writable"):
        await SqliteLedger.open(tmp_path / "ledger", clock=Clock())


def test_a_file_that_may_not_be_made_is_reported(tmp_path: Path) -> None:
    with pytest.raises(LedgerReadOnly, match=r"cannot be created \(No such file or directory\)"):
        file.prepare(str(tmp_path / "nowhere" / "ledger"))


def _refused(*_: object, **__: object) -> None:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


async def test_a_ledger_in_use_names_the_process_and_since_when(path: Path) -> None:
    async with await begun(path) as ledger:
        with pytest.raises(LedgerLocked) as caught:
            await SqliteLedger.open(path, clock=Clock())
        assert caught.value.pid == os.getpid()
        assert caught.value.since == datetime.fromtimestamp(1_800_000_001, UTC)
        assert f"process {os.getpid()} since 2027-01-15 08:00:01 UTC;" in str(caught.value)
        assert counts(ledger) == {"not_started": 5}
    async with await SqliteLedger.open(path, clock=Clock()) as ledger:
        assert counts(ledger) == {"not_started": 5}


async def test_another_name_of_the_same_ledger_does_not_get_round_its_lock(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "ledger")
    async with await begun(tmp_path / "ledger") as ledger:
        with pytest.raises(LedgerLocked):
            await SqliteLedger.open(tmp_path / "link", clock=Clock())
        assert ledger.path == str(tmp_path / "ledger")


async def test_nobody_else_reads_or_writes_the_file_while_it_is_open(path: Path) -> None:
    read = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('SELECT * FROM rows')"
    async with await begun(path):
        assert "database is locked" in _run(read, str(path)).stderr


async def test_a_ledger_that_another_program_holds_is_refused(path: Path) -> None:
    await (await begun(path)).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerLocked, match="another process"):
            await SqliteLedger.open(path, clock=Clock())
        other.execute("ROLLBACK")


async def test_a_ledger_of_a_newer_version_is_refused(path: Path) -> None:
    await (await begun(path)).close()
    with tampering(path) as tables:
        tables.execute("UPDATE batches SET schema = 6")
        tables.execute("ALTER TABLE batches DROP COLUMN described_in")
    with pytest.raises(LedgerNewer, match="form is number 6, and this version knows up to 5") as caught:
        await SqliteLedger.open(path, clock=Clock())
    assert (caught.value.found, caught.value.known) == (6, 5)


@pytest.mark.parametrize(
    "made", ["ALTER TABLE batches RENAME TO header", "UPDATE batches SET schema = schema"], ids=["3", "later"]
)
async def test_a_ledger_of_an_older_version_is_refused(path: Path, made: str) -> None:
    """Up to form 3 the batch was in a table of another name."""
    await (await begun(path)).close()
    with tampering(path) as tables:
        tables.execute("UPDATE batches SET schema = 1")
        tables.execute(made)
    with pytest.raises(LedgerOlder, match=r"form is number .*; use the version that wrote it") as caught:
        await SqliteLedger.open(path, clock=Clock())
    assert (caught.value.found, caught.value.known) == (1, 5)


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        (attrs.evolve(BINDING, batch_id="b2"), LedgerOfAnotherBatch, "batch is batch-1.*run's is b2"),
        (attrs.evolve(BINDING, environment="live"), LedgerOfAnotherEnvironment, "environment is sandbox"),
        (attrs.evolve(BINDING, base_url="https://x.test"), LedgerOfAnotherAddress, "base URL is https://api"),
        (attrs.evolve(BINDING, key_fingerprint="key-2"), LedgerOfAnotherKey, "key fingerprint is key-1"),
        (attrs.evolve(BINDING, input_hash="input-2"), LedgerOfAnotherInput, "input is input-1"),
    ],
)
async def test_a_ledger_goes_on_only_with_what_it_was_begun_for(
    path: Path, given: Binding, error: type[LedgerError], told: str
) -> None:
    async with await begun(path) as ledger:
        ledger.require(attrs.evolve(BINDING, input_stat="touched"))
        with pytest.raises(error, match=told):
            ledger.require(given)


async def test_another_key_or_input_passes_once_it_is_allowed(path: Path) -> None:
    given = attrs.evolve(BINDING, key_fingerprint="key-2", input_hash="input-2")
    async with await begun(path) as ledger:
        ledger.require(given, other_key=True, other_input=True)
        with pytest.raises(LedgerOfAnotherInput):
            ledger.require(given, other_key=True)
        with pytest.raises(LedgerOfAnotherKey):
            ledger.require(given, other_input=True)


async def test_a_closed_ledger_says_so_and_closing_it_again_is_harmless(path: Path) -> None:
    ledger = await begun(path)
    await ledger.close()
    await ledger.close()
    with pytest.raises(LedgerClosed, match=r"ledger: is closed; open it again: `PayoutBatch\.open"):
        await ledger.claim(1)


def test_every_error_is_a_bulk_error_without_effect_and_says_what_to_do() -> None:
    error = LedgerMissing("/x/ledger", "is not there")
    assert isinstance(error, BulkError)
    assert error.effect == "none"
    assert str(error) == "/x/ledger: is not there; " + LedgerMissing.remedy
    assert LedgerError("/x", "broke").problem == "broke"


def test_no_remedy_for_a_database_puts_an_old_copy_back() -> None:
    errors = LedgerDamaged("postgresql://db/x", ["a chunk"]), LedgerBroken("postgresql://db/x", "failed")
    for error in errors:
        assert "newest whole copy" not in str(error)
        assert "see to the disk" not in str(error)
        assert str(error).endswith(error.remedy)
        assert "after any restore `payments payouts recover --by-hand`" in error.remedy
    assert "newest whole copy" in LedgerDamaged("postgresql", ["a page"]).remedy


def test_the_package_is_imported_without_aiosqlite() -> None:
    modules = "payments_async, payments_async.bulk, payments_async.bulk.ledger_errors"
    assert _run(f"import sys, {modules}; print('aiosqlite' in sys.modules)").stdout == "False\n"


def _run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


async def test_the_tables_of_a_form_never_change(path: Path) -> None:
    async with await begun(path, 1):
        pass
    with closing(sqlite3.connect(path)) as db:
        tables = [sql for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")]
    digest = hashlib.sha256("\n".join(" ".join(sql.split()) for sql in tables).encode()).hexdigest()
    assert (FORM, digest) == (5, TABLES_OF_FORM_5), "ledgers that exist would be called damaged"


@pytest.mark.parametrize("moment", ["_connect", "close"])
def test_a_caller_cancelled_while_the_file_opens_or_closes_leaves_no_thread(
    path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(_begun(path))
    really = getattr(Connection, moment)

    async def cancelled(self: Connection, *rest: Any, **more: Any) -> Any:
        asyncio.get_running_loop().call_soon(caller.cancel)
        return await really(self, *rest, **more)

    async def opened() -> None:
        nonlocal caller
        caller = asyncio.current_task()  # type: ignore[assignment]
        await _opened(path)

    caller: asyncio.Task[None]
    monkeypatch.setattr(Connection, moment, cancelled)
    threads = {*threading.enumerate()}
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(opened())
    for thread in {*threading.enumerate()} - threads:
        thread.join(300)  # it answers before it ends
        assert not thread.is_alive(), thread
    monkeypatch.undo()
    asyncio.run(_opened(path))  # nothing has it locked


async def _begun(path: Path) -> None:
    await (await begun(path)).close()


async def _opened(path: Path) -> None:
    await (await SqliteLedger.open(path, clock=Clock())).close()
