"""Answers that cannot be taken at their word: odd dates, other records, halves of records, circling lists."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_async._request.error_responses import status_error
from payments_async.bulk import PayoutBatch
from payments_async.bulk.engine.payout_list import scan, search
from payments_async.bulk.protocol.attempts import AttemptReply, attempt_verdict
from payments_async.bulk.protocol.responses import failed
from payments_async.bulk.protocol.row_state import RowState
from payments_async.errors import DeadlineExceeded, DecodeError, OutcomeUnknown, SearchIncomplete
from payments_async.models import Attempt
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from tests.support.batches import (
    alter,
    assert_true,
    in_process,
    items,
    ledger_rows,
    paid,
    steady_ledgers,
)
from tests.support.pure_calls import NOW, PAYOUT, prepared
from tests.support.scripted import answer

DAY = 86_400.0


@pytest.fixture(autouse=True)
def _steady() -> Iterator[None]:
    with steady_ledgers():
        yield


@pytest.fixture
def service() -> Sandbox:
    """A sandbox without limits, on a clock that is moved along."""
    return Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off())


def _spoil(tables: sqlite3.Connection) -> None:
    tables.execute("UPDATE rows SET body = CAST(replace(CAST(body AS TEXT), '1.01', '9.01') AS BLOB)")


def _raising(error: Exception) -> Callable[..., Any]:
    async def refuse(*_: object) -> Any:
        raise error

    return refuse


async def test_a_list_that_goes_in_circles_proves_nothing(service: Sandbox, tmp_path: Path) -> None:
    rows = items(250)
    async with in_process(service) as client, PayoutBatch.open(tmp_path / "l", client) as batch:
        await batch.load(rows)
        await batch.run()
        alter(batch._service._client, _circling())
        with pytest.raises(SearchIncomplete):
            await batch.certify()
        with pytest.raises(SearchIncomplete):
            await search(batch._service, ["unknown"])
        assert not any([whole async for _, whole in scan(batch._service)])


def _circling() -> Callable[[Any, Any], Any]:
    """Each page is the first one, and names the same cursor."""
    first: list[Any] = []

    def circle(_flight: Any, answer: Any) -> Any:
        if not first:
            page = json.loads(answer.body)
            page["pagination"] |= {"next_cursor": "again", "has_more_pages": True}
            first.append(attrs.evolve(answer, body=json.dumps(page).encode()))
        return first[0]

    return circle


@pytest.mark.parametrize("date", ["", "yesterday", "Mon, 01 Jan 99999999 00:00:00 GMT"])
async def test_a_date_that_cannot_be_read_is_no_date(service: Sandbox, tmp_path: Path, date: str) -> None:
    async with in_process(service) as client:

        def spoil(_flight: Any, answer: Any) -> Any:
            headers = answer.headers.copy()
            headers["Date"] = date
            return attrs.evolve(answer, headers=headers)

        alter(client, spoil)
        service.on("payouts.create").respond("http:409")
        async with PayoutBatch.open(tmp_path / "l", client) as batch:
            await batch.load(items(1))
            assert (await batch.run()).exit_code == 0
            assert batch._service.moment().server is None


def test_a_2xx_with_an_id_that_cannot_be_read_whole_counts_for_the_reference_it_shows() -> None:
    def told(reference: str) -> AttemptReply:
        body = json.dumps({"data": {"id": "po_1", "reference": reference, "amount": 7}}).encode()
        attempt = Attempt(1, "executed", "unreadable", 201)
        error = DecodeError("no", record_id="po_1", body=body, effect="happened", attempts=(attempt,))
        return failed(error, "r-1").reply

    assert told("r-1") == AttemptReply(201, record="matching", payout_id="po_1")
    assert told("r-2") == AttemptReply(201, record="other")


def test_what_our_own_pacing_kept_back_was_not_sent_and_costs_no_try() -> None:
    posted = failed(DeadlineExceeded("late"), "r-1")
    assert posted.reply == AttemptReply(sent=False)
    assert not posted.counts


@pytest.mark.parametrize("verdicts", [(), ("in_doubt", "not_executed"), ("in_doubt", "not_sent")])
def test_what_another_caller_of_the_same_request_has_left_in_doubt_is_in_doubt(verdicts: Any) -> None:
    """The post was joined to a try of theirs; a refusal that came after it says nothing of the row."""
    attempts = tuple(Attempt(n, verdict, "422", 422) for n, verdict in enumerate(verdicts, 1))
    facts: dict[str, Any] = {"first_sent_at": None, "key_expires_at": None, "attempts": attempts}
    error = OutcomeUnknown("no", prepared=prepared(PAYOUT.operation), **facts)
    error.__cause__ = status_error(PAYOUT, answer(422, {"message": "No."}), NOW)
    posted = failed(error, "r-1")
    assert posted.reply == AttemptReply()
    assert attempt_verdict(posted.reply) == "in_doubt"


async def test_a_row_whose_request_is_still_at_work_is_in_doubt(service: Sandbox, tmp_path: Path) -> None:
    service.on("payouts.create").respond("http:409")
    body = json.dumps({"message": "The request is being processed."}).encode()
    async with in_process(service) as client:
        alter(client, lambda _, answer: attrs.evolve(answer, body=body) if answer.status == 409 else answer)
        async with PayoutBatch.open(tmp_path / "l", client) as batch:
            await batch.load(items(1))
            await batch.run(patience=60.0)
            row = (await ledger_rows(batch))[0]
            assert (row.state, row.failure_code) == (RowState.IN_DOUBT, "HTTP 409")
            assert (await batch.run()).exit_code == 0


async def test_another_record_than_was_asked_for_is_looked_up(service: Sandbox, tmp_path: Path) -> None:
    async with in_process(service) as client:

        def swap(flight: Any, answer: Any) -> Any:
            body = answer.body if flight.method == "GET" else answer.body.replace(b"1.01", b"8.08")
            return attrs.evolve(answer, body=body)

        alter(client, swap)
        report = await paid(tmp_path / "l", client, items(1))
    assert report.exit_code == 0
    assert_true(report, service, items(1))
    assert [request.operation for request in service.requests][-1] == "payouts.list"
