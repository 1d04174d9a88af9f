"""A ledger that was damaged, edited, cut short or put back is found out, and what is wrong is named."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_async.bulk._ledger.sqlite.dialect import SQL
from payments_async.bulk._ledger.sqlite.ledger import SqliteLedger
from payments_async.bulk._ledger.stored_rows import row_digest, stored_row
from payments_async.bulk.ledger_errors import LedgerDamaged, LedgerError
from tests.support.ledgers import (
    BINDING,
    Clock,
    all_rows,
    begun,
    counts,
    created,
    imported,
    new_rows,
    tampering,
)
from tests.support.places import worked_on

Edit = Callable[[sqlite3.Connection], Any]
EMPTIED = r"holds nothing, while its \.lock says that entry 9 of batch batch-1 was committed"


async def everything_in(path: Path) -> object:
    async with await SqliteLedger.open(path, clock=Clock()) as ledger:
        report = await ledger.check()
        return report, ledger.header, ledger.totals, await all_rows(ledger)


NEAR_THE_END = {
    "UPDATE batches SET base_url = 'https://evil.test'": "header is not as",
    "UPDATE batches SET rows = 29": "header is not as",
    "UPDATE batches SET schema = 'x'": "a batch cannot be read",
    "UPDATE batches SET totals = '[]'": "a batch cannot be read",
    "UPDATE batches SET described_in = 99": "header is not as",
    "UPDATE chunks SET entries = 3 WHERE chunk = 1": "chain ends with entry 22",
    "UPDATE chunks SET entries = 'x' WHERE chunk = 1": "a chunk cannot be read",
    "UPDATE chunks SET head = 7 WHERE chunk = 1": "a chunk cannot be read",
    "DELETE FROM chunks WHERE chunk = 0": "one of its chains is missing",
    "DELETE FROM entries WHERE chunk = 1 AND number = 22": "chain ends with entry 21",
    "DELETE FROM entries WHERE chunk = 1 AND number = 15": "entry 15 of the chain is missing",
    "DELETE FROM entries": "the chain is empty",
    "UPDATE entries SET wall = 5 WHERE number = 20": "entry 20 of the chain is not",
    "UPDATE entries SET wall = 'x' WHERE number = 20": "the chain cannot be read",
    "UPDATE chunks SET totals = replace(totals, '[10,', '[7,')": "totals do not count",
    "UPDATE chunks SET totals = 'x'": "a chunk cannot be read",
    "UPDATE row_states SET state = 'NEW' WHERE number = 30": "row 30 is not as",
    "UPDATE row_states SET state = '?' WHERE number = 30": "some row cannot be read",
    "UPDATE rows SET amount = '9' WHERE number = 30": "row 30 is not as",
    "DELETE FROM row_states WHERE number = 30": "row 30 is not as",
    "DELETE FROM rows WHERE number = 30": "row 30 is not as",
    "DROP TABLE chunks": "no such table: chunks",
}


@pytest.mark.parametrize(("statement", "finding"), NEAR_THE_END.items())
async def test_damage_near_the_end_is_found_when_the_ledger_is_opened(
    path: Path, statement: str, finding: str
) -> None:
    await worked_on(path)
    with tampering(path) as tables:
        tables.execute(statement)
    with pytest.raises(LedgerDamaged, match="put back the newest whole copy") as caught:
        await SqliteLedger.open(path, clock=Clock())
    assert finding in "; ".join(caught.value.findings)


def _consistently(tables: sqlite3.Connection) -> None:
    """Change an amount as somebody would who knows of the row's own digest."""
    tables.execute("UPDATE rows SET amount = '99.99' WHERE number = 4")
    (values,), ((key,),) = tables.execute(SQL.rows_after, (3, 4, 1)), tables.execute(SQL.hash_key, (1,))
    digest = row_digest(stored_row(values).row, key)
    tables.execute("UPDATE row_states SET digest = ? WHERE number = 4", (digest,))


ANYWHERE: list[tuple[str | Edit, list[str]]] = [
    ("UPDATE rows SET body = 'text' WHERE number = 4", ["row 4 cannot be read"]),
    (_consistently, ["the rows do not add up to what the chain says of them", "rows rejected: "]),
    ("DROP INDEX unpaid", []),
]


@pytest.mark.parametrize(("edit", "findings"), ANYWHERE)
async def test_damage_anywhere_is_found_by_a_check(path: Path, edit: str | Edit, findings: list[str]) -> None:
    await worked_on(path)
    with tampering(path) as tables:
        edit(tables) if callable(edit) else tables.execute(edit)
    async with await SqliteLedger.open(path, clock=Clock()) as ledger:
        found = "; ".join((await ledger.check()).findings)
    assert bool(found) is bool(findings)
    for finding in findings:
        assert finding in found


async def test_a_ledger_that_changed_under_its_run_is_found_by_a_check(path: Path) -> None:
    async with await begun(path) as ledger:
        driver = ledger._handle._connection
        await (await driver.execute("UPDATE chunks SET in_doubt = 4, generation = 4")).close()
        assert (await ledger.check()).findings == (
            "the end of the ledger is not what this run committed last",
        )


