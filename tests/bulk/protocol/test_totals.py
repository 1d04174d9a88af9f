"""Amounts whose sums have more digits than usual arithmetic keeps: paid, stopped and certified exactly."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import attrs

from payments_async.bulk import PayoutBatch
from payments_async.bulk.reconcile.reconcile import Certificate
from payments_async.sandbox import Sandbox
from tests.support.batches import in_process, item, items

AMOUNTS = [
    *(Decimal(f"1234567890123456789{n}.123456789") for n in range(3)),
    Decimal("99999999999999999999.999999999"),
    Decimal("1.000000001"),
]


async def test_a_batch_with_a_sum_of_many_digits_balances_and_is_certified(
    service: Sandbox, tmp_path: Path
) -> None:
    rows = [item(number, amount=amount) for number, amount in enumerate(AMOUNTS, 1)]
    async with in_process(service) as client, PayoutBatch.open(tmp_path / "l", client) as batch:
        await batch.load(rows)
        half = await batch.run(max_amount="24691357802469135781.246913578")
        assert half.balanced
        assert half.counts["created"] == 2
        report = await batch.run()
        assert (report.balanced, report.exit_code) == (True, 0)
        assert report.totals == {"XOF": Decimal("137037036703703703674.370370367")}
        assert (await batch.reconcile()).is_clean


async def test_a_certificate_that_is_not_clean_always_says_why(service: Sandbox, tmp_path: Path) -> None:
    async with in_process(service) as client, PayoutBatch.open(tmp_path / "l", client) as batch:
        await batch.load(items(3))
        await batch.run(max_rows=2)
        half = await batch.reconcile()
        assert not half.is_clean
        assert half.findings == ("the batch is not complete: of 3 rows, 1 not started",)
        await batch.run()
        whole = await batch.reconcile()
    assert (whole.is_clean, whole.findings) == (True, ())
    unbalanced: Certificate = attrs.evolve(whole, report=attrs.evolve(whole.report, balanced=False))
    assert not unbalanced.is_clean
    (finding,) = unbalanced.findings
    assert "does not add up" in finding
    said = json.loads(unbalanced.to_json())
    assert (said["clean"], said["findings"]) == (False, [finding])
