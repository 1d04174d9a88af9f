"""A list not read whole, for unreadable items or an end that is not shown, proves no absence."""

from __future__ import annotations

from typing import Any

import pytest

from payments_async.bulk import PayoutBatch
from payments_async.bulk._engine.payout_list import pages, scan, search
from payments_async.errors import DecodeError, SearchIncomplete
from tests.support.batches import alter, items, ledger_rows
from tests.support.spoiled import circling, crowding, silent, spoiling


async def test_a_list_with_an_unreadable_item_proves_no_absence(batch: PayoutBatch) -> None:
    await batch.load(items(3))
    await batch.run()
    first, second, _ = [row.reference for row in await ledger_rows(batch)]
    alter(batch._service._client, spoiling(first))
    with pytest.raises(SearchIncomplete, match="could not be read"):
        await search(batch._service, [first])
    with pytest.raises(SearchIncomplete, match="could not be read"):
        [page async for page in pages(batch._service)]
    assert not any([whole async for _, whole in scan(batch._service)])
    assert list(await search(batch._service, [second])) == [second]
    with pytest.raises(SearchIncomplete, match="could not be read"):
        await batch.reconcile()


@pytest.mark.parametrize("says", [None, {"count": 3}, {"has_more_pages": None}, {"has_more_pages": True}])
async def test_a_list_that_does_not_show_its_end_proves_no_absence(batch: PayoutBatch, says: Any) -> None:
    await batch.load(items(3))
    await batch.run()
    first = (await ledger_rows(batch))[0].reference
    alter(batch._service._client, silent(says))
    assert list(await search(batch._service, [first])) == [first]
    with pytest.raises(SearchIncomplete, match="did not say that the list ends"):
        await search(batch._service, ["absent"])
    with pytest.raises(SearchIncomplete, match="did not say that the list ends"):
        [page async for page in pages(batch._service)]
    assert [whole async for _, whole in scan(batch._service)] == [False]
    with pytest.raises(SearchIncomplete, match="did not say that the list ends"):
        await batch.reconcile()


async def test_a_list_whose_cursor_is_null_was_read_to_its_end(batch: PayoutBatch) -> None:
    await batch.load(items(3))
    await batch.run()
    alter(batch._service._client, silent({"next_cursor": None}))
    assert [whole async for _, whole in scan(batch._service)] == [True]
    assert (await batch.reconcile()).is_clean


async def test_a_list_of_too_many_records_is_not_read(batch: PayoutBatch) -> None:
    await batch.load(items(1))
    await batch.run()
    (row,) = await ledger_rows(batch)
    alter(batch._service._client, crowding())
    with pytest.raises(DecodeError, match="more than 1,000 records"):
        await search(batch._service, [row.reference])
    with pytest.raises(DecodeError, match="more than 1,000 records"):
        await batch.reconcile()


async def test_a_list_that_goes_in_circles_proves_nothing(batch: PayoutBatch) -> None:
    await batch.load(items(250))
    await batch.run()
    alter(batch._service._client, circling())
    with pytest.raises(SearchIncomplete, match="the same cursor twice"):
        await batch.reconcile()
    with pytest.raises(SearchIncomplete, match="the same cursor twice"):
        await search(batch._service, ["unknown"])
    assert not any([whole async for _, whole in scan(batch._service)])
