"""Corners of a run: a service that never answers, two currencies, what lists leave out, many findings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from payments_async import AsyncPayments
from payments_async._http.types import TransportError
from payments_async.bulk import PayoutBatch
from payments_async.sandbox import Sandbox
from tests.support.batches import Between, item, items, paid
from tests.support.desks import Pay


class Unplugged(Between):
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
