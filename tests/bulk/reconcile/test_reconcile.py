"""Reconciling: what the list can settle is settled, statuses are mirrored, and nothing is sent."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from payments_async import AsyncPayments
from payments_async.bulk import PayoutBatch, RowState
from payments_async.sandbox import Sandbox
from tests.support.batches import (
    alter,
    item,
    items,
    ledger_rows,
    open_at,
    pay_stranger,
    run_rows,
    runtime_of,
)
from tests.support.places import EITHER, Place
from tests.support.sightings import posts


def booked(service: Sandbox, currency: str, status: str) -> Decimal:
    """The sum of the payouts of a status in the service's own books."""
    found = [each for each in service.books.payouts() if (each.currency, each.status) == (currency, status)]
    return sum((each.amount for each in found), Decimal(0))


def noted(batch: PayoutBatch) -> list[str]:
    """The addresses of the pages that a batch reads from now on."""
    pages = list[str]()

    def look(request: Any, answer: Any) -> Any:
        if request.method == "GET" and request.url.endswith("per_page=100"):
            pages.append(request.url)
        return answer

    alter(batch._service._client, look)
    return pages


def dated(url: str) -> str | None:
    """The first day of the part of the list that is read."""
    return next(iter(parse_qs(urlsplit(url).query).get("created_at[gte]", [])), None)


def pass_time(service: Sandbox, client: AsyncPayments, days: float) -> None:
    service.advance(days * 86_400.0)
    runtime_of(client).advance(days * 86_400.0)


async def states(batch: PayoutBatch) -> list[RowState]:
    return [row.state for row in await ledger_rows(batch)]


@EITHER
async def test_rows_left_in_flight_are_settled_by_the_list_and_the_others_stay(
    service: Sandbox, client: AsyncPayments, batch: PayoutBatch
) -> None:
    rows = [item(1), item(2), item(3, reference="theirs"), item(4, reference="odd"), item(5)]
    for number in (1, 3, 4):
        service.on("payouts.create", description=f"row {number}").respond("lost_response", times=None)
    service.on("payouts.create", description="row 2").respond("lost_request", times=None)
    await pay_stranger(service, amount="7.01", reference="theirs")
    await pay_stranger(service, amount="7.01", reference="odd", metadata={"payments_sdk": "9.unknown"})
    await batch.load(rows)
    await batch.limit(max_rows=4)
    await batch.run(patience=0.1, drain=1.0)
    before, asked = await states(batch), posts(service)
    assert set(before[:4]) <= {RowState.IN_FLIGHT, RowState.IN_DOUBT, RowState.CONFLICT, RowState.CREATED}
    service.clear_rules()
    runtime_of(client).advance(60.0)
    service.advance(60.0)
    certificate = await batch.reconcile()
    first, second, third, fourth, fifth = await ledger_rows(batch)
    assert first.state is RowState.CREATED
    assert (first.service_status, first.outcome) == ("completed", "arrived")
    assert second.state in (RowState.IN_FLIGHT, RowState.IN_DOUBT)
    assert third.state is RowState.CONFLICT
    assert third.failure_code == "reference of another payout"
    assert fourth.state in (RowState.IN_FLIGHT, RowState.IN_DOUBT)
    assert fifth.state is RowState.NEW
    assert posts(service) == asked
    assert not certificate.is_clean
    assert certificate.audit.seen == 1
    await batch.limit()
    assert (await batch.run(patience=60.0)).counts["created"] == 3


@EITHER
async def test_statuses_are_mirrored_and_a_clean_batch_is_certified(
    service: Sandbox, batch: PayoutBatch
) -> None:
    service.on("payouts.create", description="row 7").outcome("fail:RECIPIENT_ERROR")
    told: list[Any] = []
    await run_rows(batch, 150)
    service.advance(60.0)
    certificate = await batch.reconcile(told.append)
    assert (certificate.is_clean, certificate.audit.turns, certificate.report.exit_code) == (True, (), 1)
    assert service.api_key not in certificate.to_json()
    assert certificate.audit.seen == 150
    counts, said = (await batch.status()).counts, json.loads(certificate.to_json())
    assert (counts["arrived"], counts["failed"], counts["created"]) == (149, 1, 150)
    assert counts == certificate.report.counts == said["rows"]
    for currency, sums in (await batch.status()).sums.items():
        assert {word: Decimal(amount) for word, amount in said["sums"][currency].items()} == sums
        assert sums["arrived"] == booked(service, currency, "completed")
        assert sums["failed"] == booked(service, currency, "failed")
        assert sums["created"] == sums["arrived"] + sums["failed"]
    assert len(told) == 2  # after each page


@EITHER
async def test_the_list_is_read_from_the_day_before_the_first_send(
    service: Sandbox, client: AsyncPayments, batch: PayoutBatch
) -> None:
    """What others were paid before that is not read, as often as the batch is reconciled."""
    pass_time(service, client, 30)
    day = datetime.fromtimestamp(service.clock.now() - 86_400.0, UTC).date()
    await batch.load(items(2))
    queries = noted(batch)
    await batch.run()
    pass_time(service, client, 30)
    for _ in range(2):
        assert (await batch.reconcile()).is_settled
    assert [dated(query) for query in queries] == [str(day)] * 3


@EITHER
async def test_all_of_the_list_is_read_where_a_part_cannot_show_every_row(
    service: Sandbox, client: AsyncPayments, place: Place, tmp_path: Path
) -> None:
    service.on("payouts.create", description="row 3").respond("http:422")
    async with PayoutBatch.open(tmp_path / "lost", client) as batch:
        await batch.load(items(2), batch_id="batch")
        await batch.run(wait_final=60.0)
    pass_time(service, client, 5)
    async with open_at(place, client) as batch:
        await batch.load(items(3), batch_id="batch")
        queries = noted(batch)
        report = await batch.run()
        assert (report.counts["created"], report.certificate.audit.seen) == (2, 2)
        # all of it once: an earlier ledger has paid rows 1 and 2, and may have paid row 3
        assert [dated(query) is None for query in queries] == [False, True, False]
        assert dated(queries[0]) > dated(queries[2])
