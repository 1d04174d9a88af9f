"""Rows that need a person are grouped by outcome and reason, exactly and in bounded memory; single rows."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from payments_async import Instrument
from payments_async.bulk import Cause, Outcome
from payments_async.sandbox import Sandbox
from tests.support.batches import item, pay_stranger, run_rows
from tests.support.places import EITHER

REFUSALS = ("http:422", "http:422", "http:400", "http:413")


async def grouped(batch: Any, most: int = 50) -> list[tuple[Outcome, int, dict[str, Decimal], list[int]]]:
    """The causes of a batch: outcome, rows, sums, numbers of the first rows."""
    return [
        (cause.outcome, cause.count, dict(cause.sums), [row.number for row in cause.rows])
        for cause in await batch.causes(most)
    ]


@EITHER
async def test_causes_come_by_urgency_and_then_by_size_with_exact_sums(batch: Any, service: Sandbox) -> None:
    for number, refusal in enumerate(REFUSALS[:3], start=1):
        service.on("payouts.create", description=f"row {number}").respond(refusal)
    service.on("payouts.create", description="row 5").respond("lost_request", times=None)
    await pay_stranger(service)
    rows = [item(2, currency="GHS") if number == 2 else item(number) for number in range(1, 7)]
    rows[3] = item(4, reference="taken")
    await batch.load(rows)
    assert await batch.causes() == ()
    await batch.run(patience=600.0)
    expected = [
        (Outcome.IN_DOUBT, 1, {"XCD": Decimal("5.01")}, [5]),
        (Outcome.CONFLICT, 1, {"XCD": Decimal("4.01")}, [4]),
        (Outcome.REJECTED, 2, {"GHS": Decimal("2.01"), "XCD": Decimal("1.01")}, [1, 2]),
        (Outcome.REJECTED, 1, {"XCD": Decimal("3.01")}, [3]),
    ]
    assert await grouped(batch) == expected
    assert [numbers for *_, numbers in await grouped(batch, 4)] == [[5], [4], [1], [3]]
    assert [numbers for *_, numbers in await grouped(batch, 0)] == [[], [], [], []]
    rejected = (await batch.causes())[2]
    assert rejected.reason.startswith("HTTP 422: ")
    facts = {"outcome": "rejected", "reason": rejected.reason, "count": 2}
    assert rejected.facts() == {**facts, "sums": {"GHS": "2.01", "XCD": "1.01"}}


async def test_reasons_of_which_each_row_has_its_own_take_bounded_memory(
    batch: Any, service: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments_async.bulk._export.causes._MOST_REASONS", 1)
    for number, refusal in enumerate(REFUSALS, start=1):
        service.on("payouts.create", description=f"row {number}").respond(refusal)
    await run_rows(batch, 4)
    found: tuple[Cause, ...] = await batch.causes(1)
    assert sorted((cause.count, cause.reason == "other reasons") for cause in found) == [
        (2, False),
        (2, True),
    ]


@EITHER
async def test_a_row_shows_what_was_asked_what_became_of_it_and_when_without_account_data(
    batch: Any, service: Sandbox
) -> None:
    service.on("payouts.create", description="row 2").respond("http:503", times=1)
    phone = Instrument.phone("+2290190112233", "BJ", account_name="Awa Diallo")
    await batch.load([item(1, instrument=phone), item(2)])
    before = await batch.row("row-1")
    unsent = (before.outcome, before.sends, before.first_sent, before.last_sent, before.sent_under)
    assert unsent == ("not_started", 0, None, None, None)
    await batch.run(wait_final=3600.0)
    one, two = await batch.row(1), await batch.row("row-2")
    assert (one.row_key, one.amount, one.currency, one.outcome) == (
        "row-1",
        Decimal("1.01"),
        "XCD",
        "arrived",
    )
    assert one.account == {
        "instrument": {"type": "phone", "phone_number": "***", "country": "BJ", "account_name": "***"},
        "customer": {},
    }
    assert (one.sends, one.reason, one.payout_money) == (1, None, None)
    assert one.first_sent == one.last_sent, "its answer came before the time to send it was over"
    assert two.sends > 1
    assert one.sent_under == two.sent_under == (await batch.reconcile()).key_fingerprint
    assert two.first_sent < two.last_sent <= two.decided_at
    assert [change.status for change in one.statuses][-1] == "completed"
    facts = one.facts()
    assert (facts["amount"], facts["outcome"], facts["statuses"][-1]["payout_id"]) == (
        *("1.01", "arrived"),
        one.payout_id,
    )
    assert "2290190112233" not in f"{one!r}{facts}"
    assert await batch.row("nobody") is None
    assert await batch.row(3) is None
