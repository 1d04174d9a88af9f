"""Reconciling: what the list can settle is settled, statuses are mirrored, and nothing is sent."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from payments_async import AsyncPayments
from payments_async.bulk import AnyBatch, BulkError, PayoutBatch, RowState
from payments_async.bulk._engine.service import day_of
from payments_async.bulk._protocol.identifiers import PROOF_KEY
from payments_async.bulk.ledger_errors import LedgerOfAnotherKey
from payments_async.errors import PaymentsError
from payments_async.sandbox import Sandbox
from tests.support.batches import (
    alter,
    in_process,
    item,
    items,
    ledger_rows,
    open_at,
    pay_stranger,
    runtime_of,
)
from tests.support.desks import Pay
from tests.support.fleet import posts
from tests.support.places import EITHER, Place


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


async def states(batch: PayoutBatch) -> list[RowState]:
    """Where each row stands."""
    return [row.state for row in await ledger_rows(batch)]


@EITHER
async def test_rows_left_in_flight_are_settled_by_the_list_and_the_others_stay(
    service: Sandbox, client: AsyncPayments, batch: AnyBatch
) -> None:
    rows = [item(1), item(2), item(3, reference="theirs"), item(4, reference="odd"), item(5)]
    for number in (1, 3, 4):
        service.on("payouts.create", description=f"row {number}").respond("lost_response", times=None)
    service.on("payouts.create", description="row 2").respond("lost_request", times=None)
    await pay_stranger(service, amount="7.01", reference="theirs")
    await pay_stranger(service, amount="7.01", reference="odd", metadata={PROOF_KEY: "9.unknown"})
    await batch.load(rows)
    await batch.run(patience=0.1, drain=1.0, max_rows=4)
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
    assert certificate.check.findings == ()
    assert certificate.audit.seen == 1
    assert (await batch.run()).counts["created"] == 3


async def test_what_a_killed_run_left_is_settled(service: Sandbox, batch: PayoutBatch) -> None:
    await batch.load(items(3))
    await batch.run(max_rows=1)
    claim = await batch._ledger.claim(2)  # their intent is on the disk, and then the run dies
    assert claim.rows[0].reference is not None
    await batch._service.check_access()
    await batch._service.post(claim.rows[0], 60.0)
    certificate = await batch.reconcile()
    assert await states(batch) == [RowState.CREATED, RowState.CREATED, RowState.IN_FLIGHT]
    assert certificate.audit.seen == 2
    assert certificate.report.exit_code == 75
    assert (await batch.run()).exit_code == 0
    assert len(service.books.payouts()) == 3


@EITHER
async def test_statuses_are_mirrored_and_a_clean_batch_is_certified(
    service: Sandbox, batch: AnyBatch
) -> None:
    service.on("payouts.create", description="row 7").outcome("fail:RECIPIENT_ERROR")
    told: list[Any] = []
    await batch.load(items(150))
    await batch.run()
    service.advance(60.0)
    certificate = await batch.reconcile(told.append)
    assert (certificate.is_clean, certificate.audit.turns, certificate.report.exit_code) == (True, (), 1)
    assert service.api_key not in certificate.to_json()
    assert certificate.audit.seen == 150
    counts, said = batch.status().counts, json.loads(certificate.to_json())
    assert (counts["arrived"], counts["failed"], counts["created"]) == (149, 1, 150)
    assert counts == certificate.report.counts == said["rows"]
    for currency, sums in batch.status().sums.items():
        assert {word: Decimal(amount) for word, amount in said["sums"][currency].items()} == sums
        assert sums["arrived"] == booked(service, currency, "completed")
        assert sums["failed"] == booked(service, currency, "failed")
        assert sums["created"] == sums["arrived"] + sums["failed"]
    assert len(told) == 3  # after each page, and at the end


@EITHER
async def test_the_list_is_read_from_the_day_before_the_first_send(service: Sandbox, batch: AnyBatch) -> None:
    """What others were paid before that is not read, as often as the batch is reconciled."""
    service.advance(30 * 86_400.0)
    day = day_of(service.clock.now() - 86_400.0)
    await batch.load(items(2))
    queries = noted(batch)
    await batch.run()
    service.advance(30 * 86_400.0)
    for _ in range(2):
        assert (await batch.reconcile()).is_settled
    assert [dated(query) for query in queries] == [str(day)] * 2


@EITHER
async def test_all_of_the_list_is_read_where_a_part_cannot_show_every_row(
    service: Sandbox, client: AsyncPayments, place: Place, tmp_path: Path
) -> None:
    service.on("payouts.create", description="row 3").respond("http:422")
    async with PayoutBatch.open(tmp_path / "lost", client) as batch:
        await batch.load(items(2), batch_id="batch")
        await batch.run(wait_final=60.0)
    service.advance(5 * 86_400.0)
    async with open_at(place, client) as batch:
        await batch.load(items(3), batch_id="batch")
        assert (await batch.run()).counts["created"] == 2
        queries = noted(batch)
        assert (await batch.reconcile()).audit.seen == 2
        assert [dated(query) for query in queries] == [None]  # an earlier ledger may have paid row 3


async def test_a_part_of_the_list_that_lacks_a_row_is_followed_by_all_of_it(
    service: Sandbox, client: AsyncPayments, tmp_path: Path
) -> None:
    async with PayoutBatch.open(tmp_path / "lost", client) as batch:
        await batch.load(items(2), batch_id="batch")
        await batch.run()
    service.advance(5 * 86_400.0)
    async with PayoutBatch.open(tmp_path / "new", client) as batch:
        await batch.load(items(3), batch_id="batch")
        assert (await batch.run()).counts["created"] == 3
        queries = noted(batch)
        certificate = await batch.reconcile()
        assert certificate.is_clean
        assert [dated(query) is None for query in queries] == [False, True]


async def test_a_list_that_cannot_be_read_to_its_end_certifies_nothing_and_costs_nothing(
    service: Sandbox, place: Place
) -> None:
    client = in_process(service, max_retries=0)
    async with client, open_at(place, client) as batch:
        await batch.load(items(150))
        await batch.run()
        service.advance(60.0)
        service.on("payouts.list").respond("http:503", after=1)
        with pytest.raises(PaymentsError):
            await batch.reconcile()
        assert (batch.status().counts["arrived"], batch.status().counts["not_final"]) == (100, 50)
        assert (await batch.reconcile()).is_clean


@EITHER
async def test_the_ledger_of_another_project_is_not_reconciled(
    service: Sandbox, pay: Pay, place: Place
) -> None:
    await pay(items(2))
    other = in_process(service, api_key=service.new_key())
    async with other, open_at(place, other) as batch:
        with pytest.raises(LedgerOfAnotherKey):
            await batch.reconcile()


async def test_a_batch_is_not_reconciled_while_it_is_run(batch: PayoutBatch) -> None:
    refused: list[BulkError] = []
    await batch.load(items(2))

    def meanwhile(_: Any) -> None:
        for work in (batch.reconcile(), batch.follow(1.0), batch.retry_failed()):
            with pytest.raises(BulkError, match="being run already") as caught:
                work.send(None)
            refused.append(caught.value)

    assert (await batch.run(meanwhile)).exit_code == 0
    assert len(refused) >= 3
