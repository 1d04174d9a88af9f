"""A machine that sleeps, a disk that fills, a ledger that was tampered with, a list that goes in circles."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from payments_async import AsyncPayments
from payments_async.bulk import LedgerError, OutcomesUnrecorded, PayoutBatch, RowState
from payments_async.bulk._engine import recorder, sender
from payments_async.bulk._engine.sender import LEASE_LOST
from payments_async.bulk._ledger.sqlite.ledger import SqliteLedger
from payments_async.bulk._protocol.clocks import ElapsedRange
from payments_async.bulk._protocol.records import Claim, Resend, RowOutcome
from payments_async.bulk._protocol.row_state import confirm
from payments_async.bulk.ledger_errors import NO_INTENT, LedgerBroken, LedgerFull
from payments_async.sandbox import Sandbox
from tests.support.batches import alter, assert_true, items, ledger_rows, runtime_of
from tests.support.desks import Pay
from tests.support.ledgers import tampering

DAY = 86_400.0


async def test_an_intent_that_grew_old_is_recorded_again(service: Sandbox, batch: PayoutBatch) -> None:
    service.on("payouts.create").respond("429:110", times=4).respond("http:422", times=1, after=4)
    await batch.load(items(2))
    report = await batch.run(concurrency=1)
    intents = [row.known.intents for row in await ledger_rows(batch)]
    assert max(intents) > 1
    assert report.counts["rejected"] == 1  # refused by all requests of all intents: no doubt
    assert report.counts["created"] == 1
    assert not any(request.operation == "payouts.list" for request in service.requests[1:])


@pytest.mark.parametrize("error", [error("l", "is not there") for error in NO_INTENT])
@pytest.mark.parametrize(
    ("answers", "times", "method", "code"),
    [("429:110", 4, "resend", 75), ("429:110", 4, "intent_times", 75), ("http:409", 1, "intent_times", 3)],
)
async def test_without_room_for_a_renewed_intent_the_others_are_finished(
    service: Sandbox,
    pay: Pay,
    monkeypatch: pytest.MonkeyPatch,
    error: LedgerError,
    answers: str,
    times: int,
    method: str,
    code: int,
) -> None:
    service.on("payouts.create", description="row 1").respond(answers, times=times)
    with monkeypatch.context() as patch:
        patch.setattr(SqliteLedger, method, _raising(error))
        report = await pay(items(2), concurrency=2)
    assert (report.exit_code, report.stopped) == (code, str(error))
    report = await pay(items(2))
    assert report.exit_code == 0
    assert_true(report, service, items(2))


async def test_patience_ends_a_run_whose_last_row_only_fails(
    service: Sandbox, client: AsyncPayments, pay: Pay
) -> None:
    """Also once so much has failed that no post counts against its row."""
    for number in range(1, 41):
        times = None if number == 1 else 3
        service.on("payouts.create", description=f"row {number}").respond("http:503", times=times)
    began = runtime_of(client).monotonic()
    report = await pay(items(40), patience=3600.0)
    assert runtime_of(client).monotonic() - began < 2 * 3600.0
    assert (report.counts["created"], report.counts["in_doubt"], report.exit_code) == (39, 1, 3)
    service.clear_rules()
    report = await pay(items(40))
    assert report.exit_code == 0
    assert_true(report, service, items(40))


async def test_clocks_that_differ_by_minutes_end_the_run_and_make_no_entry_after_entry(
    service: Sandbox, pay: Pay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database's clock was set: by this process's, each new intent is ten minutes old."""
    with monkeypatch.context() as patch:
        patch.setattr(sender, "age", lambda *_: ElapsedRange(0.0, 600.0))
        report = await pay(items(2), concurrency=2)
    assert (report.exit_code, report.counts["under_way"] + report.counts["in_doubt"]) == (75, 2)
    assert str(report.stopped).startswith("this process's clock and the ledger's differ by minutes: ")
    assert service.books.payouts() == []
    report = await pay(items(2))
    assert report.exit_code == 0
    assert_true(report, service, items(2))


