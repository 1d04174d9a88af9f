"""An input edited between runs: which rows differ, and edits taken over whole or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_async import Instrument
from payments_async.bulk import LedgerOfAnotherInput, RowState, SourceErrors, SourceUnreadable
from payments_async.bulk._loading import load
from payments_async.bulk._protocol.identifiers import shown_key
from payments_async.bulk._protocol.records import InputDifference
from payments_async.bulk._protocol.stop_rules import Account
from payments_async.bulk.ledger_errors import InputPaidElsewhere
from payments_async.bulk.sources import CsvSource, IterableSource
from payments_async.sandbox import Sandbox
from tests.support.batches import item, items, ledger_rows
from tests.support.desks import Desk
from tests.support.ledgers import BINDING, all_rows
from tests.support.payout_files import PHONE, csv_file
from tests.support.places import EITHER, Place, chain_of, opened


def told(error: LedgerOfAnotherInput) -> list[tuple[int, str, tuple[str, ...], RowState | None]]:
    """Number, kind, fields and state of each difference."""
    return [(each.number, each.what, each.fields, each.state) for each in error.differences]


async def test_differences_are_reported_by_row_and_field_without_a_value(batch: Any) -> None:
    other = Instrument.phone("+22990990099", "BJ")
    edited = [
        item(1),
        item(2, instrument=other, amount="7.77"),
        item(4),
        item(5, metadata={"cost centre": "x"}),
    ]
    await batch.load([*items(3), item(5)])
    before = await ledger_rows(batch)
    with pytest.raises(LedgerOfAnotherInput) as caught:
        await batch.load(edited)
    assert await ledger_rows(batch) == before
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


@EITHER
async def test_accepted_edits_change_new_rows_and_call_off_what_is_gone(
    batch: Any, service: Sandbox, tmp_path: Path
) -> None:
    path = csv_file(tmp_path, *({**PHONE, "row_key": f"k{n}", "amount": f"{n}.00"} for n in (1, 2, 3)))
    first = await batch.load(path, reference_prefix="june-")
    one, two, three = await ledger_rows(batch)
    csv_file(tmp_path, *({**PHONE, "row_key": f"k{n}", "amount": f"{n}.50"} for n in (1, 3)))
    report = await batch.load(path, accept_edits=True)
    after = await ledger_rows(batch)
    assert (report.corrected, report.cancelled, report.is_new) == (2, 1, False)
    assert (report.batch_id, report.rows) == (first.batch_id, 3)
    assert report.totals == {"XOF": Decimal("7.00")}
    assert [row.state for row in after] == [RowState.NEW, RowState.CANCELLED, RowState.NEW]
    assert [row.reference for row in after] == [row.reference for row in (one, two, three)]
    assert after[0].idempotency_key != one.idempotency_key
    assert [row.known.revision for row in after] == [1, 0, 1]
    assert json.loads(after[0].body)["metadata"].keys() == {"payments_sdk"}
    again = await batch.load(path)
    assert (again.corrected, again.cancelled, again.is_new) == (0, 0, False)
    ended = await batch.run()
    assert ended.balanced
    assert (await batch.check()).findings == ()
    assert sorted(entry.amount for entry in service.books.payouts()) == [Decimal("1.50"), Decimal("3.50")]


@EITHER
async def test_a_rejected_row_is_corrected_and_paid(batch: Any, service: Sandbox) -> None:
    service.on("payouts.create", description="row 2").respond("http:422")
    await batch.load(items(2))
    assert (await batch.run()).counts["rejected"] == 1
    _, refused = await ledger_rows(batch)
    report = await batch.load([item(1), item(2, description="row 2 put right")], accept_edits=True)
    assert (report.corrected, report.cancelled) == (1, 0)
    _, corrected = await ledger_rows(batch)
    assert (corrected.state, corrected.known.revision) == (RowState.NEW, 1)
    assert (corrected.reference, corrected.failure_code) == (refused.reference, None)
    ended = await batch.run()
    assert (ended.exit_code, ended.balanced) == (0, True)
    assert len(service.books.payouts()) == 2


@pytest.mark.parametrize(
    ("edited", "what"),
    [([item(1, amount="9.99"), item(2)], "changed"), ([item(2)], "removed"), ([*items(2), item(3)], "added")],
)
async def test_what_was_sent_or_is_added_refuses_all_edits(
    batch: Any, service: Sandbox, edited: list[Any], what: str
) -> None:
    service.on("payouts.create", description="row 2").respond("http:422")
    await batch.load(items(2))
    await batch.run()
    before = await ledger_rows(batch)
    edits = [(key, request) for key, request in edited if key != "row-2"] + [item(2, description="better")]
    with pytest.raises(LedgerOfAnotherInput) as caught:
        await batch.load(edits, accept_edits=True)
    assert [each.what for each in caught.value.differences] == [what]
    assert caught.value.total == 1
    assert await ledger_rows(batch) == before
    assert not (await batch.load(items(2))).is_new


async def test_a_rejected_row_that_is_removed_is_not_called_off(batch: Any, service: Sandbox) -> None:
    service.on("payouts.create", description="row 2").respond("http:422")
    await batch.load(items(2))
    await batch.run()
    with pytest.raises(LedgerOfAnotherInput) as caught:
        await batch.load(items(1), accept_edits=True)
    assert told(caught.value) == [(2, "removed", (), RowState.REJECTED)]


async def test_what_is_to_pay_is_reported_without_rows_that_were_called_off(batch: Any) -> None:
    all_rows, to_pay = {"XOF": Decimal("6.03")}, {"XOF": Decimal("3.02")}
    begun = await batch.load(items(3))
    assert (begun.totals, begun.payable) == (all_rows, all_rows)
    edited = await batch.load(items(2), accept_edits=True)
    again, seen = await batch.load(items(2)), await batch.preview(items(2))
    for report in (edited, again, seen, batch.status()):
        assert (report.totals, report.payable) == (all_rows, to_pay)
    await batch.run()
    assert batch.status().payable == to_pay


async def test_a_row_that_was_called_off_does_not_come_back(batch: Any) -> None:
    await batch.load(items(3))
    await batch.load(items(2), accept_edits=True)
    await batch.load([item(1)], accept_edits=True)
    with pytest.raises(LedgerOfAnotherInput) as caught:
        await batch.load(items(3), accept_edits=True)
    assert told(caught.value) == [(2, "added", (), RowState.CANCELLED), (3, "added", (), RowState.CANCELLED)]


@EITHER
async def test_the_same_rows_in_another_order_or_writing_are_the_same(batch: Any) -> None:
    await batch.load([item(1, amount="5.50"), item(2)], proofs=False)
    before = await ledger_rows(batch)
    report = await batch.load([item(2), item(1, amount="5.5")])
    assert report.warnings == ("the input was rewritten; its rows are the same as before",)
    assert await ledger_rows(batch) == before
    assert (await batch.load([item(2), item(1, amount="5.5")])).warnings == ()


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


async def test_a_key_that_is_there_twice_is_a_fault(batch: Any) -> None:
    await batch.load(items(2))
    before = await ledger_rows(batch)
    with pytest.raises(SourceErrors, match="row 2, row_key: is that of row 1 too"):
        await batch.load([item(1), item(1, amount="9.99"), item(2)], accept_edits=True)
    assert await ledger_rows(batch) == before


async def test_edits_that_make_another_batchs_input_are_refused(
    desk: Desk, client: Any, tmp_path: Path
) -> None:
    async with desk.open(tmp_path / "june", client) as batch:
        await batch.load(items(1), batch_id="june")
    async with desk.open(tmp_path / "july", client) as batch:
        await batch.load(items(2), batch_id="july")
        with pytest.raises(InputPaidElsewhere):
            await batch.load(items(1), accept_edits=True)
        report = await batch.load(items(1), accept_edits=True, pay_again=True)
        assert report.cancelled == 1
        assert "batch june" in report.warnings[0]


async def test_a_file_that_changes_while_it_is_compared_changes_nothing(batch: Any, tmp_path: Path) -> None:
    class Shifting(CsvSource):
        def fingerprint(self) -> str:
            found = super().fingerprint()
            self.path.write_text(self.path.read_text().replace("60.10", "70.10"))
            return found

    path = csv_file(tmp_path, PHONE)
    await batch.load(path)
    before = await ledger_rows(batch)
    path.write_text(path.read_text().replace("50.10", "60.10"))
    with pytest.raises(SourceUnreadable, match="changed while it was read"):
        await batch.load(Shifting(path), accept_edits=True)
    assert await ledger_rows(batch) == before


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("INV-2024-17", "INV-2024-17"),
        ("7", "7"),
        ("+22990000000", "***"),
        ("Awa", "***"),
        ("a@b.c1", "***"),
        ("12345678", "***"),
        ("123456789", "***"),
    ],
)
def test_keys_that_may_be_personal_are_masked(key: str, shown: str) -> None:
    assert shown_key(key, 7) == shown
    assert shown_key(key, 12345678) == ("12345678" if key == "12345678" else shown)


def test_a_difference_reads_as_a_sentence() -> None:
    removed = InputDifference(3, 4, "a1", "removed", state=RowState.CREATED)
    assert str(removed) == "row 3 (line 4, key a1): removed, CREATED"
    assert not removed.is_acceptable
    assert str(InputDifference(3, None, "a1", "added")) == "row 3 (key a1): added"


def test_a_key_that_may_be_personal_is_left_out_of_the_sentence() -> None:
    assert str(InputDifference(3, 4, "***", "changed", ("amount",))) == "row 3 (line 4): changed amount"
    assert str(InputDifference(3, None, "***", "added")) == "row 3: added"


@EITHER
async def test_edits_that_break_off_in_their_middle_change_nothing(batch: Any) -> None:
    class Breaking:
        """Rows that can be read to their end once."""

        readings = 0

        def __iter__(self) -> Iterator[Any]:
            self.readings += 1
            for number in range(1, 701):
                if number == 600 and self.readings == 2:
                    raise RuntimeError("the database went away")
                yield item(number, amount="5.55")

    rows = items(700)
    await batch.load(rows)
    before = await ledger_rows(batch)
    with pytest.raises(RuntimeError, match="went away"):
        await batch.load(Breaking(), accept_edits=True)
    assert await ledger_rows(batch) == before
    assert not (await batch.load(rows)).is_new
    assert (await batch.check()).findings == ()


@EITHER
async def test_edits_that_are_cancelled_leave_the_ledger_as_it_was(place: Place) -> None:
    async def endless() -> AsyncIterator[Any]:
        for number in range(1, 501):
            yield item(number, amount="5.55")
        reached.set()
        await asyncio.Event().wait()

    class Edited:
        readings = 0

        def __aiter__(self) -> AsyncIterator[Any]:
            self.readings += 1
            return endless() if self.readings == 2 else _given([item(1, amount="5.55")])

    reached = asyncio.Event()
    async with await opened(place, create=True) as ledger:
        account = Account("sandbox", "https://api.example.test/v1", "key-1")
        named = load.LoadSettings(batch_id=BINDING.batch_id)
        await load.load(ledger, account, IterableSource(items(500)), named)
        before, chain = await all_rows(ledger), await chain_of(ledger)
        wishes = attrs.evolve(named, accept_edits=True)
        editing = asyncio.ensure_future(load.load(ledger, account, IterableSource(Edited()), wishes))
        await reached.wait()
        editing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await editing
        assert (await all_rows(ledger), await chain_of(ledger)) == (before, chain)
        assert (await ledger.check()).findings == ()
        assert (await load.load(ledger, account, IterableSource(items(500)), named)).rows == 500


async def _given(rows: list[Any]) -> AsyncIterator[Any]:
    for row in rows:
        yield row