async def test_a_ledger_that_changed_under_its_run_takes_no_further_intent(path: Path) -> None:
    async with await begun(path) as ledger:
        (row,) = (await ledger.claim(1)).rows
        driver = ledger._handle._connection
        await (await driver.execute("UPDATE chunks SET head = x'00' WHERE chunk = 1")).close()
        for work in (ledger.claim(1), ledger.record([created(row)])):
            with pytest.raises(LedgerDamaged, match="not what this run committed last"):
                await work


async def test_a_header_that_was_removed_is_no_reason_to_begin_again(path: Path) -> None:
    await worked_on(path)
    with tampering(path) as tables:
        tables.execute("DELETE FROM batches")
    with pytest.raises(LedgerDamaged, match="header is missing"):
        await SqliteLedger.open(path, clock=Clock(), create=True)


async def _crashed(tmp_path: Path) -> Path:
    """A copy of a ledger as a killed process leaves it: its last commits in the log alone."""
    path = tmp_path / "run" / "ledger"
    path.parent.mkdir()
    await (await begun(path, 10)).close()
    left = tmp_path / "left"
    async with await SqliteLedger.open(path, clock=Clock()) as ledger:
        for _ in range(4):
            await ledger.record([created(row) for row in (await ledger.claim(1)).rows])
        shutil.copytree(path.parent, left)
    return left / "ledger"


async def test_a_killed_process_loses_nothing(tmp_path: Path) -> None:
    async with await SqliteLedger.open(await _crashed(tmp_path), clock=Clock()) as ledger:
        assert counts(ledger) == {"not_started": 6, "created": 4}
        assert (await ledger.check()).entries == 10


@pytest.mark.parametrize("left", [0, 0.3, 0.9])
async def test_a_log_that_was_removed_or_cut_short_is_named(tmp_path: Path, left: float) -> None:
    path = await _crashed(tmp_path)
    log = f"{path}-wal"
    if left:
        os.truncate(log, int(os.stat(log).st_size * left))
    else:
        os.unlink(log)
    with pytest.raises(LedgerDamaged, match=r"entry 9 was committed: its -wal file was removed or cut short"):
        await SqliteLedger.open(path, clock=Clock())


@pytest.mark.parametrize("create", [True, False])
async def test_an_empty_file_where_a_ledger_was_is_not_mistaken_for_a_new_one(
    tmp_path: Path, create: bool
) -> None:
    """A full disk or a broken copy: money may have moved under what is gone. Nothing there is touched."""
    path = await _crashed(tmp_path)
    os.truncate(path, 0)
    before = _sizes(path.parent)
    for _ in range(2):
        with pytest.raises(LedgerDamaged, match=EMPTIED) as damaged:
            await SqliteLedger.open(path, clock=Clock(), create=create)
    assert _sizes(path.parent) == before
    assert "move it and its .lock away" in str(damaged.value)


async def test_a_ledger_without_its_rows_is_not_mistaken_for_a_new_one(tmp_path: Path) -> None:
    path = await _crashed(tmp_path)
    with closing(sqlite3.connect(path)) as tables, tables:
        for table in ("rows", "row_states", "batches", "entries", "chunks"):
            tables.execute(f"DELETE FROM {table}")
    for _ in range(2):
        with pytest.raises(LedgerDamaged, match=EMPTIED):
            await SqliteLedger.open(path, clock=Clock(), create=True)


def _sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


async def test_a_ledger_whose_import_never_ended_is_begun_by_the_next_run(tmp_path: Path, path: Path) -> None:
    os.close(os.open(path, os.O_CREAT, 0o600))
    (tmp_path / "ledger.lock").write_text(json.dumps({"pid": 7, "since": 1.5, "mark": None}).ljust(511))
    async with await begun(path, 3) as ledger:
        assert counts(ledger) == {"not_started": 3}


async def test_a_new_ledger_in_the_place_of_one_that_is_gone_is_not_held_to_what_that_one_was(
    tmp_path: Path, path: Path
) -> None:
    """Even when its import is cut short: the lock says nothing of the ledger that was there before."""
    await (await begun(path)).close()
    path.unlink()
    cut = await SqliteLedger.open(path, clock=Clock(), create=True)
    said = json.loads((tmp_path / "ledger.lock").read_text())
    assert said["mark"] is None
    left = tmp_path / "left"
    left.mkdir()
    for name in ("ledger", "ledger.lock"):
        shutil.copy2(tmp_path / name, left / name)
    await cut.close()
    await (await begun(left / "ledger")).close()


