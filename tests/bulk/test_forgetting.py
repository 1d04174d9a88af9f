"""Forgetting batches of a database: what is dropped, what is kept, and what is refused before and after.

Through one surface: `test_batch_database.py` calls it through both.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any
from unicodedata import normalize

import pytest

from payments_async.bulk import BatchState
from payments_async.bulk._ledger.postgresql.forgetting import forget
from payments_async.bulk.errors import BulkError
from payments_async.bulk.ledger_errors import (
    InputPaidElsewhere,
    LedgerBroken,
    LedgerForgotten,
)
from payments_async.sandbox import Sandbox
from tests.support.batches import item, items
from tests.support.databases import batch, run
from tests.support.desks import Desk
from tests.support.one_surface import surface as surface

DAY = 86_400.0
TABLES = "SELECT count(*) FROM pg_tables WHERE tablename ~ '_[0-9a-f]{16}$'"
LEFT = (
    "SELECT (SELECT count(*) FROM payments.chunks), (SELECT count(*) FROM payments.series), "
    "(SELECT count(*) FROM payments.answer_times)"
)


async def paid(desk: Desk, client: Any, database: str, name: str = "june", rows: int = 3) -> Any:
    """A batch that is paid and settled. Returns its certificate."""
    async with desk.open(database, client, batch_id=name) as batch:
        await batch.load(items(rows), pay_again=True)
        await batch.run(wait_final=60.0)
        return await batch.reconcile()


async def test_a_settled_batch_is_forgotten_and_its_sums_and_certificate_are_kept(
    desk: Desk, client: Any, database: str
) -> None:
    certificate = await paid(desk, client, database)
    assert certificate.is_settled
    async with desk.database(database) as found:
        (before,) = await found.batches()
        (would,) = await found.forget(0.0, dry_run=True)
        assert (would.batch_id, would.rows, would.kept) == ("june", 3, None)
        assert would.counts == before.report.counts
        assert would.size > 100_000
        assert would.closed_at == before.closed_at
        assert await found.batches() == [before]
        assert await found.forget(DAY) == []
        run(database, "UPDATE payments.batches SET closed = jsonb_set(closed::jsonb, '{at}', '1')")
        (done,) = await found.forget(90 * DAY)
        assert (done.size, done.kept, done.closed_at) == (would.size, None, 1.0)
        (after,) = await found.batches()
        assert await found.forget(0.0) == []
    assert (after.state, after.report.counts) == (BatchState.FORGOTTEN, before.report.counts)
    assert (after.report.sums, after.report.rows) == (before.report.sums, 3)
    assert (before.forgotten, after.chunks_open, after.workers) == (None, 0, ())
    assert after.forgotten.root == certificate.check.head
    kept = json.loads(after.forgotten.certificate)
    assert kept == {k: v for k, v in json.loads(certificate.to_json()).items() if k != "input_hash"}
    assert run(database, TABLES) == [(0,)]
    assert run(database, LEFT) == [(0, 0, 0)]
    ((left,),) = run(database, "SELECT b::text FROM payments.batches b")
    assert certificate.input_hash not in left


async def test_a_forgotten_batch_answers_that_it_was_forgotten(
    desk: Desk, client: Any, database: str
) -> None:
    await paid(desk, client, database)
    async with (
        desk.open(database, batch_id="june") as reader,
        desk.open(database, client, batch_id="june") as follower,
    ):
        references = [row.reference for row in await desk.rows(reader)]
        async with desk.database(database) as found:
            await found.forget(0.0)
            assert (await found.forgotten(references[1])).batch_id == "june"
            assert await found.forgotten("ref-unknown") is None
        for work in (
            follower.reconcile,
            follower.refresh,
            follower.cancel_rest,
            follower.run,
            follower.pause,
        ):
            with pytest.raises(LedgerForgotten, match=r"was forgotten on .* UTC; 3 rows were asked for, XOF"):
                await work()
    for options in ({}, {"client": client}):
        with pytest.raises(LedgerForgotten) as caught:
            async with desk.open(database, batch_id="june", **options):
                pass
        assert caught.value.batch_id == "june"
        assert caught.value.forgotten_at.year >= 2020


async def test_the_input_of_a_forgotten_batch_is_paid_under_no_other_name(
    desk: Desk, client: Any, service: Sandbox, database: str
) -> None:
    await paid(desk, client, database)
    async with desk.database(database) as found:
        await found.forget(0.0)
    async with desk.open(database, client, batch_id="july") as batch:
        with pytest.raises(InputPaidElsewhere, match="batch june"):
            await batch.load(items(3))
        assert (await batch.load(items(2))).is_new  # another input
    assert len(service.books.payouts()) == 3


async def test_hundreds_of_references_are_known_by_their_hashes(
    desk: Desk, client: Any, database: str
) -> None:
    """More than one table row holds."""
    await paid(desk, client, database, rows=400)
    async with desk.open(database, batch_id="june") as batch:
        references = [row.reference for row in await desk.rows(batch)]
    async with desk.database(database) as found:
        await found.forget(0.0)
        assert [(await found.forgotten(each)).batch_id for each in references[::40]] == ["june"] * 10
    parts = run(database, "SELECT length(hashes) FROM payments.forgotten_references ORDER BY first")
    assert parts == [(1800,), (1800,), (1200,)]
    assert not any(
        each.encode() in bytes(h)
        for each in references
        for (h,) in run(database, "SELECT hashes FROM payments.forgotten_references")
    )


async def test_a_forgotten_batch_says_which_of_its_rows_were_not_paid(
    desk: Desk, client: Any, service: Sandbox, database: str
) -> None:
    service.on("payouts.create", amount="1.01").respond("http:422", times=None)
    service.on("payouts.create", amount="2.01").outcome("fail:RECIPIENT_ERROR immediate", times=None)
    assert (await paid(desk, client, database)).is_settled
    async with desk.database(database) as found:
        (done,) = await found.forget(0.0)
        assert (done.kept, done.counts["rejected"], done.counts["arrived"]) == (None, 1, 1)
    words = "XOF 6.03: 1 rejected, 1 arrived, 1 failed; its root is .*; do not pay again what has arrived"
    with pytest.raises(LedgerForgotten, match=words):
        await desk.open(database, client, batch_id="june").preview(items(3))
    async with desk.open(database, client, batch_id="july") as batch:
        with pytest.raises(
            InputPaidElsewhere, match=r"june, which was forgotten;.*do not pay again"
        ) as caught:
            await batch.load(items(3))
        assert caught.value.is_forgotten
        assert (await batch.load(items(3), pay_again=True)).is_new


async def test_only_named_batches_are_looked_at(desk: Desk, client: Any, database: str) -> None:
    for name in ("june", "july"):
        await paid(desk, client, database, name)
    async with desk.database(database) as found:
        assert await found.forget(0.0, only=[]) == []
        assert [each.batch_id for each in await found.forget(0.0, only=["july", "august"])] == ["july"]
        assert [each.batch_id for each in await found.forget(0.0, dry_run=True)] == ["june"]


async def test_the_key_of_a_forgotten_batchs_digests_is_gone(desk: Desk, client: Any, database: str) -> None:
    """With it an archive without accounts would confirm a guessed account."""
    await paid(desk, client, database)
    key = "SELECT encode(hash_key, 'hex') FROM payments.batches"
    ((before,),) = run(database, key)
    async with desk.database(database) as found:
        await found.forget(0.0)
    assert run(database, key) == [(hashlib.sha256(bytes.fromhex(before)).hexdigest(),)]


async def test_a_reference_is_found_as_it_was_sent_and_composed(
    desk: Desk, client: Any, database: str
) -> None:
    sent = normalize("NFD", "café")
    async with desk.open(database, client, batch_id="june") as batch:
        await batch.load([item(1, reference=sent), item(2, reference="thé")])
        await batch.run(wait_final=60.0)
        assert [(await batch.row(name)).number for name in (sent, "thé", normalize("NFD", "thé"))] == [
            1,
            2,
            2,
        ]
        await batch.reconcile()
    async with desk.database(database) as found:
        await found.forget(0.0)
        for name in (sent, "thé", normalize("NFD", "thé")):
            assert (await found.forgotten(name)).batch_id == "june"


UNSETTLED = {
    "UPDATE payments.batches SET certificate = NULL": "no reading of the service's list is recorded",
    "UPDATE payments.batches SET certificate = jsonb_set(certificate::jsonb, '{settled}', 'false')": (
        "its certificate is not clean"
    ),
    "UPDATE payments.chunks SET head = 'x' WHERE chunk = 1": "it has changed since its certificate",
    'UPDATE payments.batches SET extra = \'{"in_excess": {"XOF": [1, "7"]}}\'': (
        "it has changed since its certificate"
    ),
}


@pytest.mark.parametrize(("change", "why"), UNSETTLED.items())
async def test_a_batch_that_is_not_settled_is_forgotten_by_its_name_alone(
    desk: Desk, client: Any, database: str, change: str, why: str
) -> None:
    await paid(desk, client, database)
    run(database, change)
    async with desk.database(database) as found:
        for options in ({}, {"dry_run": True}):
            assert [each.kept for each in await found.forget(0.0, **options)] == [why]
        assert run(database, TABLES) == [(4,)]
        assert [each.kept for each in await found.forget(0.0, unsettled=["june"])] == [None]
        assert run(database, TABLES) == [(0,)]


async def test_payouts_that_are_not_final_keep_a_batch(desk: Desk, client: Any, database: str) -> None:
    async with desk.open(database, client, batch_id="june") as batch:
        await batch.load(items(3))
        await batch.run()
        await batch.reconcile()
    async with desk.database(database) as found:
        assert [each.kept for each in await found.forget(0.0)] == ["3 of its payouts are not final"]


HELD = {
    "UPDATE payments.chunks SET expires = clock_timestamp() + interval '1 h' WHERE chunk = 0": (
        "a worker has a lease of it"
    ),
    "UPDATE payments.batches SET store = '1/1'": "its server is another since its last commit",
}


@pytest.mark.parametrize(("change", "why"), HELD.items())
async def test_a_batch_that_is_worked_on_or_has_moved_is_kept_also_by_its_name(
    desk: Desk, client: Any, database: str, change: str, why: str
) -> None:
    await paid(desk, client, database)
    run(database, change)
    async with desk.database(database) as found:
        assert [each.kept for each in await found.forget(0.0, unsettled=["june"])] == [why]
        assert (await found.batches())[0].state is BatchState.CLOSED


async def test_a_name_that_names_no_closed_batch_forgets_nothing(
    desk: Desk, client: Any, database: str
) -> None:
    await paid(desk, client, database)
    async with desk.open(database, client, batch_id="july") as batch:
        await batch.load(items(1))
    async with desk.database(database) as found:
        with pytest.raises(BulkError, match="batch july is not closed: nothing was forgotten"):
            await found.forget(0.0, unsettled=["june", "july"])
        with pytest.raises(BulkError, match="batch august is not there: nothing was forgotten"):
            await found.forget(0.0, unsettled=["june", "august"])
        with pytest.raises(BulkError, match="batch june was not closed so long ago: nothing was forgotten"):
            await found.forget(DAY, unsettled=["june"])
        for bad in (-1.0, float("inf"), "90d"):
            with pytest.raises(BulkError, match="closed_before must be a number of seconds"):
                await found.forget(bad)
        assert [each.state for each in await found.batches()] == [BatchState.IMPORTED, BatchState.CLOSED]
        await found.forget(0.0)
        with pytest.raises(BulkError, match="batch june was forgotten before"):
            await found.forget(0.0, unsettled=["june"])


async def test_what_cannot_be_dropped_leaves_the_batch_as_it_was(
    desk: Desk, client: Any, database: str
) -> None:
    """One transaction: the server refuses its last statement."""
    await paid(desk, client, database)
    ((table,),) = run(database, "SELECT tablename FROM pg_tables WHERE tablename ~ '^row_states_'")
    run(database, f"CREATE VIEW public.mine AS SELECT number FROM payments.{table}")
    async with desk.database(database) as found:
        with pytest.raises(LedgerBroken, match="2BP01"):
            await found.forget(0.0)
    async with desk.open(database, client, batch_id="june") as batch:
        assert (await batch.reconcile()).is_settled


async def test_a_batch_that_cannot_be_read_hides_no_other(desk: Desk, client: Any, database: str) -> None:
    for name in ("june", "july", "august"):
        await paid(desk, client, database, name)
    run(database, "UPDATE payments.batches SET schema = 4 WHERE batch_id = 'june'")
    run(database, "UPDATE payments.batches SET certificate = '7' WHERE batch_id = 'july'")
    async with desk.database(database) as found:
        kept = {each.batch_id: each.kept for each in await found.forget(0.0)}
    assert kept["june"].startswith("its form is number 4")
    assert (kept["july"], kept["august"]) == ("its certificate cannot be read", None)


async def test_of_two_operators_the_second_finds_it_forgotten(database: str) -> None:
    async with batch(database, 3) as ledger:
        run(database, "UPDATE payments.batches SET state = 'closed', closed = '{\"at\": 1}'")
        for kept in (None, "it is forgotten"):
            done = await forget(ledger.database, ledger.facts.batch, unsettled=True, dry_run=False)
            assert done.kept == kept


async def test_tables_of_another_user_are_not_dropped(desk: Desk, client: Any, database: str) -> None:
    await paid(desk, client, database)
    run(database, "CREATE ROLE clerk_2 LOGIN", "GRANT ALL ON SCHEMA payments TO clerk_2")
    run(database, "GRANT ALL ON ALL TABLES IN SCHEMA payments TO clerk_2")
    async with desk.database(database.replace("postgres:", "clerk_2:")) as found:
        for options in ({"dry_run": True}, {"unsettled": ["june"]}):
            (kept,) = await found.forget(0.0, **options)
            assert kept.kept == "its tables are another user's: forget it as the user that imported it"
    run(database, "DROP OWNED BY clerk_2", "DROP ROLE clerk_2")
    assert run(database, TABLES) == [(4,)]
