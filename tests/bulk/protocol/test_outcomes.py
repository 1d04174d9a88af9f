"""What became of rows, in one word each: counted and summed exactly, chosen by an export; exit codes."""

from __future__ import annotations

import json
from decimal import Decimal

import attrs
import pytest

from payments_async.bulk import Certificate, Outcome, PayoutBatch
from payments_async.bulk._protocol.exit_codes import Stop, exit_code, resumable
from payments_async.bulk._protocol.outcomes import (
    OF_STATE,
    RowState,
    RowTotals,
    outcomes_of,
)
from payments_async.bulk._run.stopping import too_many_failures
from payments_async.models.statuses import PayoutEnd
from tests.support.batches import item, items
from tests.support.places import EITHER
from tests.support.rows import ledger_row


@pytest.mark.parametrize("state", RowState)
@pytest.mark.parametrize("end", PayoutEnd)
@pytest.mark.parametrize("had_arrived", [False, True])
def test_every_row_has_one_outcome_which_its_state_allows(
    state: RowState, end: PayoutEnd, had_arrived: bool
) -> None:
    row = attrs.evolve(ledger_row(), state=state, payout_end=end, had_arrived=had_arrived)
    assert [outcome for outcome in Outcome if row.outcome in outcomes_of([outcome])] == [row.outcome]
    assert row.outcome in OF_STATE[row.state]
    assert (row.outcome in outcomes_of(["created"])) == (row.state is RowState.CREATED)
    assert row.outcome in outcomes_of(["asked"])


@EITHER
async def test_a_batch_whose_sum_has_more_digits_than_a_database_adds_is_exact(batch: PayoutBatch) -> None:
    amounts = [Decimal("999999999.999999999")] * 12 + [
        Decimal("1.000000001"),
        Decimal(999_999_999_999_999_999),
    ]
    await batch.load([item(number, amount=amount) for number, amount in enumerate(amounts, 1)])
    await batch.limit(max_amount="2000000000")
    half = await batch.run()
    assert (half.is_balanced, half.counts["created"]) == (True, 2)
    await batch.limit()
    report = await batch.run()
    assert (report.is_balanced, report.exit_code) == (True, 0)
    assert report.totals == {"XCD": Decimal("1000000011999999999.999999989")}
    assert report.sums["XCD"]["created"] == report.totals["XCD"]


async def test_a_certificate_that_is_not_clean_always_says_why(batch: PayoutBatch) -> None:
    await batch.load(items(3))
    await batch.limit(max_rows=2)
    await batch.run()
    half = await batch.reconcile()
    assert not half.is_clean
    assert half.findings == ("the batch is not complete: of 3 rows, 1 not started",)
    await batch.limit()
    await batch.run()
    whole = await batch.reconcile()
    assert (whole.is_clean, whole.findings) == (True, ())
    unbalanced: Certificate = attrs.evolve(whole, report=attrs.evolve(whole.report, is_balanced=False))
    assert not unbalanced.is_clean
    (finding,) = unbalanced.findings
    assert "does not add up" in finding
    said = json.loads(unbalanced.to_json())
    assert (said["clean"], said["findings"]) == (False, [finding])


AMOUNT = Decimal("10.10")


def tally(**counts: int) -> RowTotals:
    """So many rows of each outcome, each of 10.10 XCD."""
    return {(Outcome(outcome), "XCD"): (count, AMOUNT * count) for outcome, count in counts.items()}


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ({}, 0),
        ({"not_final": 3}, 0),
        ({"not_final": 1, "arrived": 2}, 0),
        ({"arrived": 2, "failed": 1}, 1),
        ({"arrived": 2, "returned": 1}, 1),
        ({"not_final": 3, "rejected": 1}, 1),
        ({"not_final": 3, "conflict": 1}, 1),
        ({"not_final": 3, "cancelled": 1}, 1),
        ({"not_final": 3, "in_doubt": 1}, 3),
        ({"rejected": 3, "in_doubt": 1}, 3),
        ({"not_final": 3, "not_started": 1}, 75),
        ({"not_final": 3, "under_way": 1}, 75),
        ({"in_doubt": 3, "not_started": 1}, 75),
    ],
)
def test_how_a_run_ends(counts: dict[str, int], code: int) -> None:
    assert exit_code(tally(**counts)) == code


@pytest.mark.parametrize(
    ("stop", "code", "when"),
    [
        (None, 75, "now"),
        (Stop.TEMPORARY, 75, "now"),
        (Stop.RULE, 75, "after_change"),
        (Stop.NO_ACCESS, 2, "after_change"),
        (Stop.NOT_THE_SERVICE, 2, "after_change"),
    ],
)
def test_what_stopped_a_run_says_when_it_can_go_on(stop: Stop | None, code: int, when: str) -> None:
    assert (exit_code(tally(not_started=1), stop=stop), resumable(stop)) == (code, when)
    assert exit_code(tally(under_way=1), stop=stop) == code
    assert exit_code(tally(in_doubt=1), stop=stop) == 3  # that money may have moved matters more
    assert exit_code(tally(not_final=1), stop=stop) == 0
    assert exit_code(tally(not_final=1), stop=stop, extra=True) == 1


@pytest.mark.parametrize(
    ("rate", "decided", "failed", "pauses"),
    [
        (None, 1000, 990, False),
        (0.1, 19, 19, False),  # too few to tell
        (0.1, 20, 2, False),
        (0.1, 20, 3, True),
        (0.0, 20, 1, True),
        (1.0, 20, 20, False),
    ],
)
def test_failures_pause_a_batch_once_there_are_enough_rows_to_tell(
    rate: float | None, decided: int, failed: int, pauses: bool
) -> None:
    reason = f"{failed} of {decided} rows rejected, more than --max-failure-rate allows"
    assert too_many_failures(rate, decided, failed) == (reason if pauses else None)
