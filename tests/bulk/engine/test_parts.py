"""Corners of a run: a service that never answers, two currencies, what lists leave out, many findings."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs

from payments_async import AsyncPayments
from payments_async._http.types import TransportError
from payments_async.bulk import PayoutBatch
from payments_async.bulk._engine.stopping import Stopping
from payments_async.bulk._protocol.matching import expected, shown
from payments_async.models import Payout
from payments_async.sandbox import Sandbox
from tests.support.batches import Between, item, items, ledger_rows, paid, runtime_of
from tests.support.desks import Pay
from tests.support.jumping import JumpingRuntime


class Unplugged(Between):
    """A transport whose creations never get out."""

    async def send(self, request: Any) -> Any:
        if request.method == "POST":
            raise TransportError("connect", "unplugged")
        return await super().send(request)


async def test_when_nothing_gets_out_no_new_rows_are_taken_and_none_is_in_doubt(
    service: Sandbox, client: AsyncPayments, pay: Pay
) -> None:
    unplugged = Unplugged(client)
    report = await pay(items(100), concurrency=2)
    assert "cannot be reached" in str(report.stopped)
    assert (report.exit_code, report.counts["in_doubt"]) == (75, 0)
    assert report.counts["not_started"] > 80
    unplugged.remove()
    assert (await pay(items(100))).exit_code == 0
    assert len(service.books.payouts()) == 100


async def test_a_run_is_stopped_while_the_service_has_yet_to_say_a_word(
    service: Sandbox, client: AsyncPayments, batch: PayoutBatch
) -> None:
    service.on("payouts.list").respond("slow:20s")
    await batch.load(items(2))
    running = asyncio.ensure_future(batch.run(drain=1.0))
    runtime_of(client).call_later(5.0, batch.stop)
    report = await running
    assert (report.exit_code, report.stopped, report.counts["not_started"]) == (75, "stopped", 2)


async def test_rows_in_doubt_of_two_currencies_are_found_in_one_walk(service: Sandbox, pay: Pay) -> None:
    service.on("payouts.create").respond("lost_response", times=2).respond("http:409", times=2, after=2)
    rows = [item(1), item(2, currency="XAF")]
    report = await pay(rows)
    assert report.exit_code == 0
    assert report.totals == {"XOF": Decimal("1.01"), "XAF": Decimal("2.01")}
    assert len(service.books.payouts()) == 2


async def test_an_audit_names_a_conflict_and_shows_a_hundred_findings(
    client: AsyncPayments, tmp_path: Path
) -> None:
    rows = [item(number, reference=f"taken-{number}") for number in range(1, 121)]
    await paid(tmp_path / "theirs", client, rows, max_rows=1)
    async with PayoutBatch.open(tmp_path / "ours", client) as batch:
        await batch.load([rows[0]], batch_id="ours")
        report = await batch.run()
        assert (report.exit_code, report.counts["conflict"]) == (1, 1)
        (finding,) = (await batch.reconcile()).findings
        assert finding.startswith("row 1: in conflict, and the list shows po_")
    await paid(tmp_path / "theirs", client, rows)
    async with PayoutBatch.open(tmp_path / "new", client) as batch:
        await batch.load(rows, batch_id="another", pay_again=True)
        audit = (await batch.reconcile()).audit
    assert (audit.differing, len(audit.findings)) == (120, 100)


async def test_what_the_service_does_not_show_is_not_compared(batch: PayoutBatch) -> None:
    await batch.load(items(1))
    (row,) = await ledger_rows(batch)
    assert shown(Payout(id="po_1")).details == {}
    asked = expected(row)
    assert asked.details["instrument.phone_number"] == "+22990112233"
    assert asked.proof is not None
    assert expected(attrs.evolve(row, body=b"{}")).proof is None


async def test_a_rest_ends_with_a_halt_and_a_shallow_one_with_draining() -> None:
    stopping = Stopping(JumpingRuntime())
    deep = asyncio.ensure_future(stopping.rest(1e9, deep=True))
    shallow = asyncio.ensure_future(stopping.rest(1e9, deep=False))
    await asyncio.sleep(0)
    stopping.drain("first")
    stopping.drain("second")
    await shallow
    assert not deep.done()
    stopping.halt("third")
    await deep
    await stopping.rest(1e9, deep=True)
    assert stopping.reason == "first"


class Overslept(Between):
    """A transport whose first creation is not sent, because the machine slept for 26 hours before it."""

    _slept = False

    async def send(self, request: Any) -> Any:
        if request.method == "POST" and not self._slept:
            self._slept = True
            self._pipeline.runtime.step(26 * 3600.0)
            raise TransportError("connect", "the machine slept")
        return await super().send(request)


async def test_a_row_whose_key_grew_too_old_while_it_was_under_way_is_looked_for_before_it_is_paid(
    service: Sandbox, client: AsyncPayments, pay: Pay
) -> None:
    Overslept(client)
    report = await pay(items(1))
    assert (report.exit_code, len(service.books.payouts())) == (0, 1)
    operations = [request.operation for request in service.requests]
    assert operations.index("payouts.list") < operations.index("payouts.create")
