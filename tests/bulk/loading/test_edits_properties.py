"""Whatever the input was and became, wherever its rows stood: all edits or none, and nothing sent moves."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import attrs
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncConnection

from payments_async import Instrument
from payments_async.bulk import LedgerOfAnotherInput, PayoutBatch, RowState
from payments_async.bulk._ledger.tables import rows as table
from payments_async.bulk._protocol.identifiers import body_hash, identity_of
from payments_async.bulk._protocol.records import LedgerRow
from payments_async.sandbox import Sandbox
from tests.support.batches import Item, in_process, item, ledger_rows
from tests.support.places import Place

_S = RowState
NAMES = itertools.count(1)
FREE = (_S.NEW, False)
STATES = st.tuples(st.sampled_from([state for state in _S if state is not _S.CANCELLED]), st.booleans())
"""The state of a row, and whether something may have been sent for it of which nothing is proven."""
EDITS = st.sampled_from(["kept", "amount", "phone", "currency", "removed"])


@attrs.frozen
class Story:
    """Where the first rows stand, what becomes of each row in the input, and rows added to it."""

    stand: list[tuple[RowState, bool]]
    edits: list[str]
    added: int
    shuffled: bool

    def edited(self) -> list[Item]:
        rows = [_edited(number, edit) for number, edit in enumerate(self.edits, 1) if edit != "removed"]
        rows += [item(100 + number) for number in range(self.added)]
        return rows[::-1] if self.shuffled else rows

    def refused(self) -> int:
        allowed = {"removed": [FREE], "kept": [*itertools.product(_S, [False, True])]}
        stand = [*self.stand, *[FREE] * len(self.edits)]
        fine = (
            where in allowed.get(edit, [FREE, (_S.REJECTED, False)])
            for where, edit in zip(stand, self.edits, strict=False)
        )
        return self.added + sum(not each for each in fine)


def _edited(number: int, edit: str) -> Item:
    if edit == "amount":
        return item(number, amount=Decimal(number) + Decimal("1000.55"))
    if edit == "currency":
        return item(number, currency="GHS")
    return (
        item(number, instrument=Instrument.phone("+2290190000001", "BJ")) if edit == "phone" else item(number)
    )


STORIES = st.integers(1, 6).flatmap(
    lambda rows: st.builds(
        Story,
        stand=st.lists(STATES, max_size=rows),
        edits=st.lists(EDITS, min_size=rows, max_size=rows).filter(lambda edits: {*edits} != {"removed"}),
        added=st.sampled_from([0, 0, 0, 1]),
        shuffled=st.booleans(),
    )
)


@given(STORIES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_edits_are_taken_over_whole_or_not_at_all(story: Story) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_played(Path(folder) / "ledger", story))


@given(STORIES)
@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_in_a_database_too(database: str, story: Story) -> None:
    asyncio.run(_played(database, story))


async def _played(place: Place, story: Story) -> None:
    with Sandbox() as sandbox:
        async with (
            in_process(sandbox) as client,
            PayoutBatch.open(place, client, batch_id=f"story-{next(NAMES)}") as batch,
        ):
            await batch.load([item(number) for number in range(1, len(story.edits) + 1)], pay_again=True)
            await _stand(batch, story.stand)
            before = {row.number: row for row in await ledger_rows(batch)}
            facts = attrs.evolve(await batch.facts(), now=0.0)
            if refused := story.refused():
                with pytest.raises(LedgerOfAnotherInput) as caught:
                    await batch.load(story.edited(), accept_edits=True, pay_again=True)
                assert caught.value.total == refused
                assert {row.number: row for row in await ledger_rows(batch)} == before
                assert attrs.evolve(await batch.facts(), now=0.0) == facts
                return
            report = await batch.load(story.edited(), accept_edits=True, pay_again=True)
            edits = [edit for edit in story.edits if edit not in ("kept", "removed")]
            assert (report.corrected, report.cancelled) == (len(edits), story.edits.count("removed"))
            await _assert_taken_over(batch, story, before)
            after = await ledger_rows(batch)
            again = await batch.load(story.edited(), accept_edits=True)
            assert (again.corrected, again.cancelled, await ledger_rows(batch)) == (0, 0, after)


async def _stand(batch: PayoutBatch, stand: list[tuple[RowState, bool]]) -> None:
    """Leave the first rows as processes may leave them."""

    async def work(connection: AsyncConnection) -> None:
        for row, (state, doubted) in zip(found, stand, strict=False):
            facts = {"state": state.value, "doubted": doubted}
            await connection.execute(sa.update(table).where(table.c.id == row.id).values(**facts))

    found = await ledger_rows(batch)
    await batch._ledger.database.write(work)


async def _assert_taken_over(batch: PayoutBatch, story: Story, before: Mapping[int, LedgerRow]) -> None:
    after = {row.number: row for row in await ledger_rows(batch)}
    binding = (await batch.facts()).binding
    for number, edit in enumerate(story.edits, 1):
        row, was = after[number], before[number]
        keys = {identity_of(each, binding).idempotency_key(body_hash(each.body)) for each in (row, was)}
        assert row.reference == was.reference
        if edit == "kept":
            assert row == was
        elif edit == "removed":
            assert (row.state, row.body) == (_S.CANCELLED, was.body)
        else:
            wanted = _edited(number, edit)[1]
            assert (row.state, row.amount, row.currency) == (_S.NEW, wanted.amount, wanted.currency)
            assert (len(keys), row.revision) == (2, was.revision + 1)
    report = await batch.status()
    sums: dict[str, Decimal] = {}
    for row in after.values():
        sums[row.currency] = sums.get(row.currency, Decimal(0)) + row.amount
    assert report.is_balanced
    assert report.totals == sums
