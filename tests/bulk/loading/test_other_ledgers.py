"""The same input in two batches of a ledger, or of a folder: refused, unless it is wished."""

from __future__ import annotations

import os
import pickle
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from payments_async.bulk import InputPaidElsewhere
from payments_async.bulk.errors import LedgerMissing
from tests.support.batches import items
from tests.support.desks import Desk
from tests.support.places import EITHER, Place


async def test_an_input_that_is_another_batch_beside_it_is_refused_unless_wished(
    desk: Desk, client: Any, tmp_path: Path
) -> None:
    async with desk.open(tmp_path / "june.ledger", client, batch_id="june") as batch:
        await batch.load(items(2))
    async with desk.open(tmp_path / "again.ledger", client, batch_id="july") as batch:
        with pytest.raises(InputPaidElsewhere, match=r"june.*paid again.*pay_again=True") as caught:
            await batch.load(items(2))
        assert (caught.value.batch_id, caught.value.other) == ("june", "june.ledger")
        assert pickle.loads(pickle.dumps(caught.value)).batch_id == "june"
        with pytest.raises(LedgerMissing):
            await batch.status()
        report = await batch.load(items(2), pay_again=True)
        assert report.is_new
        assert "june.ledger" in report.warnings[0]
        assert (await batch.load(items(2))).warnings == ()


@EITHER
async def test_an_input_that_is_another_batch_of_the_same_ledger_is_refused_unless_wished(
    desk: Desk, client: Any, place: Place
) -> None:
    async with desk.open(place, client, batch_id="june") as batch:
        await batch.load(items(2))
    async with desk.open(place, client, batch_id="july") as batch:
        with pytest.raises(InputPaidElsewhere, match="it has the same input as batch june") as caught:
            await batch.load(items(2))
        assert caught.value.other is None
        assert (await batch.load(items(3))).is_new
        with pytest.raises(InputPaidElsewhere):
            await batch.load(items(2), accept_edits=True)
        assert {each.binding.batch_id for each in await batch.batches()} == {"june", "july"}


async def test_files_that_are_no_ledgers_say_nothing(desk: Desk, client: Any, tmp_path: Path) -> None:
    (tmp_path / "text.ledger").write_text("no ledger")
    (tmp_path / "empty.ledger").touch()
    (tmp_path / "folder.ledger").mkdir()
    os.mkfifo(tmp_path / "pipe.ledger")
    with sqlite3.connect(tmp_path / "other.ledger") as other:
        other.execute("CREATE TABLE payments_batches (batch_id TEXT)")
    other.close()
    async with desk.open(tmp_path / "own.ledger", client) as batch:
        assert (await batch.load(items(2))).warnings == ()
