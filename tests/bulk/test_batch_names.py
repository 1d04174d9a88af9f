"""What may name a batch: as its name is in every reference, no other may take its place unnoticed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from payments_async.bulk.errors import BulkError, SourceUnreadable
from payments_async.sandbox import Sandbox
from tests.support.batches import Item, items
from tests.support.canary import told_by
from tests.support.desks import Desk
from tests.support.places import EITHER
from tests.support.servers import PASSWORD


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "not blank"),
        (" \t", "not blank"),
        (7, "must be text"),
        ("june\n", "printable"),
        ("june\x00", "printable"),
        ("j" * 192, "at most 191 characters, and has 192"),
    ],
)
async def test_what_cannot_name_a_batch_is_refused_and_not_taken_for_no_name(
    batch: Any, name: Any, told: str
) -> None:
    for reads in (batch.load, batch.preview):
        with pytest.raises(BulkError, match=told):
            await reads(items(1), batch_id=name)
    await batch.load(items(1))
    with pytest.raises(BulkError, match=told):
        await batch.load(items(1), batch_id=name)


class Shrinking:
    """An input that has lost a row when it is read again."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Item]:
        self._rows -= 1
        return iter(items(self._rows + 1))


@EITHER
async def test_an_import_that_failed_leaves_its_name_to_nothing(batch: Any) -> None:
    with pytest.raises(SourceUnreadable, match="changed"):
        await batch.load(Shrinking(3))
    assert (await batch.load(items(1))).is_new
    assert (await batch.run()).counts["created"] == 1


@pytest.mark.parametrize("name", ["june", "août 2026", "j" * 191])
async def test_a_batch_has_the_name_it_is_given(desk: Desk, client: Any, tmp_path: Path, name: str) -> None:
    async with desk.open(tmp_path / "l", client, batch_id=None) as batch:
        assert (await batch.preview(items(1), batch_id=name)).batch_id == name
        assert (await batch.load(items(1), batch_id=name)).batch_id == name
        assert (await batch.load(items(1))).batch_id == batch.batch_id == name


async def test_a_name_in_another_unicode_form_is_the_same_name(
    desk: Desk, service: Sandbox, client: Any, tmp_path: Path
) -> None:
    composed, decomposed = "f\u00e9vrier", "fe\u0301vrier"
    for ledger, name in (("first", composed), ("after the first was lost", decomposed)):
        async with desk.open(tmp_path / ledger, client, batch_id=name) as batch:
            assert (await batch.load(items(2), batch_id=name, pay_again=True)).batch_id == composed
            assert (await batch.load(items(2), batch_id=decomposed)).is_new is False
            assert (await batch.run()).exit_code == 0
    assert len(service.books.payouts()) == 2


async def test_a_batch_that_was_opened_by_its_name_is_loaded_under_no_other(batch: Any) -> None:
    for reads in (batch.load, batch.preview):
        with pytest.raises(BulkError, match="was opened as batch, and its input is given as june"):
            await reads(items(1), batch_id="june")


@pytest.mark.parametrize("name", ["", 7])
async def test_what_cannot_name_a_batch_does_not_open_one(
    desk: Desk, client: Any, tmp_path: Path, name: Any
) -> None:
    with pytest.raises(BulkError, match="batch_id must be text"):
        desk.open(tmp_path / "l", client, batch_id=name)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("address", "told"),
    [
        (f"mysql://ada:{PASSWORD}@db.test/payments", "not mysql://"),
        (f"host=db.test password={PASSWORD}", "postgresql://user@host:port/database, not name=value"),
    ],
)
async def test_an_address_of_another_kind_is_refused_without_its_password(
    desk: Desk, client: Any, address: str, told: str
) -> None:
    with pytest.raises(BulkError, match=told) as caught:
        async with desk.open(address, client):
            pass
    assert PASSWORD not in told_by(caught.value)