async def test_an_older_copy_put_back_and_worked_on_is_found(tmp_path: Path, path: Path) -> None:
    await (await begun(path, 10)).close()
    shutil.copy2(path, tmp_path / "copy")
    async with await SqliteLedger.open(path, clock=Clock()) as ledger:
        await ledger.claim(3)
    lock = (tmp_path / "ledger.lock").read_bytes()
    shutil.copy2(tmp_path / "copy", path)
    (tmp_path / "ledger.lock").unlink()
    async with await SqliteLedger.open(path, clock=Clock("second")) as ledger:
        await ledger.claim(2)
        await ledger.claim(2)
    (tmp_path / "ledger.lock").write_bytes(lock)
    with pytest.raises(
        LedgerDamaged, match="entry 2 of the chain is another than the one that was committed"
    ):
        await SqliteLedger.open(path, clock=Clock())


@pytest.mark.parametrize("letter", ["j", "é", "\N{MONEY BAG}"])
async def test_an_older_copy_put_back_is_found_however_long_the_name(path: Path, letter: str) -> None:
    binding = attrs.evolve(BINDING, batch_id=191 * letter)
    async with await SqliteLedger.open(path, clock=Clock(), create=True) as ledger:
        await imported(ledger, new_rows(3), binding)
    copy = path.read_bytes()
    async with await SqliteLedger.open(path, clock=Clock(start=1_800_000_000.123456)) as ledger:
        await ledger.claim(3)
    await (await SqliteLedger.open(path, clock=Clock())).close()  # its record is some digits shorter
    path.write_bytes(copy)
    with pytest.raises(LedgerDamaged, match="an older copy was put in its place"):
        await SqliteLedger.open(path, clock=Clock())


async def test_a_lock_of_another_batch_or_without_a_mark_proves_nothing(tmp_path: Path, path: Path) -> None:
    await (await begun(path)).close()
    marks = [{"batch_id": "batch-1", "ends": ends} for ends in ([], [[1, math.inf, ""]])]
    for mark in ({"batch_id": "other", "ends": [[1, 99, ""]]}, {"ends": 99}, *marks, None):
        (tmp_path / "ledger.lock").write_text(json.dumps({"mark": mark}))
        await (await SqliteLedger.open(path, clock=Clock())).close()
    path.write_bytes(b"")
    (tmp_path / "ledger.lock").write_text(json.dumps({"mark": marks[0]}))
    await (await SqliteLedger.open(path, clock=Clock(), create=True)).close()


async def test_a_description_of_a_table_that_is_not_text_is_damage(path: Path) -> None:
    await worked_on(path)
    whole = path.read_bytes()
    assert whole.count(b"tablerowsrows") == 1
    path.write_bytes(
        whole.replace(b"tablerowsrows", b"tabler\xf4wsrows").replace(
            b"CREATE TABLE rows", b"DELETE TABLE rows"
        )
    )
    with pytest.raises(LedgerDamaged, match="not described in UTF-8"):
        await SqliteLedger.open(path, clock=Clock())


async def test_a_flipped_byte_changes_nothing_that_goes_unnoticed(path: Path) -> None:
    await worked_on(path)
    whole, before = path.read_bytes(), await everything_in(path)
    chance = random.Random(7)
    noticed = 0
    for _ in range(60):
        place = chance.randrange(len(whole))
        path.write_bytes(
            whole[:place] + bytes([whole[place] ^ 1 << chance.randrange(8)]) + whole[place + 1 :]
        )
        noticed += await _is_noticed(path, before)
    assert noticed > 12


async def test_a_ledger_cut_off_anywhere_is_noticed(path: Path) -> None:
    await worked_on(path)
    whole, before = path.read_bytes(), await everything_in(path)
    for size in range(1, len(whole), len(whole) // 40):
        path.write_bytes(whole[:size])
        assert await _is_noticed(path, before)


async def _is_noticed(path: Path, before: object) -> bool:
    """Whether the ledger says that it is damaged. If it does not, it must be as it was."""
    try:
        now = await everything_in(path)
    except LedgerError:
        return True
    if now == before:
        return False
    async with await SqliteLedger.open(path, clock=Clock()) as ledger:
        assert (await ledger.check()).findings
    return True


async def test_a_text_that_is_no_utf_8_is_damage(path: Path) -> None:
    await worked_on(path)
    with tampering(path) as tables:
        tables.execute("UPDATE row_states SET failure_code = CAST(x'ff' AS TEXT) WHERE number = 4")
    async with await SqliteLedger.open(path, clock=Clock()) as ledger:
        assert "UTF-8" in (await ledger.check()).findings[0]
        with pytest.raises(LedgerDamaged, match="UTF-8"):
            await ledger.claim(1)


async def test_a_marked_file_without_tables_is_taken_for_new(tmp_path: Path, path: Path) -> None:
    async with await SqliteLedger.open(tmp_path / "new", clock=Clock(), create=True):
        shutil.copy(tmp_path / "new", path)  # closed, a ledger that was never used is removed
    with closing(sqlite3.connect(path)) as tables:
        for (name,) in tables.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            tables.execute(f"DROP TABLE {name}")
    async with await SqliteLedger.open(path, clock=Clock(), create=True) as ledger:
        assert ledger.is_empty
