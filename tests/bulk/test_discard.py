"""A ledger that nothing was ever sent under does not stay in the way: removed when empty, or when told."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from payments_async.bulk import InputPaidElsewhere
from payments_async.bulk._ledger.sqlite.connection import LedgerConnection
from payments_async.bulk._ledger.sqlite.status_file import StatusFile
from payments_async.bulk.errors import SourceErrors
from payments_async.bulk.ledger_errors import LedgerClosed, LedgerDamaged, LedgerError, LedgerRefused
from payments_async.sandbox import Sandbox
from tests.support.batches import item, items
from tests.support.desks import Desk
from tests.support.ledgers import begun


def files(folder: Path) -> set[str]:
    """What lies in a folder."""
    return {path.name for path in folder.iterdir()}


async def test_an_input_that_is_refused_leaves_no_ledger(desk: Desk, client: Any, tmp_path: Path) -> None:
    (tmp_path / "june.csv").write_text("amount,currency,method\n1,XOF,mtn_bj\n")
    for _ in range(2):
        async with desk.open(tmp_path / "l", client) as batch:
            with pytest.raises(SourceErrors):
                await batch.load(tmp_path / "june.csv")
        assert files(tmp_path) == {"june.csv", "l.lock"}
    async with desk.open(tmp_path / "june", client) as batch:
        await batch.load(items(2), batch_id="june")
    async with desk.open(tmp_path / "july", client) as batch:
        with pytest.raises(InputPaidElsewhere):
            await batch.load(items(2), batch_id="july")
    assert files(tmp_path) == {"june.csv", "l.lock", "june", "june.lock", "june.status.json", "july.lock"}


async def test_an_empty_ledger_that_was_there_before_stays(
    desk: Desk, service: Sandbox, tmp_path: Path
) -> None:
    (tmp_path / "l").touch(mode=0o600)
    async with desk.client(service) as client, desk.open(tmp_path / "l", client):
        pass
    assert "l" in files(tmp_path)


async def test_a_batch_that_is_called_off_leaves_room_for_the_next(
    desk: Desk, service: Sandbox, client: Any, tmp_path: Path
) -> None:
    async with desk.open(tmp_path / "l", client) as batch:
        await batch.load(items(2), batch_id="june")
        await batch.discard()
        await batch.discard()
        with pytest.raises(LedgerError, match=r"was discarded.*open it again"):
            await batch.run()
    assert service.books.payouts() == []
    assert files(tmp_path) == {"l.lock"}
    assert json.loads((tmp_path / "l.lock").read_text())["mark"] is None
    async with desk.open(tmp_path / "l", client) as batch:
        assert (await batch.load(items(1), batch_id="july")).is_new
        assert (await batch.run()).exit_code == 0
        assert (await batch.check()).findings == ()
        with pytest.raises(LedgerRefused, match="it is the record of that"):
            await batch.discard()
    assert "l" in files(tmp_path)


async def test_what_was_sent_or_called_off_is_never_discarded(
    desk: Desk, service: Sandbox, client: Any, tmp_path: Path
) -> None:
    async with desk.open(tmp_path / "rejected", client) as batch:
        service.on("payouts.create").respond("http:422")
        await batch.load(items(1))
        await batch.run()
        await batch.retry_failed(rejected=True)
        with pytest.raises(LedgerRefused):
            await batch.discard()
    async with desk.open(tmp_path / "failed", client) as batch:
        service.on("payouts.create").outcome("fail:RECIPIENT_ERROR")
        await batch.load([item(7)])
        await batch.run(wait_final=60.0)
        await batch.retry_failed()
        with pytest.raises(LedgerRefused):
            await batch.discard()
    async with desk.open(tmp_path / "cancelled", client) as batch:
        await batch.load(items(2), batch_id="c", pay_again=True)
        await batch.load(items(1), batch_id="c", pay_again=True, accept_edits=True)
        with pytest.raises(LedgerRefused):
            await batch.discard()
    assert {"rejected", "failed", "cancelled"} <= files(tmp_path)


async def test_no_row_is_claimed_of_a_ledger_that_is_discarded_at_the_same_time(tmp_path: Path) -> None:
    ledger = await begun(tmp_path / "l", 3)
    discarded, claimed = await asyncio.gather(ledger.discard(), ledger.claim(2), return_exceptions=True)
    await ledger.close()
    assert discarded is None
    assert isinstance(claimed, LedgerClosed)
    assert files(tmp_path) == {"l.lock"}


async def test_a_ledger_that_failed_or_was_replaced_is_not_removed(
    desk: Desk, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk.open(tmp_path / "replaced", client) as batch:
        await batch.load(items(1))
        await batch.discard()
        (tmp_path / "replaced").unlink()
        (tmp_path / "replaced").write_text("another")
    assert (tmp_path / "replaced").read_text() == "another"
    (tmp_path / "replaced").unlink()
    async with desk.open(tmp_path / "broken", client) as batch:
        with monkeypatch.context() as failing:
            failing.setattr(LedgerConnection, "_transaction", _fails)
            with pytest.raises(LedgerDamaged):
                await batch.load(items(1))
    assert "broken" in files(tmp_path)


async def _fails(*_: object) -> None:
    raise sqlite3.DatabaseError


def test_a_status_file_that_is_not_there_is_removed_all_the_same(tmp_path: Path) -> None:
    StatusFile.of(str(tmp_path / "l")).remove()
    assert files(tmp_path) == set()
