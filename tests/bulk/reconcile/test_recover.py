"""Recovering: what the list shows is believed, commands wait for proof, and no row goes on unasked."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from payments_async import AsyncPayments
from payments_async.bulk import RowState, SharedBatch
from payments_async.bulk._engine.service import Service, day_of
from payments_async.bulk._protocol.identifiers import next_generation
from payments_async.bulk._protocol.machines import PROOF_AFTER, Loss
from payments_async.bulk._protocol.records import LedgerRow
from payments_async.bulk.ledger_errors import LedgerRefused
from payments_async.sandbox import Sandbox
from tests.bulk.reconcile.test_retry_failed import fails
from tests.support.batches import alter, in_process, item, items, ledger_rows, runtime_of

S = RowState


async def post(client: Any, *rows: LedgerRow) -> None:
    """Send rows as a worker does whose commits are lost afterwards."""
    service = Service(client)
    await service.check_access()
    for row in rows:
        await service.post(row, 60.0)


async def again(batch: SharedBatch, row: LedgerRow) -> LedgerRow:
    """The row as a retry would send it."""
    new = next_generation(row, batch._ledger.header.binding)
    return attrs.evolve(
        row, **{name: getattr(new, name) for name in ("reference", "body", "idempotency_key")}
    )


async def states(batch: SharedBatch) -> list[RowState]:
    """Where each row stands."""
    return [row.state for row in await ledger_rows(batch)]


async def test_what_the_list_shows_is_recorded_and_lost_commands_wait_for_proof(
    service: Sandbox, database: Any
) -> None:
    fails(service, 3)
    rows = [item(1), item(2), item(3), item(4, reference="theirs"), item(5), item(6)]
    async with in_process(service) as client, SharedBatch.open(database, client, batch_id="june") as batch:
        await batch.load(rows)
        await batch.plan()
        one, two, three, four, five, _ = await ledger_rows(batch)
        await post(client, one, three, four)
        runtime_of(client).advance(60.0)
        service.advance(60.0)  # the payout of row 3 has failed by then, and row 3 was retried
        await post(client, await again(batch, three), await again(batch, one))

        report = await batch.recover(by_hand=True)
        assert (report.reason, report.settled, report.retried) == (Loss.BY_HAND.value, 3, (1, 3))
        assert [command.kind for command in report.commands] == ["import", "plan"]
        assert (report.is_suspect, report.is_over, report.wait) == (True, False, PROOF_AFTER)
        turned, beside = report.findings  # two payouts of row 1 live
        assert turned.startswith("row 1: po_")
        assert turned.endswith(", an earlier payout of it, is completed on the list")
        assert " has its reference, beside po_" in beside
        assert await states(batch) == [S.CREATED, S.NEW, S.CREATED, S.CREATED, S.NEW, S.NEW]
        assert (await ledger_rows(batch))[2].reference == f"{three.reference}~g1"
        assert batch.status().stopped == f"suspect: {Loss.BY_HAND.value}"

        with pytest.raises(LedgerRefused, match="commits were lost"):
            await batch.load(rows[:5], accept_edits=True)
        assert any("commits were lost" in finding for finding in (await batch.reconcile()).findings)

        await post(client, two)  # by a lost request that was slow
        runtime_of(client).advance(PROOF_AFTER)
        service.advance(PROOF_AFTER)
        report = await batch.recover()
        assert (report.settled, report.wait, report.is_suspect) == (1, 0.0, True)
        assert (await batch.load(rows[:5], accept_edits=True)).cancelled == 1

        report = await batch.recover(commands_complete=True)
        assert [(command.kind, command.rows) for command in report.commands][-1] == ("cancel", 1)
        assert report.is_over
        assert batch.status().stopped is None
        assert five.state is S.NEW
        assert (await batch.recover()).reason is None


@pytest.mark.parametrize("is_down", [False, True])
async def test_the_list_is_read_from_the_day_before_the_import_or_from_its_beginning(
    service: Sandbox, client: AsyncPayments, database: Any, is_down: bool
) -> None:
    read: list[str] = []

    def look(request: Any, answer: Any) -> Any:
        read.append(request.url)
        return answer

    alter(client, look)
    async with SharedBatch.open(database, client, batch_id="june") as batch:
        if is_down:
            service.on("payouts.list").respond("http:401", times=1)
        await batch.load(items(1))
        day = day_of(service.clock.now() - 86_400.0)
        service.advance(5 * 86_400.0)
        assert (await batch.recover(by_hand=True)).settled == 0
    assert f"created_at%5Bgte%5D={day}" in read[-1] or is_down
    assert ("created_at" in read[-1]) is not is_down


async def test_a_loss_that_another_process_noticed_is_not_as_old_as_this_session(
    service: Sandbox, database: Any
) -> None:
    async with (
        in_process(service) as client,
        in_process(service, seed=1) as other,
        SharedBatch.open(database, client, batch_id="june") as batch,
    ):
        await batch.load(items(3))
        runtime_of(client).advance(PROOF_AFTER)
        service.advance(PROOF_AFTER)
        async with SharedBatch.open(database, other, batch_id="june") as elsewhere:
            await elsewhere.recover(by_hand=True)
        assert (await batch.recover()).wait == PROOF_AFTER


async def test_each_restore_that_is_said_is_a_loss_of_its_own(service: Sandbox, database: Any) -> None:
    async with in_process(service) as client, SharedBatch.open(database, client, batch_id="june") as batch:
        await batch.load(items(3))
        await batch.plan()
        for confirmed in (False, True):  # of a suspect batch, and of one whose loss is not proven yet
            began = await batch.recover(by_hand=True, commands_complete=confirmed)
            assert (began.is_suspect, began.wait) == (not confirmed, PROOF_AFTER)
            runtime_of(client).advance(60.0)
            service.advance(60.0)
            assert (await batch.recover()).wait == PROOF_AFTER - 60.0
        again = await batch.recover(by_hand=True)
        assert (again.is_suspect, again.wait) == (True, PROOF_AFTER)
        assert batch._ledger.facts.losses == 3  # type: ignore[attr-defined] # of a ledger in a database
