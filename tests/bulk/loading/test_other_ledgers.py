"""The same input in two ledgers of a folder: refused under another batch id, unless it is wished."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from payments_async.bulk import InputPaidElsewhere
from payments_async.bulk._ledger.sqlite.status_file import paid_elsewhere
from payments_async.bulk.ledger_errors import LedgerMissing
from payments_async.sandbox import Sandbox
from tests.support.batches import items
from tests.support.desks import Desk
from tests.support.ledgers import BINDING


async def test_an_input_that_is_another_batch_beside_it_is_refused_unless_wished(
    desk: Desk, client: Any, tmp_path: Path
) -> None:
    async with desk.open(tmp_path / "june", client) as batch:
        await batch.load(items(2), batch_id="june")
    async with desk.open(tmp_path / "again", client) as batch:
        with pytest.raises(InputPaidElsewhere, match=r"june.*paid again.*pay_again=True") as caught:
            await batch.load(items(2), batch_id="july")
        assert (caught.value.batch_id, caught.value.ledger) == ("june", "june")
        assert pickle.loads(pickle.dumps(caught.value)).batch_id == "june"
        with pytest.raises(LedgerMissing):
            batch.status()
        report = await batch.load(items(2), batch_id="july", pay_again=True)
        assert report.is_new
        assert "june" in report.warnings[0]
        assert (await batch.load(items(2))).warnings == ()


async def test_the_same_batch_in_another_ledger_is_fine(
    desk: Desk, service: Sandbox, client: Any, tmp_path: Path
) -> None:
    for name, rows in (("one", items(2)), ("two", items(2)), ("other", items(3))):
        async with desk.open(tmp_path / name, client) as batch:
            assert (await batch.load(rows)).warnings == ()
            await batch.run()
    assert (
        len(service.books.payouts()) == 3 + 2
    )  # two batches; the second ledger found the first one's payouts


async def test_the_status_file_names_the_batch_and_its_input_from_the_import_on(
    batch: Any, tmp_path: Path
) -> None:
    report = await batch.load(items(2))
    said = json.loads((tmp_path / "l.status.json").read_text())
    assert (said["batch_id"], said["input_hash"]) == (report.batch_id, report.batch_id)
    assert (said["environment"], said["running"], said["rows"]["not_started"]) == ("sandbox", False, 2)


def _status(folder: Path, name: str, **changes: object) -> None:
    said = {"version": 2, "batch_id": "june", "input_hash": "input-1", "environment": "sandbox", **changes}
    (folder / f"{name}.status.json").write_text(json.dumps(said))


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 1},
        {"batch_id": 7},
        {"batch_id": "batch-1"},
        {"input_hash": "other"},
        {"environment": "live"},
    ],
)
def test_status_files_of_something_else_say_nothing(tmp_path: Path, changes: dict[str, object]) -> None:
    _status(tmp_path, "june", **changes)
    assert paid_elsewhere(str(tmp_path / "l"), BINDING) is None


def test_status_files_that_cannot_be_read_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "text.status.json").write_text("no JSON")
    (tmp_path / "deep.status.json").write_text("[" * 100_000)
    (tmp_path / "list.status.json").write_text("[]")
    (tmp_path / "folder.status.json").mkdir()
    (tmp_path / "bytes.status.json").write_bytes(b"\xff\xfe")
    os.mkfifo(tmp_path / "pipe.status.json")
    _status(tmp_path, "l")  # its own
    assert paid_elsewhere(str(tmp_path / "l"), BINDING) is None
    assert paid_elsewhere(str(tmp_path / "nowhere" / "l"), BINDING) is None
    _status(tmp_path, "old", environment=None)
    found = paid_elsewhere(str(tmp_path / "l"), BINDING)
    assert found is not None
    assert found.ledger == "old"
