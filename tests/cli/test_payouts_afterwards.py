"""How `reconcile` and `retry-failed` end: 0 only when nothing is left to do."""

from __future__ import annotations

import pytest

from tests.support.payout_command import Exit, Here, payouts_file


@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_a_row_that_was_asked_for_and_is_left_ends_retry_failed_with_1(here: Here, dry: list[str]) -> None:
    payouts_file(here.folder, 2)
    here.sandbox.on("payouts.create").outcome("complete immediate")
    here("run", "june.csv")
    assert here("reconcile", "june.csv.ledger").code == Exit.DONE
    done = here("retry-failed", "june.csv.ledger", "--row", "1", *dry, "--json")
    assert (done.code, done.step("retry")["rows"]) == (Exit.REFUSED, [])
    assert done.step("retry")["left"] == [{"number": 1, "reason": "its payout is completed"}]
    assert "no row can be taken" in here("retry-failed", "june.csv.ledger", "--row", "1", *dry).out
    assert here("retry-failed", "june.csv.ledger", *dry).code == Exit.DONE


def test_payouts_that_are_known_to_have_failed_end_every_later_run_with_1(here: Here) -> None:
    payouts_file(here.folder, 3)
    here.sandbox.on("payouts.create", amount="2.07").outcome("fail:RECIPIENT_ERROR immediate")
    here.sandbox.on("payouts.create").outcome("complete immediate")
    assert here("run", "june.csv", "--wait-final", "30s").code == Exit.REFUSED
    again = here("run", "june.csv")
    end = again.step("finished")
    assert (again.code, end["exit_code"], end["rows"]["failed"], end["ok"]) == (Exit.REFUSED, 1, 1, False)
    assert "1 payout failed for good" in again.err
    looked = here("status", "june.csv.ledger", "--json")
    assert (looked.code, looked.step("batch")["rows"]["failed"]) == (Exit.DONE, 1)
    printed = here("status", "june.csv.ledger").out
    assert "✗ Batch      complete, 1 failed; certified 20" in printed
    assert "clean, settled" in " ".join(printed.split())
    rows = [line.split() for line in printed.splitlines()]
    assert ["arrived", "2", "3.07", "1.07"] in rows
    assert ["failed", "1", "2.07"] in rows
    assert looked.step("batch")["sums"] == end["sums"]


def test_a_turned_payout_is_told_once_by_the_command_that_read_it_and_recorded(here: Here) -> None:
    payouts_file(here.folder, 3)
    here.sandbox.on("payouts.create").outcome("complete immediate")
    assert here("run", "june.csv", "--wait-final", "30s").code == Exit.DONE
    payout = here.sandbox._core.world.tenants[here.sandbox.api_key].payouts[0]
    payout.status = "reversed"
    for turns in (1, 0):
        done = here("reconcile", "june.csv.ledger")
        said = done.step("certified")
        assert (done.code, said["clean"], len(said["list"]["turns"])) == (Exit.REFUSED, True, turns)
        assert [done.step("finished")["rows"][word] for word in ("arrived", "returned")] == [2, 1]
    assert here("run", "june.csv").code == Exit.REFUSED
    payout.status = "completed"
    shown = here("reconcile", "june.csv.ledger", as_text=True)
    assert (shown.code, "Turned" in shown.out) == (Exit.DONE, True)
    assert here("run", "june.csv").code == Exit.DONE
