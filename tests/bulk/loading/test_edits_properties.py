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
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from payments_async import Instrument
from payments_async.bulk import ImportReport, LedgerOfAnotherInput, RowState
from payments_async.bulk._ledger.ledger import Ledger
from payments_async.bulk._loading import load
from payments_async.bulk._loading.load import LoadSettings
from payments_async.bulk._loading.new_rows import RowIdentifiers
from payments_async.bulk._protocol.records import LedgerRow, RowOutcome
from payments_async.bulk._protocol.row_state import confirm, contradict, doubt, refuse
from payments_async.bulk._protocol.stop_rules import Account
from payments_async.bulk._report import report_of
from payments_async.bulk.sources import IterableSource, Row
from tests.support.batches import Item, item
from tests.support.ledgers import Clock, all_rows
from tests.support.places import Place, begun, chain_of, opened, planned

_S = RowState
NAMES = itertools.count(1)
PLACE = Account("sandbox", "https://api.example.test/v1", "key-1")
OUTCOMES = {
    _S.CREATED: lambda known: confirm(known, "po_1"),
    _S.REJECTED: refuse,
    _S.CONFLICT: contradict,
    _S.IN_DOUBT: doubt,
}
SENT = st.sampled_from([*OUTCOMES, _S.IN_FLIGHT])
EDITS = st.sampled_from(["kept", "amount", "phone", "currency", "removed"])


@attrs.frozen
class Story:
    """The states of the rows that were sent, what becomes of each row in the input, and rows added to it."""

    sent: list[RowState]
    edits: list[str]
    added: int
    shuffled: bool

    @property
    def states(self) -> dict[int, RowState]:
        states = [*self.sent, *[_S.NEW] * len(self.edits)]
        return {number: states[number - 1] for number in range(1, len(self.edits) + 1)}

    def edited(self) -> list[Item]:
        rows = [_edited(number, edit) for number, edit in enumerate(self.edits, 1) if edit != "removed"]
        rows += [item(100 + number) for number in range(self.added)]
        return rows[::-1] if self.shuffled else rows

    def refused(self) -> int:
        """Differences that no operator may have."""
        allowed = {"removed": {_S.NEW}, "kept": {*_S}}
        states = self.states
        each = (states[n] in allowed.get(e, {_S.NEW, _S.REJECTED}) for n, e in enumerate(self.edits, 1))
        return self.added + sum(not fine for fine in each)


def _edited(number: int, edit: str) -> Item:
    if edit == "amount":
        return item(number, amount=Decimal(number) + Decimal("1000.55"))
    if edit == "currency":
        return item(number, currency="GHS")
    return (
        item(number, instrument=Instrument.phone("+22990000001", "BJ")) if edit == "phone" else item(number)
    )


STORIES = st.integers(1, 6).flatmap(
    lambda rows: st.builds(
        Story,
        sent=st.lists(SENT, max_size=rows),
        edits=st.lists(EDITS, min_size=rows, max_size=rows).filter(lambda edits: {*edits} != {"removed"}),
        added=st.sampled_from([0, 0, 0, 1]),
        shuffled=st.booleans(),
    )
)


@given(STORIES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_edits_are_taken_over_whole_or_not_at_all(story: Story) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_played(Path(folder) / "ledger", story, "story"))


@given(STORIES)
@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_in_a_database_too(database: str, story: Story) -> None:
    asyncio.run(_played(database, story, f"story-{next(NAMES)}"))


async def _played(place: Place, story: Story, name: str) -> None:
    async with await opened(place, create=True, batch_id=name) as ledger:
        await _load(ledger, name, [item(number) for number in range(1, len(story.edits) + 1)])
        await planned(ledger)
    async with await opened(place, batch_id=name) as ledger:
        await _send(ledger, story.sent)
        before = {row.number: row for row in await all_rows(ledger)}
        assert {number: row.state for number, row in before.items()} == story.states
        chain = await chain_of(ledger)
        if refused := story.refused():
            with pytest.raises(LedgerOfAnotherInput) as caught:
                await _load(ledger, name, story.edited(), accept_edits=True)
            assert caught.value.total == refused
            assert {row.number: row for row in await all_rows(ledger)} == before
            assert await chain_of(ledger) == chain
            return
        report = await _load(ledger, name, story.edited(), accept_edits=True)
        edits = [edit for edit in story.edits if edit not in ("kept", "removed")]
        assert (report.corrected, report.cancelled) == (len(edits), story.edits.count("removed"))
        await _assert_taken_over(ledger, story, before)
    async with await opened(place, Clock("second"), batch_id=name) as ledger:
        chain = await chain_of(ledger)
        await _load(ledger, name, story.edited(), accept_edits=True)
        assert await chain_of(ledger) == chain


async def _load(ledger: Ledger, name: str, rows: list[Item], *, accept_edits: bool = False) -> ImportReport:
    wishes = LoadSettings(batch_id=name, accept_edits=accept_edits, pay_again=True)
    return await load.load(ledger, PLACE, IterableSource(rows), wishes)


async def _send(ledger: Ledger, states: list[RowState]) -> None:
    if states:
        sent = zip((await ledger.claim(len(states))).rows, states, strict=True)
        await ledger.record(
            RowOutcome(row.number, OUTCOMES[state](row.known)) for row, state in sent if state in OUTCOMES
        )


async def _assert_taken_over(ledger: Ledger, story: Story, before: Mapping[int, LedgerRow]) -> None:
    after = {row.number: row for row in await all_rows(ledger)}
    keys = [row.idempotency_key for row in (*before.values(), *after.values())]
    for number, edit in enumerate(story.edits, 1):
        row, was = after[number], before[number]
        assert row.reference == was.reference
        if edit == "kept":
            assert row == was
        elif edit == "removed":
            assert (row.state, row.body) == (_S.CANCELLED, was.body)
        else:
            wanted = _edited(number, edit)[1]
            assert (row.state, row.amount, row.currency) == (_S.NEW, wanted.amount, wanted.currency)
            assert keys.count(row.idempotency_key) == 1
            assert row.known.revision == was.known.revision + 1
    report = report_of(ledger.header, ledger.totals)
    sums: dict[str, Decimal] = {}
    for row in after.values():
        sums[row.currency] = sums.get(row.currency, Decimal(0)) + row.amount
    assert report.balanced
    assert report.totals == sums
    assert (await ledger.check()).findings == ()


async def test_no_row_asks_for_a_reference_that_is_too_long_with_its_generation(tmp_path: Path) -> None:
    naming = RowIdentifiers("sandbox", "batch-1")
    async with await begun(tmp_path / "ledger", 1) as ledger:
        (stored,) = await all_rows(ledger)
    retried = attrs.evolve(stored, known=attrs.evolve(stored.known, generation=1), reference="r~g1")
    row = Row(1, 2, "row-1", "r", item(1)[1])
    assert naming.keeps_reference(row, retried)
    assert not naming.keeps_reference(attrs.evolve(row, reference="x" * 190), retried)
    assert not naming.keeps_reference(attrs.evolve(row, reference=None), retried)
