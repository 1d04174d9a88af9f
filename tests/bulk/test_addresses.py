"""Where a batch's ledger is, and by what name: a file, a database, or nothing that can hold one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from payments_async.bulk import PayoutBatch, SharedBatch, is_database
from payments_async.bulk.errors import BulkError
from payments_async.bulk.ledger_errors import LedgerOfAnotherBatch
from tests.support.batches import items
from tests.support.canary import told_by
from tests.support.desks import Desk
from tests.support.servers import PASSWORD


async def test_the_name_that_a_batch_is_opened_by_is_that_of_its_load(
    desk: Desk, client: Any, tmp_path: Path
) -> None:
    async with desk.open(tmp_path / "l", client, batch_id="f\u00e9vrier") as batch:
        assert (await batch.preview(items(2))).batch_id == "f\u00e9vrier"
        assert (await batch.load(items(2), batch_id="fe\u0301vrier")).batch_id == "f\u00e9vrier"
    async with desk.open(tmp_path / "l", client, batch_id="fe\u0301vrier") as batch:
        assert (await batch.load(items(2))).is_new is False
        with pytest.raises(BulkError, match=r"opened as f.*vrier, and its input is given as mars"):
            await batch.load(items(2), batch_id="mars")


async def test_a_file_with_another_batch_is_not_opened_and_can_be_afterwards(
    desk: Desk, client: Any, tmp_path: Path
) -> None:
    async with desk.open(tmp_path / "l", client) as batch:
        await batch.load(items(2), batch_id="june")
    with pytest.raises(LedgerOfAnotherBatch, match=r"june.*july"):
        async with desk.open(tmp_path / "l", client, batch_id="july"):
            pass
    async with desk.open(tmp_path / "l", client, batch_id="june"):
        pass


@pytest.mark.parametrize("name", ["", 7])
async def test_what_cannot_name_a_batch_does_not_open_one(
    desk: Desk, client: Any, tmp_path: Path, name: Any
) -> None:
    with pytest.raises(BulkError, match="batch_id must be text"):
        async with desk.open(tmp_path / "l", client, batch_id=name):
            pass
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("address", "found"),
    [
        (f"mysql://ada:{PASSWORD}@db.test/payments", "not mysql://"),
        (f"host=db.test password={PASSWORD}", "not as name=value"),
    ],
)
async def test_an_address_of_another_kind_is_refused_without_its_password(
    desk: Desk, client: Any, address: Any, found: str
) -> None:
    with pytest.raises(BulkError, match=rf"postgresql://user@host:port/database, {found}") as caught:
        async with desk.open(address, client):
            pass
    assert PASSWORD not in told_by(caught.value)


@pytest.mark.parametrize(
    ("address", "found"),
    [("postgresql://db.test/payments", True), ("postgres://db.test/payments", True), ("june.ledger", False)],
)
def test_an_address_says_by_itself_which_kind_of_batch_it_is_for(address: str, found: bool) -> None:
    assert is_database(address) is found


async def test_the_address_of_a_database_is_refused_as_a_path_and_a_path_as_an_address(
    tmp_path: Path,
) -> None:
    address = f"postgresql://ada:{PASSWORD}@db.test/payments"
    with pytest.raises(BulkError, match=r"`SharedBatch\.open\(address, client, batch_id=") as caught:
        await PayoutBatch.open(address).__aenter__()
    assert PASSWORD not in told_by(caught.value)
    with pytest.raises(BulkError, match=r"`PayoutBatch\.open\(path, client\)` opens one in a file"):
        await SharedBatch.open(str(tmp_path / "l"), batch_id="june").__aenter__()


async def test_a_batch_in_a_file_has_one_process_which_needs_no_plan_and_no_pause(
    desk: Desk, batch: Any
) -> None:
    for name in ("plan", "pause", "resume", "cancel_rest", "recover", "chunks"):
        assert not hasattr(batch, name)


async def test_the_figures_of_a_file_are_the_same_when_they_are_read_anew(desk: Desk, batch: Any) -> None:
    await batch.load(items(2))
    assert await batch.refresh() == batch.status()
