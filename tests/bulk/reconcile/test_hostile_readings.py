"""Lists not read whole, in another order, late, or with a payout in two forms; and readings that overlap."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from payments_async import AsyncPayments
from payments_async.bulk import Outcome, PayoutBatch
from payments_async.errors import PaymentsError
from payments_async.sandbox import Sandbox
from tests.bulk.reconcile.test_earlier_payouts import booked, lives, retried, told
from tests.bulk.reconcile.test_retry_failed import fails
from tests.support.batches import (
    ReadingLost,
    ReadingStore,
    alter,
    in_process,
    items,
    ledger_rows,
    open_at,
    run_rows,
    runtime_of,
)
from tests.support.places import EITHER, Place
from tests.support.scripted import altered
from tests.support.sightings import lists, posts
from tests.support.spoiled import circling, crowding, listed, one_a_page, silent, spoiling


async def test_a_stale_copy_that_calls_a_living_payout_failed_pays_nothing(
    service: Sandbox, batch: PayoutBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails(service, 1)
    await retried(batch)
    stale = (await listed(batch._service))[-1]
    first, before = lives(service), posts(service)
    one_a_page(monkeypatch, stale)
    await batch.run(wait_final=60.0)
    assert posts(service) == before
    assert (await ledger_rows(batch))[0].payout_id == first


async def test_a_stale_copy_lets_no_row_be_retried(
    service: Sandbox, batch: PayoutBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.on("payouts.create", description="row 1").outcome("fail:RECIPIENT_ERROR", times=2)
    await retried(batch)
    await batch.run(wait_final=60.0)
    stale = (await listed(batch._service))[-1]
    lives(service)
    one_a_page(monkeypatch, stale)
    assert (await batch.retry_failed()).rows == ()


@pytest.mark.parametrize("backwards", [False, True])
async def test_a_list_in_another_order_makes_no_clean_certificate_over_an_excess(
    service: Sandbox, tmp_path: Path, backwards: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails(service, 1)
    async with in_process(service) as client, PayoutBatch.open(tmp_path / "lost", client) as batch:
        await batch.load(items(2), batch_id="batch")
        await batch.run(wait_final=60.0)
        await batch.retry_failed()
        await batch.run(wait_final=60.0)
        lives(service)
    one_a_page(monkeypatch, backwards=backwards)
    async with in_process(service) as client, PayoutBatch.open(tmp_path / "l", client) as batch:
        await batch.load(items(2), batch_id="batch")
        for certificate in (await batch.reconcile(), await batch.reconcile()):
            assert (certificate.is_clean, certificate.report.counts["in_excess"]) == (False, 1)
            assert told(certificate.report) == booked(service)


async def test_a_reading_that_was_left_is_gone_on_with_where_it_stood(
    service: Sandbox, client: AsyncPayments, batch: PayoutBatch, place: Place
) -> None:
    await run_rows(batch, 2, wait_final=60.0)
    left = await ReadingStore.begin(batch._ledger, None)
    await left.take((await listed(batch._service))[:1], "a place")
    async with open_at(place, client) as other:
        with pytest.raises(ReadingLost):  # while it is this one's
            await ReadingStore.begin(other._ledger, None)
        runtime_of(client).advance(61.0)
        next_one = await ReadingStore.begin(other._ledger, None)
        assert next_one.reading.cursor == "a place"
        assert (next_one.reading.number, next_one.reading.began) == (left.reading.number, left.reading.began)
        assert next_one.auditor.seen == 1
        await next_one.give_up()
    runtime_of(client).advance(900.0)  # one that is old proves too little
    anew = await ReadingStore.begin(batch._ledger, None)
    assert (anew.reading.cursor, anew.reading.number) == (None, left.reading.number + 1)


async def test_absence_is_judged_only_on_a_list_that_was_read_whole(
    service: Sandbox, client: AsyncPayments, batch: PayoutBatch
) -> None:
    fails(service, 1)
    await retried(batch)
    service.on("payouts.create", description="row 1").respond("lost_response", times=None)
    service.on("payouts.list").respond("http:503", times=None, after=1)
    assert (await batch.run(patience=10.0)).counts["in_doubt"] == 1
    service.clear_rules()
    lives(service)
    service.advance(3_600.0)
    client._pipeline.runtime.advance(3_600.0)
    alter(batch._service._client, spoiling((await ledger_rows(batch))[0].reference))
    await batch.retry_failed(dry_run=True)
    assert (await ledger_rows(batch))[0].outcome is Outcome.IN_DOUBT


async def test_an_extra_payout_of_an_absurd_amount_is_a_finding(service: Sandbox, batch: PayoutBatch) -> None:
    fails(service, 1)
    await retried(batch)
    await batch.run(wait_final=60.0)
    first = lives(service)
    for absurd in ("1e20", "1e250", "1e99999", "-5", "1.5e-30", "1e-300", "null"):

        def spoil(request: Any, answer: Any, absurd: str = absurd) -> Any:
            page = json.loads(answer.body)
            for each in page["data"] if request.method == "GET" else ():
                if each["id"] == first:
                    each["amount"] = {**({} if absurd == "null" else each["amount"]), "value": "ABSURD"}
            return altered(answer, body=json.dumps(page).replace('"ABSURD"', absurd).encode())

        alter(batch._service._client, spoil)
        certificate = await batch.reconcile()
        (finding,) = (each for each in certificate.findings if "cannot be added up" in each)
        assert ", ," not in finding
        assert not certificate.is_clean


@EITHER
@pytest.mark.parametrize("refused", [False, True])
async def test_what_no_database_can_hold_is_kept_readable(
    service: Sandbox, place: Place, refused: bool
) -> None:
    """A NUL in each text of an answer: PostgreSQL refuses it, and with it all outcomes of the commit."""

    def spoil(request: Any, answer: Any) -> Any:
        text = answer.body
        for word in (b'"id":"po_', b'"status":"', b"given"):
            text = text.replace(word, word + rb"\u0000")
        return altered(answer, body=text)

    if refused:
        service.on("payouts.create", description="row 1").respond("http:422")
    async with in_process(service) as client:
        alter(client, spoil)
        async with open_at(place, client) as batch:
            assert (await run_rows(batch, 2)).counts["rejected"] == refused
            assert (await batch.reconcile()).is_clean
            row, other = await ledger_rows(batch)
    assert other.payout_id.startswith("po_\ufffd")
    assert str(other.service_status).startswith("\ufffd")
    assert "\0" not in (row.failure_message or "")


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
