"""The figures of a run through the public face: what came back, of which rows, and who needs a look."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from payments_async.sandbox import Sandbox
from tests.support.batches import in_process, item, items, open_at
from tests.support.desks import Desk
from tests.support.places import EITHER

pytestmark = EITHER


async def test_a_run_with_faults_shows_what_came_back(service: Sandbox, place: Path | str) -> None:
    service.on("payouts.create", description="row 2").respond("http:503", times=2)
    service.on("payouts.create", description="row 3").respond("http:422", times=None)
    service.on("payouts.create", description="row 4").respond("429:3", times=1)
    service.on("payouts.create", description="row 5").respond("lost_response", times=1)
    async with in_process(service) as client, open_at(place, client) as batch:
        await batch.load(items(6))
        report = await batch.run()
        during = await batch.series()
    assert report.counts["created"] == 5
    async with open_at(place) as batch:
        series = await batch.series()
        rows = {name: await batch.row(name) for name in ("row-1", "row-2", "row-3", "4", "row-5")}
        causes = await batch.causes()
        assert await batch.row("row-7") is None
    assert series == during
    total = series.total
    assert (total.created, total.refused, total.no_answer) == (5, 1, 1)
    assert total.failed == 3
    assert 3.0 <= total.closed < 4.0, "as the service asked, and a little more"
    assert total.limit == 1000.0
    assert (series.times.answers, series.times.no_answer) == (9, 1)
    texts = {name: None if row is None else str(row.attempts) for name, row in rows.items()}
    assert texts == {
        "row-1": "",
        "row-2": "503 503 201",
        "row-3": "422",
        "4": "429 201",
        "row-5": "reset 201",
    }
    (cause,) = causes
    assert [row.number for row in cause.rows] == [3]
    assert cause.facts() == {
        "outcome": "rejected",
        "reason": cause.rows[0].reason,
        "count": 1,
        "sums": {"XOF": "3.01"},
    }
    refused = cause.rows[0]
    assert refused.facts()["outcome"] == "rejected"
    assert refused.facts()["amount"] == "3.01"
    assert refused.facts()["attempts"]["made"] == 1
    assert (refused.reason or "").startswith("HTTP 422")
    assert "***" in refused.account["instrument"].values()
    assert "22990112233" not in repr(refused)
    assert refused.first_sent is not None
    times = {name: (row.first_sent or 0.0, row.last_sent or 0.0) for name, row in rows.items() if row}
    paused = 3.0 if isinstance(place, Path) else 0.001  # PostgreSQL's are the times of its commits
    assert times["4"][1] - times["4"][0] >= paused, "sent again after the pause"
    assert times["row-1"][1] == times["row-1"][0] > 0.0


async def test_rows_to_look_at_are_grouped_by_cause_and_only_the_first_are_shown(
    desk: Desk, service: Sandbox, place: Path | str
) -> None:
    service.on("payouts.create").respond("http:422", times=3)
    service.on("payouts.create", description="row 5").outcome("fail:RECIPIENT_ERROR")
    service.on("payouts.create", description="row 6").outcome("fail:INSUFFICIENT_FUNDS")
    async with desk.client(service) as client, desk.open(place, client, batch_id="b") as batch:
        await batch.load(items(6))
        assert await batch.causes() == ()
        assert (await batch.series()).buckets == ()
        await batch.run(concurrency=1, wait_final=600.0)
        all_rows, some, none = await batch.causes(), await batch.causes(7), await batch.causes(0)
    assert [(cause.outcome.value, cause.count, cause.sums) for cause in all_rows] == [
        ("failed", 1, {"XOF": Decimal("5.01")}),
        ("failed", 1, {"XOF": Decimal("6.01")}),
        ("rejected", 3, {"XOF": Decimal("6.03")}),
    ]
    codes = [(cause.reason or "").split(":")[0] for cause in all_rows]
    assert codes == ["RECIPIENT_ERROR", "INSUFFICIENT_FUNDS", "HTTP 422"]
    assert [[row.number for row in cause.rows] for cause in all_rows] == [[5], [6], [1, 2, 3]]
    assert [[row.number for row in cause.rows] for cause in some] == [[5], [6], [1, 2]]
    assert [cause.rows for cause in none] == [(), (), ()]
    assert [cause.count for cause in none] == [1, 1, 3]


async def test_a_name_or_an_account_is_masked_as_a_reference_too(service: Sandbox, place: Path | str) -> None:
    own = ("june-2026-11-22/emp-7", "0240000001", "+233 24 000 0001", "Ama Mensah", "20261122-00017")
    rows = [item(n + 1, reference=reference) for n, reference in enumerate(own)]
    async with in_process(service) as client, open_at(place, client) as batch:
        await batch.load(rows)
        shown = [await batch.row(f"row-{n + 1}") for n in range(len(own))]
    assert [row and row.reference for row in shown] == [own[0], "***", "***", "***", own[4]]
