"""What may name a batch: as its name is in every reference, no other may take its place unnoticed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from payments_async.bulk.errors import BulkError, SourceUnreadable
from payments_async.sandbox import Sandbox
from tests.support.batches import Item, items
from tests.support.desks import Desk
from tests.support.places import EITHER


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
async def test_a_batch_has_the_name_it_is_given(batch: Any, name: str) -> None:
    assert (await batch.preview(items(1), batch_id=name)).batch_id == name
    assert (await batch.load(items(1), batch_id=name)).batch_id == name
    assert (await batch.load(items(1))).batch_id == name


async def test_a_name_in_another_unicode_form_is_the_same_name(
    desk: Desk, service: Sandbox, client: Any, tmp_path: Path
) -> None:
    composed, decomposed = "f\u00e9vrier", "fe\u0301vrier"
    for ledger, name in (("first", composed), ("after the first was lost", decomposed)):
        async with desk.open(tmp_path / ledger, client) as batch:
            assert (await batch.load(items(2), batch_id=name, pay_again=True)).batch_id == composed
            assert (await batch.load(items(2), batch_id=decomposed)).is_new is False
            assert (await batch.run()).exit_code == 0
    assert len(service.books.payouts()) == 2


@pytest.mark.parametrize(
    ("option", "told"),
    [("acept_edits", "did you mean accept_edits"), ("x", "there are: accept_edits, batch_id")],
)
async def test_an_unknown_option_is_refused_with_the_nearest_name(batch: Any, option: str, told: str) -> None:
    for reads in (batch.load, batch.preview):
        with pytest.raises(TypeError, match=told):
            await reads(items(1), **{option: True})
