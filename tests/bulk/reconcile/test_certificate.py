"""What a certificate says was compared: what the list did not show was not, and no such batch is clean."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_async.bulk import PayoutBatch
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from tests.support.batches import alter, in_process, items, runtime_of
from tests.support.scripted import altered
from tests.support.spoiled import hiding, repeating

ROWS = 150


@pytest.fixture
async def batch(tmp_path: Path) -> AsyncIterator[PayoutBatch]:
    """A batch whose rows were all paid."""
    service = Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off())
    async with in_process(service) as client, PayoutBatch.open(tmp_path / "l", client) as batch:
        await batch.load(items(ROWS))
        assert (await batch.run()).exit_code == 0
        yield batch


def hide(batch: PayoutBatch, number: int | None = None, **shown: Any) -> None:
    """Have the list show this instead."""
    alter(batch._service._client, hiding(number, **shown))


async def test_a_clean_certificate_counts_every_row_as_compared(batch: PayoutBatch) -> None:
    certificate = await batch.reconcile()
    assert certificate.is_clean
    for name in ("amount", "currency"):
        assert attrs.asdict(certificate.audit.fields[name]) == {"compared": ROWS, "not_shown": 0}
    said = json.loads(certificate.to_json())["list"]
    assert said["fields"]["amount"] == {"compared": ROWS, "not_shown": 0}
    assert (said["seen"], said["uncompared"]) == (ROWS, 0)


@pytest.mark.parametrize(
    ("amount", "not_shown"),
    [
        (None, {"amount": ROWS, "currency": ROWS}),
        (..., {"amount": ROWS, "currency": ROWS}),
        ([], {"amount": ROWS, "currency": ROWS}),
        ({}, {"amount": ROWS, "currency": ROWS}),
        ({"value": None, "currency": None}, {"amount": ROWS, "currency": ROWS}),
        ({"formatted": "F CFA 1", "currency": "XCD"}, {"amount": ROWS, "currency": 0}),
    ],
)
async def test_a_list_without_amounts_makes_no_clean_certificate(
    batch: PayoutBatch, amount: Any, not_shown: dict[str, int]
) -> None:
    hide(batch, amount=amount)
    certificate = await batch.reconcile()
    assert not certificate.is_clean
    audit = certificate.audit
    assert {name: audit.fields[name].not_shown for name in not_shown} == not_shown
    assert {name: audit.fields[name].compared for name in not_shown} == {
        name: ROWS - rows for name, rows in not_shown.items()
    }
    assert (audit.seen, audit.missing, audit.differing, audit.uncompared) == (0, 0, 0, ROWS)
    rows = "rows 1, 2, 3, 4, 5 and 145 more"
    assert certificate.findings == (
        f"150 rows were not compared: the list shows no amount or no currency of {rows}",
    )
    assert json.loads(certificate.to_json())["clean"] is False


@pytest.mark.parametrize(
    ("shown", "difference"),
    [
        ({"amount": {"value": 7.02, "currency": "XCD"}}, "{} is of XCD 7.02, and XCD 7.01 was asked for"),
        ({"amount": {"value": 7.01, "currency": "GHS"}}, "{} is of GHS 7.01, and XCD 7.01 was asked for"),
        ({"metadata": {}}, "the list shows {} without metadata.payments_sdk"),
        (
            {"metadata": {"payments_sdk": "2.later"}},
            "the list shows {} with a metadata.payments_sdk that cannot be read",
        ),
    ],
)
async def test_a_difference_is_named_with_both_amounts_or_the_field(
    batch: PayoutBatch, shown: Any, difference: str
) -> None:
    hide(batch, 7, **shown)
    certificate = await batch.reconcile()
    row = await batch.row(7)
    assert row is not None
    assert certificate.findings == (f"row 7: {difference.format(row.payout_id)}",)
    assert (certificate.audit.seen, certificate.audit.differing) == (ROWS - 1, 1)
    assert certificate.audit.fields["amount"].compared == ROWS


@pytest.mark.parametrize(
    ("again", "is_clean"),
    [
        ({}, True),
        ({"amount": None}, True),
        ({"amount": {"value": 7.02, "currency": "XCD"}}, False),
        ({"amount": {"value": 7.01, "currency": "GHS"}}, False),
        ({"metadata": {}}, False),
    ],
)
async def test_a_payout_that_is_shown_twice_is_compared_twice(
    batch: PayoutBatch, again: Any, is_clean: bool
) -> None:
    alter(batch._service._client, repeating(7, **again))
    certificate = await batch.reconcile()
    assert certificate.is_clean is is_clean
    assert (certificate.audit.seen, certificate.audit.differing) == (ROWS, int(not is_clean))
    assert all(finding.startswith("row 7: ") for finding in certificate.findings)


async def test_what_the_list_does_not_show_at_all_is_missing_and_not_uncompared(batch: PayoutBatch) -> None:
    hide(batch, 7, reference="another")
    audit = (await batch.reconcile()).audit
    assert (audit.seen, audit.missing, audit.uncompared) == (ROWS - 1, 1, 0)
    assert audit.fields["amount"].compared == ROWS - 1


async def test_a_row_is_compared_by_its_proof_and_its_money(batch: PayoutBatch) -> None:
    hide(batch, instrument=None, method=None)
    certificate = await batch.reconcile()
    assert certificate.is_clean
    assert {name: attrs.astuple(count) for name, count in certificate.audit.fields.items()} == {
        "amount": (ROWS, 0),
        "currency": (ROWS, 0),
        "instrument.phone_number": (0, ROWS),
        "metadata.payments_sdk": (ROWS, 0),
    }


async def test_another_account_that_the_list_shows_in_full_is_named(batch: PayoutBatch) -> None:
    hide(batch, 7, instrument={"type": "phone", "phone_number": "+2290190112234"})
    certificate = await batch.reconcile()
    (finding,) = certificate.findings
    assert finding.startswith("row 7: the list shows po_")
    assert finding.endswith(" with another instrument.phone_number")
    assert "112234" not in certificate.to_json()


async def test_a_payout_that_equals_what_was_asked_for_only_as_a_double_is_named_with_its_difference(
    batch: PayoutBatch,
) -> None:

    def rounded(request: Any, answer: Any) -> Any:
        body = re.sub(rb'("value": ?)7\.01(?=[,}])', rb"\g<1>7.0100000000000000000001", answer.body)
        return altered(answer, body=body)

    alter(batch._service._client, rounded)
    certificate = await batch.reconcile()
    (finding,) = certificate.findings
    assert finding.startswith("row 7: po_")
    assert finding.endswith(" is of XCD 7.0100000000000000000001, and XCD 7.01 was asked for")
    assert certificate.audit.rounded == {"XCD": Decimal("1E-22")}
    assert json.loads(certificate.to_json())["list"]["rounded"] == {"XCD": "0.0000000000000000000001"}
    assert not certificate.is_clean


async def test_a_payout_of_no_row_that_two_pages_show_counts_once(batch: PayoutBatch) -> None:
    hide(batch, 150, reference="x")
    alter(batch._service._client, repeating(150, later=True))
    certificate = await batch.reconcile()
    assert certificate.report.counts["in_excess"] == 1
    assert certificate.report.sums["XCD"]["in_excess"] == Decimal("150.01")
    unknown, missing = certificate.audit.findings
    assert unknown.startswith("the list shows po_")
    assert unknown.endswith(
        ", XCD 150.01, pending, which has this batch's proof, and a reference that no row has"
    )
    assert missing.startswith("row 150: po_")
    assert (certificate.audit.missing, certificate.audit.differing) == (1, 1)


async def test_a_run_makes_a_certificate_of_its_own_though_the_list_was_just_read(batch: PayoutBatch) -> None:
    runtime_of(batch._service._client).advance(3 * 86_400.0)
    hide(batch, 1, amount={"value": 2, "currency": "XCD"})
    await batch.retry_failed()
    report = await batch.run()
    assert report.certificate is not None
    assert (report.exit_code, report.certificate.agrees) == (1, False)
