"""What the operator changes: one transaction, read as it is changed; and commits that change nothing."""

from __future__ import annotations

from decimal import Decimal

import attrs
import pytest

from payments_async.bulk._ledger.ledger import Edits
from payments_async.bulk._protocol.outcomes import Outcome
from payments_async.bulk._protocol.records import Resend
from payments_async.bulk._protocol.row_state import RowState
from payments_async.bulk.ledger_errors import LedgerRefused
from payments_async.models.statuses import PayoutEnd
from tests.support.ledgers import BINDING, call_off, counts, created, new_row, rejected
from tests.support.places import BOTH, Place, begun, looked_at

pytestmark = BOTH


async def test_nothing_is_committed_for_nothing(path: Place) -> None:
    async with await begun(path, 1) as ledger:
        assert await ledger.record([]) == ()
        (row,) = (await ledger.claim(1)).rows
        await ledger.record([created(row)])
        before = (await ledger.check()).entries
        assert (await ledger.claim(9)).rows == ()
        assert await ledger.record([created(row)]) == ()
        assert await ledger.correct([]) == ()
        assert (await ledger.resend([Resend(1)])).rows == ()
        assert await ledger.intent_times([]) == {}
        assert (await ledger.check()).entries == before


async def test_a_reference_that_another_row_ever_had_is_no_new_one(path: Place) -> None:
    async with await begun(path, 3) as ledger:
        rows = (await ledger.claim(3)).rows
        failed = {"service_status": "FAILED", "payout_end": PayoutEnd.FAILED, "failure_code": "x"}
        await ledger.record([created(row, **failed) for row in rows])
        assert ledger.totals[Outcome.FAILED, "XOF"] == (3, Decimal("30.30"))
        assert [row.number async for row in ledger.failed()] == [1, 2, 3]
        again = [new_row(1, reference="reference-1~g1", idempotency_key="next-1")]
        assert [row.known.generation for row in await ledger.next_generation(again)] == [1]
        assert await ledger.latest_generation() == 1
        others = dict.fromkeys(("reference-1", "reference-1~g1", "reference-3"), "belongs to another row")
        for taken, why in {**others, "reference-2": "reference of its own"}.items():
            with pytest.raises(LedgerRefused, match=why):
                await ledger.next_generation([new_row(2, reference=taken, idempotency_key="next-2")])
        assert [row.number for row in await ledger.by_references(["reference-1", "reference-2"])] == [2]
        assert [row.number for row in await ledger.by_references(["reference-1~g1"])] == [1]
        assert ledger.totals[Outcome.FAILED, "XOF"] == (2, Decimal("20.20"))
        assert (await ledger.check()).findings == ()


async def test_the_next_epochs_key_stays_with_the_row_until_it_gets_other_content(path: Place) -> None:
    async with await begun(path, 1) as ledger:
        await ledger.claim(1)
        (row,) = (await ledger.resend([Resend(1, "epoch-1", absent=True)])).rows
        assert row.idempotency_key == "epoch-1"
        (row,) = await ledger.record([rejected(row)])
        assert row.idempotency_key == "epoch-1"
        (row,) = await ledger.correct([new_row(1, body=b"{}", idempotency_key="corrected")])
        assert (row.idempotency_key, row.known.revision) == ("corrected", 1)
        assert await ledger.numbered([1]) == {1: row}
        assert (await ledger.check()).findings == ()


async def test_edits_are_one_transaction_and_read_what_they_changed(path: Place) -> None:
    async with await begun(path, 7) as ledger:
        before = (await ledger.check()).entries

        async def work(edits: Edits) -> None:
            corrected = (new_row(number, body=b"{}", idempotency_key=f"again-{number}") for number in (2, 6))
            await edits.correct(list(corrected))
            await edits.cancel([3, 7])
            await edits.cancel([4])
            assert [row.state async for row in edits.rows()][2:4] == [RowState.CANCELLED] * 2
            (row,) = await edits.by_keys(["row-2", "nobody's"])
            assert (row.number, row.body) == (2, b"{}")
            await edits.rebind(attrs.evolve(BINDING, input_hash="input-2"))

        await ledger.edit(work)
        assert counts(ledger) == {"not_started": 4, "cancelled": 3}
        header = ledger.header
        assert header.binding.input_hash == "input-2"
        assert (await ledger.check()).entries == before + 6  # three of the chunk, three of the batch
    async with await looked_at(path) as ledger:
        assert ledger.header == header
        assert counts(ledger) == {"not_started": 4, "cancelled": 3}
        assert (await ledger.check()).findings == ()


async def test_what_is_under_way_or_may_still_arrive_is_not_edited(path: Place) -> None:
    async with await begun(path, 3) as ledger:
        rows = (await ledger.claim(2)).rows
        await ledger.record([created(rows[1], service_status="processing")])
        before = await ledger.check()
        for work in (call_off(ledger, [1, 3]), ledger.correct([new_row(1, body=b"other")])):
            with pytest.raises(LedgerRefused, match="IN_FLIGHT"):
                await work
        with pytest.raises(LedgerRefused, match="cannot retry"):
            await ledger.next_generation([new_row(2, reference="reference-2~g1", body=b"again")])
        assert await ledger.check() == before
        await call_off(ledger, [3])
        assert counts(ledger) == {"under_way": 1, "created": 1, "cancelled": 1}


async def test_edits_that_fail_change_nothing(path: Place) -> None:
    async with await begun(path, 3) as ledger:
        before = await ledger.check()

        async def work(edits: Edits) -> None:
            await edits.cancel([1])
            await edits.cancel([1])

        with pytest.raises(LedgerRefused, match="row 1: a row that is CANCELLED cannot cancel"):
            await ledger.edit(work)
        with pytest.raises(LedgerRefused, match="row 9: is not there"):
            await ledger.edit(lambda edits: edits.cancel([9]))
        await ledger.edit(lambda edits: edits.correct([]))
        await ledger.edit(lambda edits: edits.by_keys(["row-1"]), dry=True)  # type: ignore[arg-type, return-value] # an edit that makes nothing
        await ledger.refresh()
        assert counts(ledger) == {"not_started": 3}
        assert await ledger.check() == before