async def test_a_row_that_another_process_settled_is_not_sent_under_a_new_intent(
    service: Sandbox, pay: Pay, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.on("payouts.create", description="row 1").respond("429:110", times=4)
    resend = SqliteLedger.resend

    async def settled_before(ledger: SqliteLedger, resends: Iterable[Resend]) -> Claim:
        row = (await ledger.numbered([1]))[1]
        if row.state is RowState.IN_FLIGHT:
            await ledger.record([RowOutcome(1, confirm(row.known, "po_9"))])
        return await resend(ledger, resends)

    monkeypatch.setattr(SqliteLedger, "resend", settled_before)
    report = await pay(items(2), concurrency=1)
    assert (report.exit_code, len(service.books.payouts())) == (0, 1)


@pytest.mark.parametrize("made", [True, False])
async def test_a_machine_that_slept_for_a_day_asks_the_list_first(
    service: Sandbox, client: AsyncPayments, pay: Pay, made: bool
) -> None:
    service.on("payouts.create").respond("lost_response" if made else "lost_request").respond(
        "http:503", times=1, after=1
    )
    runtime = runtime_of(client)

    def sleep_once(_request: Any, answer: Any) -> Any:
        if answer.status == 503:
            runtime.advance(DAY)
            service.advance(DAY)
        return answer

    alter(client, sleep_once)
    report = await pay(items(1))
    assert report.exit_code == 0
    assert_true(report, service, items(1))
    operations = [request.operation for request in service.requests]
    assert operations[:4] == ["payouts.list", "payouts.create", "payouts.create", "payouts.list"]


async def test_a_body_that_is_not_the_recorded_one_is_never_sent(
    service: Sandbox, client: AsyncPayments, tmp_path: Path
) -> None:
    async with PayoutBatch.open(tmp_path / "l", client) as batch:
        await batch.load(items(1))
    with tampering(tmp_path / "l") as tables:
        _spoil(tables)
    async with PayoutBatch.open(tmp_path / "l", client) as batch:
        report = await batch.run()
        assert (await batch.reconcile()).check.findings
    assert (report.exit_code, report.resumable) == (75, "after_change")
    assert "not the one that was recorded" in str(report.stopped)
    assert service.books.payouts() == []


def _spoil(tables: sqlite3.Connection) -> None:
    tables.execute("UPDATE rows SET body = CAST(replace(CAST(body AS TEXT), '1.01', '9.01') AS BLOB)")


async def test_outcomes_that_cannot_be_recorded_are_handed_over_and_learned_again(
    service: Sandbox, pay: Pay, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(OutcomesUnrecorded) as caught:
        patch.setattr(SqliteLedger, "record", _raising(LedgerFull("l", "the disk is full")))
        await pay(items(500), concurrency=3)
    assert caught.value.effect == "unknown"
    handed = json.loads(caught.value.to_json())
    assert len(handed) == len(caught.value.outcomes) == len(service.books.payouts()) < 500
    assert {outcome["known"]["state"] for outcome in handed} == {"CREATED"}
    report = await pay(items(500))
    assert report.exit_code == 0
    assert_true(report, service, items(500))


def _raising(error: Exception) -> Callable[..., Any]:
    async def refuse(*_: object) -> Any:
        raise error

    return refuse


async def test_many_waiting_outcomes_hold_back_new_ones(
    service: Sandbox, pay: Pay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "_MOST", 3)
    report = await pay(items(50), concurrency=20)
    assert_true(report, service, items(50))
    assert report.exit_code == 0


@pytest.mark.parametrize("error", [error("l", "is not there") for error in NO_INTENT])
async def test_without_room_for_an_intent_nothing_is_sent(
    service: Sandbox, pay: Pay, monkeypatch: pytest.MonkeyPatch, error: LedgerError
) -> None:
    service.on("payouts.create").respond("http:401", times=1)
    rows = items(5)
    with monkeypatch.context() as patch:
        patch.setattr(SqliteLedger, "claim", _raising(error))
        report = await pay(rows)
    assert (report.exit_code, report.stopped) == (75, str(error))
    assert report.counts["not_started"] == 5
    await pay(rows)
    with monkeypatch.context() as patch:
        patch.setattr(SqliteLedger, "resend", _raising(error))
        report = await pay(rows)
    assert (report.exit_code, report.stopped) == (75, str(error))
    report = await pay(rows)
    assert report.exit_code == 0
    assert_true(report, service, rows)


async def test_without_room_for_the_next_keys_intent_the_row_waits_for_another_run(
    service: Sandbox, pay: Pay, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.on("payouts.create").respond("http:409")
    with monkeypatch.context() as patch:
        patch.setattr(SqliteLedger, "resend", _raising(LedgerFull("l", "is full")))
        report = await pay(items(1))
    assert (report.exit_code, report.stopped) == (3, str(LedgerFull("l", "is full")))
    assert (await pay(items(1))).exit_code == 0


async def test_a_ledger_that_breaks_ends_the_run(
    service: Sandbox, pay: Pay, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, calls = SqliteLedger.claim, []

    async def breaking(self: SqliteLedger, limit: int) -> Any:
        calls.append(limit)
        if len(calls) == 3:
            raise LedgerBroken("l", "the disk failed")
        return await claim(self, limit)

    monkeypatch.setattr(SqliteLedger, "claim", breaking)
    with pytest.raises(LedgerBroken):
        await pay(items(50), concurrency=2)
    assert (await pay(items(50))).exit_code == 0
    assert len(service.books.payouts()) == 50


async def test_withheld_rows_stay_in_flight_and_use_no_tries(
    service: Sandbox, pay: Pay, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, left = items(40), iter(range(7))
    with monkeypatch.context() as patch:
        patch.setattr(SqliteLedger, "may_send", lambda self, row: lambda: next(left, None) is not None)
        report = await pay(rows, concurrency=3)
    assert (report.exit_code, report.stopped, report.resumable) == (75, LEASE_LOST, "now")
    assert report.counts["created"] == len(service.books.payouts()) == 7
    assert sum(request.operation == "payouts.create" for request in service.requests) == 7
    assert report.counts["in_doubt"] == 0
    report = await pay(rows)
    assert report.exit_code == 0
    assert_true(report, service, rows)
