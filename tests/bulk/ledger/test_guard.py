"""The ledger keeps the digest of the guard under which a batch is run, in its chain."""

from __future__ import annotations

from decimal import Decimal

from payments_async.bulk._protocol.outcomes import ExtraPayout
from tests.support.places import BOTH, Place, begun, looked_at

EXTRA = {(ExtraPayout.IN_EXCESS, "XOF"): (1, Decimal("1.01"))}


@BOTH
async def test_the_guard_is_kept_beside_other_facts_and_covered_by_the_chain(path: Place) -> None:
    async with await begun(path) as ledger:
        entries = await ledger.latest_command()
        await ledger.note_guard("")
        assert await ledger.latest_command() == entries
        await ledger.note_guard("one")
        await ledger.note_extra(EXTRA)
    async with await looked_at(path) as ledger:
        assert (ledger.header.guard, ledger.header.extra) == ("one", EXTRA)
        assert (await ledger.check()).findings == ()
        await ledger.note_guard("")
        assert (ledger.header.guard, ledger.header.extra) == ("", EXTRA)
        assert (await ledger.check()).findings == ()


@BOTH
async def test_the_claimable_rows_are_those_that_are_claimed_next(path: Place) -> None:
    async with await begun(path, 5) as ledger:
        for count in (2, 2, 1):
            rows = await ledger.claimable(2)
            assert len(rows) == count
            assert [row.number for row in (await ledger.claim(2)).rows] == [row.number for row in rows]
        assert await ledger.claimable(2) == []
    async with await looked_at(path) as ledger:
        assert await ledger.claimable(2) == []
