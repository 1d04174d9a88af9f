"""One chunk at a time, for a scheduler of one's own: idempotent, and nothing while another has the chunk."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from payments_async.bulk import BulkError
from payments_async.bulk.ledger_errors import LedgerMissing
from payments_async.bulk.workers import RunEnd, run_chunk
from tests.support.fleet import Fleet, books, posts
from tests.support.patience import until


async def test_each_chunk_is_paid_once_however_often_it_is_run(fleet: Fleet) -> None:
    batch, client = await fleet.planned(120), await fleet.client()
    ends = [await run_chunk(fleet.url, client, "june", chunk) for chunk in (1, 2, 3)]
    assert [(end.end, end.rows, end.chunks) for end in ends] == [
        (RunEnd.DONE, 50, (1,)),
        (RunEnd.DONE, 50, (2,)),
        (RunEnd.DONE, 20, (3,)),
    ]
    for chunk in (1, 2, 3):  # a scheduler that calls again until a chunk is done comes to an end
        again = await run_chunk(fleet.url, client, "june", chunk)
        assert (again.end, again.rows, again.reason) == (RunEnd.DONE, 0, None)
    with pytest.raises(BulkError, match="batch june has 3 chunks, and no chunk 4"):
        await run_chunk(fleet.url, client, "june", 4)
    assert posts(fleet.sandbox) == len(books(fleet.sandbox)) == 120
    assert (await batch.refresh()).complete
    assert fleet.query("SELECT count(*) FROM payments.workers") == [(0,)]


async def test_a_chunk_that_another_process_has_is_not_available(fleet: Fleet) -> None:
    await fleet.planned(10)
    fleet.sandbox.on("payouts.create").respond("slow:300ms", times=None)
    client = await fleet.client()
    first = asyncio.ensure_future(run_chunk(fleet.url, client, "june", 1, concurrency=2))
    await until(lambda: posts(fleet.sandbox) > 0)
    assert (await run_chunk(fleet.url, client, "june", 1)).end is RunEnd.UNAVAILABLE
    assert (await first).rows == 10


async def test_a_paused_batch_is_not_available_and_says_why(fleet: Fleet) -> None:
    batch, client = await fleet.planned(60), await fleet.client()
    await batch.pause("lunch")
    report = await run_chunk(fleet.url, client, "june", 1)
    assert (report.end, report.reason) == (RunEnd.UNAVAILABLE, "paused: lunch")
    await batch.resume()
    fleet.sandbox.on("payouts.create").respond("slow:100ms", times=None)
    running = asyncio.ensure_future(run_chunk(fleet.url, client, "june", 1, concurrency=2))
    await until(lambda: posts(fleet.sandbox) > 3)
    await batch.pause()
    report = await running
    assert report.end in {RunEnd.PAUSED, RunEnd.LOST}  # a renewal saw it, or the next rows were refused
    assert "the batch is paused: paused" in str(report.reason)
    assert report.rows == (await batch.refresh()).counts["created"] < 50


async def test_rows_that_the_stop_rules_hold_back_are_not_done_and_it_says_why(fleet: Fleet) -> None:
    await fleet.planned(60, max_rows=20)
    client = await fleet.client()
    assert (await run_chunk(fleet.url, client, "june", 1)).rows == 20
    for chunk in (1, 2):
        report = await run_chunk(fleet.url, client, "june", chunk)
        assert (report.end, report.rows) == (RunEnd.UNAVAILABLE, 0)
        assert "as many as --max-rows allows" in str(report.reason)


async def test_a_refused_key_stops_the_chunk(fleet: Fleet) -> None:
    await fleet.planned(5)
    fleet.sandbox.on("payouts.list").respond("http:401")
    report = await run_chunk(fleet.url, await fleet.client(), "june", 1)
    assert (report.end, report.stop.value) == (RunEnd.STOPPED, "no access")
    assert "refused the API key" in str(report.reason)


async def test_a_batch_that_is_not_there_is_an_error(fleet: Fleet) -> None:
    await fleet.planned(1)
    with pytest.raises(LedgerMissing, match="there is no such batch"):
        await run_chunk(fleet.url, await fleet.client(), "july", 1)


async def test_a_batch_is_found_however_the_letters_of_its_name_are_composed(fleet: Fleet) -> None:
    await fleet.planned(3, "caf\u00e9")
    assert (await run_chunk(fleet.url, await fleet.client(), "cafe\u0301", 1)).rows == 3
    assert (await fleet.run(batch_id="cafe\u0301")).exit_code == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"ledger": "june.ledger"}, "share a ledger in a database"),
        ({"ledger": 7}, "share a ledger in a database"),
        ({"ledger": "mysql://x"}, "not mysql://"),
        ({"chunk": 0}, "chunk must be a whole number, 1 or more"),
        ({"chunk": "1"}, "chunk must be a whole number, 1 or more"),
        ({"concurrency": 0}, "concurrency must be a whole number, 1 or more"),
        ({"drain": -1}, "drain must be a number of seconds"),
        ({"batch_id": ""}, "batch_id must be text, not blank"),
    ],
)
async def test_arguments_are_checked_before_anything_is_connected(
    fleet: Fleet, given: dict[str, Any], words: str
) -> None:
    asked = {"ledger": "postgresql://127.0.0.1:1/x", "batch_id": "june", "chunk": 1, **given}
    with pytest.raises(BulkError, match=words):
        await run_chunk(client=await fleet.client(), **asked)
