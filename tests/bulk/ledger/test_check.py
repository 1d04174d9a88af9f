"""The check: it finds whatever was changed by another hand, wherever that is."""

from __future__ import annotations

import pytest

from tests.support.ledgers import call_off, counts
from tests.support.places import BOTH, Place, looked_at, tampered, worked_on

pytestmark = BOTH


TAMPERED = [
    ("UPDATE rows SET amount = '99' WHERE number = 4", ["row 4 is not as it was written", "rows rejected: "]),
    (
        "UPDATE rows SET body = (SELECT body FROM rows WHERE number = 5) WHERE number = 4",
        ["the body of row 4 is another"],
    ),
    ("UPDATE rows SET amount = 'many' WHERE number = 4", ["row 4 cannot be read"]),
    ("UPDATE row_states SET rank = 1 WHERE number = 4", ["row 4 is not as it was written"]),
    ("UPDATE row_states SET state = 'NEW' WHERE number = 4", ["row 4 is not as it was written"]),
    (
        "UPDATE row_states SET payout_end = 'arrived' WHERE number = 1",
        ["row 1 is not as it was written", "rows not final: 9 recorded", "rows arrived: 0 recorded"],
    ),
    (
        "DELETE FROM rows WHERE number = 4",
        ["30 rows were imported, 29 are there", "rows rejected: 9 recorded (XOF 90.90), 8 found"],
    ),
    (
        "DELETE FROM row_states WHERE number = 4",
        ["30 rows were imported, 29 are there", "the rows do not add up to what the chain says of them"],
    ),
    (
        "UPDATE entries SET changes = '[]' WHERE chunk = 1 AND number = 4",
        ["entry 4 of the chain is not as it was written"],
    ),
    (
        "UPDATE entries SET wall = wall + 1 WHERE chunk = 1 AND number = 4",
        ["entry 4 of the chain is not as it was written"],
    ),
    ("DELETE FROM entries WHERE chunk = 1 AND number = 4", ["entry 4 of the chain is missing"]),
    ("UPDATE chunks SET in_doubt = 2 WHERE chunk = 1", ["its counts are not those of its rows"]),
    (
        "UPDATE chunks SET totals = replace(totals, '\"101.00\"', '\"1\"')",
        ["rows not started: 10 recorded (XOF 1), 10 found (XOF 101"],
    ),
]


@pytest.mark.parametrize(("statement", "findings"), TAMPERED)
async def test_a_change_by_another_hand_is_found(path: Place, statement: str, findings: list[str]) -> None:
    await worked_on(path)
    async with await looked_at(path) as ledger:
        assert (await ledger.check()).findings == ()
    tampered(path, statement)
    async with await looked_at(path) as ledger:
        found = "; ".join((await ledger.check()).findings)
    for finding in findings:
        assert finding in found


async def test_a_whole_ledger_passes_its_check_and_any_change_moves_its_head(path: Place) -> None:
    await worked_on(path)
    async with await looked_at(path) as ledger:
        report = await ledger.check()
        assert (report.rows, report.findings, len(report.head)) == (30, (), 64)
        kinds = {"created": 9, "rejected": 9, "in_doubt": 1, "cancelled": 1, "not_started": 10}
        assert counts(ledger) == kinds
        await call_off(ledger, [29])
        again = await ledger.check()
        assert again.head != report.head
        assert again.entries == report.entries + 2  # one of the row's chunk, one of the batch


async def test_of_many_findings_a_hundred_are_reported(path: Place) -> None:
    await worked_on(path, 300)
    tampered(path, "UPDATE row_states SET failure_code = 'E' WHERE number < 290")
    async with await looked_at(path) as ledger:
        assert 100 <= len((await ledger.check()).findings) <= 102
