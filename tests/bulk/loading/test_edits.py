"""An input edited between runs: which rows differ, and edits taken over whole or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_async import Instrument
from payments_async.bulk import Batch, BulkError, InputDifference, LedgerOfAnotherInput, RowState
from payments_async.bulk.errors import SourceErrors, SourceUnreadable
from payments_async.bulk.sources import open_source
from payments_async.sandbox import Sandbox
from tests.support.batches import LedgerRow, item, items, ledger_rows
from tests.support.desks import Desk
from tests.support.payout_files import PHONE, csv_file
from tests.support.places import EITHER


def told(error: LedgerOfAnotherInput) -> list[tuple[int, str, tuple[str, ...], RowState | None]]:
    return [(each.number, each.what, each.fields, each.state) for each in error.differences]


async def stored(batch: Any) -> tuple[Batch, list[LedgerRow]]:
    return attrs.evolve(await batch.facts(), now=0.0), await ledger_rows(batch)


async def test_differences_are_reported_by_row_and_field_without_a_value(batch: Any) -> None:
    other = Instrument.phone("+2290190990099", "BJ")
    edited = [
        item(1),
        item(2, instrument=other, amount="7.77"),
        item(4),
        item(5, metadata={"cost centre": "x"}),
    ]
    await batch.load([*items(3), item(5)])
    before = await stored(batch)
    with pytest.raises(LedgerOfAnotherInput) as caught:
        await batch.load(edited)
    assert await stored(batch) == before
    error = caught.value
    assert told(error) == [
        (2, "changed", ("amount", "instrument.phone_number"), RowState.NEW),
        (3, "added", (), None),
        (4, "changed", ("metadata",), RowState.NEW),
        (3, "removed", (), RowState.NEW),
    ]
    assert (error.total, error.differences[0].row_key) == (4, "row-2")
    text = str(error)
    assert "row 2 (key row-2): changed amount instrument.phone_number, NEW" in text
    assert "accept_edits=True" in text
    assert not any(secret in text for secret in ("22990", "7.77", "centre"))


async def test_no_more_than_twenty_differences_are_reported(batch: Any) -> None:
    await batch.load(items(500))
    with pytest.raises(LedgerOfAnotherInput, match="and 480 more") as caught:
        await batch.load([item(number, description="other") for number in range(1, 501)])
    assert (len(caught.value.differences), caught.value.total) == (20, 500)


@pytest.mark.parametrize("count", [4, 5])
async def test_rows_are_written_and_read_a_part_at_a_time(
    batch: Any, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    for name in ("_CHUNK", "_PAGE"):
        monkeypatch.setattr(f"payments_async.bulk._ledger.loading.{name}", 2)
    await batch.load(items(count))
    report = await batch.load(
        [*items(count - 1), item(count, amount="9.50", currency="GHS")], accept_edits=True
    )
    facts, rows = await stored(batch)
    assert (report.corrected, report.cancelled, len(rows)) == (1, 0, count)
    *kept, changed = [row.amount for row in rows]
    assert report.totals == facts.totals == {"XCD": sum(kept), "GHS": changed}


async def test_a_total_that_is_edited_meanwhile_is_not_confirmed(
    client: Any, desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def edited_before(ledger: Any, **facts: Any) -> Any:
        monkeypatch.undo()
        async with desk.open(tmp_path / "l", client) as other:
            await other.load([item(1), item(2, amount="9000")], accept_edits=True)
        return await ledger.change(**facts)

    async with desk.open(tmp_path / "l", client) as batch:
        await batch.load(items(2))
        monkeypatch.setattr("payments_async.bulk._ledger.ledger.Ledger.change", edited_before)
        with pytest.raises(BulkError, match="nothing was confirmed"):
            await batch.confirm({"XCD": "3.02"})
        assert not (await batch.facts()).is_confirmed
        assert (await batch.facts()).totals == {"XCD": Decimal("9001.01")}


@EITHER
async def test_a_rejected_row_is_corrected_and_paid(batch: Any, service: Sandbox) -> None:
    service.on("payouts.create", description="row 2").respond("http:422")
    await batch.load(items(2))
    assert (await batch.run()).counts["rejected"] == 1
    _, refused = await ledger_rows(batch)
    report = await batch.load([item(1), item(2, description="row 2 put right")], accept_edits=True)
    assert (report.corrected, report.cancelled) == (1, 0)
    _, corrected = await ledger_rows(batch)
    assert (corrected.state, corrected.revision) == (RowState.NEW, 1)
    assert (corrected.reference, corrected.failure_code) == (refused.reference, None)
    ended = await batch.run()
    assert (ended.exit_code, ended.is_balanced) == (0, True)
    assert len(service.books.payouts()) == 2


async def test_what_is_to_pay_is_reported_without_rows_that_were_called_off(batch: Any) -> None:
    all_rows, to_pay = {"XCD": Decimal("6.03")}, {"XCD": Decimal("3.02")}
    begun = await batch.load(items(3))
    assert (begun.totals, begun.payable) == (all_rows, all_rows)
    edited = await batch.load(items(2), accept_edits=True)
    again, seen = await batch.load(items(2)), await batch.preview(items(2))
    for report in (edited, again, seen, await batch.status()):
        assert (report.totals, report.payable) == (all_rows, to_pay)
    await batch.run()
    assert (await batch.status()).payable == to_pay


async def test_a_row_that_was_called_off_does_not_come_back(batch: Any) -> None:
    await batch.load(items(3))
    await batch.load(items(2), accept_edits=True)
    await batch.load([item(1)], accept_edits=True)
    with pytest.raises(LedgerOfAnotherInput) as caught:
        await batch.load(items(3), accept_edits=True)
    assert told(caught.value) == [(2, "added", (), RowState.CANCELLED), (3, "added", (), RowState.CANCELLED)]


@pytest.mark.parametrize(("before", "after"), [("a", "b"), ("a", None), (None, "a"), ("a", "b" * 189)])
async def test_a_reference_is_never_changed(batch: Any, before: str | None, after: str | None) -> None:
    await batch.load([item(1, reference=before)])
    with pytest.raises(LedgerOfAnotherInput) as caught:
        await batch.load([item(1, reference=after)], accept_edits=True)
    assert told(caught.value) == [(1, "changed", ("reference",), RowState.NEW)]


async def test_faults_of_an_edited_input_are_reported_first_or_skipped_on_purpose(
    batch: Any, tmp_path: Path
) -> None:
    edited = [item(1, amount="3.33"), item(2, reference=" ")]
    await batch.load(items(2))
    with pytest.raises(SourceErrors):
        await batch.load(edited, accept_edits=True)
    rejects = tmp_path / "rejects.csv"
    report = await batch.load(edited, accept_edits=True, skip_invalid=True, rejects=rejects)
    assert (report.corrected, report.cancelled, report.skipped) == (1, 1, 1)
    assert rejects.exists()


async def test_a_file_that_changes_while_it_is_compared_changes_nothing(
    batch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shifting() -> str:
        found = fingerprint()
        path.write_text(path.read_text().replace("60.10", "70.10"))
        return found

    path = csv_file(tmp_path, PHONE)
    await batch.load(path)
    before = await stored(batch)
    path.write_text(path.read_text().replace("50.10", "60.10"))
    source = open_source(path)
    fingerprint = source.fingerprint
    monkeypatch.setattr(source, "fingerprint", shifting)
    with pytest.raises(SourceUnreadable, match="changed while it was read"):
        await batch.load(source, accept_edits=True)
    assert await stored(batch) == before


@pytest.mark.parametrize(
    ("difference", "text", "is_acceptable"),
    [
        ((3, 4, "a1", "removed", (), RowState.CREATED), "row 3 (line 4, key a1): removed, CREATED", False),
        ((3, None, "a1", "removed", (), RowState.NEW), "row 3 (key a1): removed, NEW", True),
        ((3, None, "a1", "removed", (), RowState.NEW, True), "row 3 (key a1): removed, NEW", False),
        ((3, None, "a1", "added"), "row 3 (key a1): added", False),
        *(
            ((3, None, "a1", what, (), state), f"row 3 (key a1): {what}, {state}", False)
            for what in ("changed", "removed")
            for state in (RowState.IN_FLIGHT, RowState.IN_DOUBT, RowState.CREATED, RowState.CONFLICT)
        ),
        ((3, None, "a1", "removed", (), RowState.REJECTED), "row 3 (key a1): removed, REJECTED", False),
        (
            (3, 4, "***", "changed", ("amount",), RowState.REJECTED),
            "row 3 (line 4): changed amount, REJECTED",
            True,
        ),
        ((3, None, "***", "changed", ("reference",), RowState.NEW), "row 3: changed reference, NEW", False),
        ((3, None, "***", "changed", ("amount",), RowState.NEW, True), "row 3: changed amount, NEW", False),
    ],
)
def test_a_difference_reads_as_a_sentence_without_a_key_that_may_be_personal(
    difference: Any, text: str, is_acceptable: bool
) -> None:
    assert str(InputDifference(*difference)) == text
    assert InputDifference(*difference).is_acceptable is is_acceptable


class Twice:
    """Rows to be read twice, the second time other ones."""

    def __init__(self, first: AsyncIterator[Any], second: AsyncIterator[Any]) -> None:
        self._readings = iter([first, second])

    def __aiter__(self) -> AsyncIterator[Any]:
        return next(self._readings)


@EITHER
@pytest.mark.parametrize("way", ["fails", "is cancelled"])
async def test_edits_that_break_off_in_their_middle_change_nothing(batch: Any, way: str) -> None:
    async def edited(*, breaks: bool) -> AsyncIterator[Any]:
        for number in range(1, 601):
            yield item(number, amount="5.55")
        if breaks and way == "fails":
            raise RuntimeError("the file went away")
        reached.set()
        if breaks:
            await asyncio.Event().wait()

    reached, rows = asyncio.Event(), items(600)
    await batch.confirm((await batch.load(rows)).payable)
    before = await stored(batch)
    editing = asyncio.ensure_future(
        batch.load(Twice(edited(breaks=False), edited(breaks=True)), accept_edits=True)
    )
    if way == "fails":
        with pytest.raises(RuntimeError, match="went away"):
            await editing
    else:
        await reached.wait()
        reached.clear()
        await reached.wait()
        editing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await editing
    assert await stored(batch) == before
    assert not (await batch.load(rows)).is_new


@pytest.mark.parametrize("place", ["postgresql"], indirect=True)
async def test_rows_that_are_taken_meanwhile_refuse_the_edits(
    desk: Desk, client: Any, batch: Any, place: str, service: Sandbox
) -> None:
    async def edited() -> AsyncIterator[Any]:
        for number in range(1, 601):
            if number == 550:  # the first 500 are changed by now, and held
                async with desk.open(place, client) as other:
                    account = other._service.account
                    await other._ledger.pin(account)
                    assert len((await other._ledger.take(600, account, needs_confirmation=False)).rows) == 100
            yield item(number, amount="5.55")

    rows = items(600)
    await batch.load(rows)
    given = [item(number, amount="5.55") for number in range(1, 601)]
    with pytest.raises(LedgerOfAnotherInput) as caught:
        await batch.load(Twice(_given(given), edited()), accept_edits=True)
    assert (caught.value.total, {each.state for each in caught.value.differences}) == (
        100,
        {RowState.IN_FLIGHT},
    )
    assert (await batch.run()).exit_code == 0
    assert sorted(entry.amount for entry in service.books.payouts()) == [
        request.amount for _, request in rows
    ]


async def _given(rows: list[Any]) -> AsyncIterator[Any]:
    for row in rows:
        yield row
