"""A list not read whole, for unreadable items or an end that is not shown, proves no absence."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from payments_async.bulk import PayoutBatch
from payments_async.errors import PaymentsError
from payments_async.sandbox import Sandbox
from tests.support.batches import alter, ledger_rows, run_rows
from tests.support.sightings import lists
from tests.support.spoiled import circling, crowding, silent, spoiling


@pytest.mark.parametrize(
    ("spoilt", "why"),
    [
        (spoiling, "could not be read"),
        *((partial(silent, says), "did not say that the list ends") for says in (None, {"count": 3})),
        (partial(silent, {"has_more_pages": True}), "did not say that the list ends"),
        (circling, "the same cursor twice"),
        (crowding, "more than 1,000 records"),
    ],
)
async def test_a_list_that_was_not_read_whole_certifies_nothing(
    batch: PayoutBatch, spoilt: Any, why: str
) -> None:
    await run_rows(batch, 250)
    first = (await ledger_rows(batch))[0].reference
    alter(batch._service._client, spoilt(first) if spoilt is spoiling else spoilt())
    with pytest.raises(PaymentsError, match=why):
        await batch.reconcile()


async def test_a_list_whose_cursor_is_null_was_read_to_its_end(batch: PayoutBatch) -> None:
    await run_rows(batch, 3)
    alter(batch._service._client, silent({"next_cursor": None}))
    assert (await batch.reconcile()).is_clean


@pytest.mark.parametrize(("fault", "begun"), [("bad_json", 1), ("http:400", 2)])
async def test_a_reading_goes_on_where_it_failed_unless_the_service_refuses_the_place(
    service: Sandbox, batch: PayoutBatch, fault: str, begun: int
) -> None:
    await run_rows(batch, 250)
    before = len(service.requests)
    service.on("payouts.list").respond(fault, after=1, times=2)  # its second page, and where the next goes on
    for _ in range(2):
        with pytest.raises(PaymentsError):
            await batch.reconcile()
    assert (await batch.reconcile()).is_clean
    asked = [request.path for request in service.requests[before:]]
    assert sum("cursor" not in path for path in asked) == begun


async def test_a_page_with_what_cannot_be_read_is_asked_for_once_more(
    service: Sandbox, batch: PayoutBatch
) -> None:
    await run_rows(batch, 250)
    spoil, before = spoiling((await ledger_rows(batch))[0].reference), lists(service)
    spoilt = list[Any]()

    def once(request: Any, answer: Any) -> Any:
        other = spoil(request, answer)
        if spoilt or b"pairs" not in other.body:
            return answer
        spoilt.append(other)
        return other

    alter(batch._service._client, once)
    assert (await batch.reconcile()).is_clean
    assert (len(spoilt), lists(service) - before) == (1, 4)
