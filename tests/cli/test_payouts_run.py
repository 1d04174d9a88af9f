"""`payments payouts` from the file to the certificate, at a real sandbox over TCP."""

from __future__ import annotations

import csv
import os
import stat
from decimal import Decimal
from pathlib import Path

import pytest

from payments_async.sandbox import Sandbox
from tests.support.payout_command import PHONE, Exit, Here, assert_paid_once, payouts_file


def posts(sandbox: Sandbox) -> int:
    return sum(request.method == "POST" for request in sandbox.requests)


def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed is not wrapped."""
    for name, value in {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": "300"}.items():
        monkeypatch.setenv(name, value)


def test_a_file_is_paid_certified_and_examined_afterwards(here: Here) -> None:
    payouts_file(here.folder, 40)
    here.sandbox.on("payouts.create").outcome("complete manual", times=None)
    done = here("run", "june.csv")
    assert done.code == Exit.DONE
    assert_paid_once(here.sandbox, 40)

    totals = {"XCD": "548.89", "GHS": "273.91"}
    assert done.step("loaded")["totals"] == totals
    end = done.step("finished")
    assert (end["rows"]["created"], end["done"], end["rows"]["asked"], end["exit_code"]) == (40, 40, 40, 0)
    assert {currency: sums["created"] for currency, sums in end["sums"].items()} == totals
    assert {currency: sums["asked"] for currency, sums in end["sums"].items()} == totals
    assert (end["complete"], end["balanced"], end["stopped"]) == (True, True, None)
    assert end["next"].startswith("40 payouts are created, and not final yet: each may still fail.")
    assert done.err == f"payments: {end['next']}\n"
    certified = done.step("certified")
    assert (certified["clean"], certified["settled"], certified["list"]["seen"]) == (True, False, 40)
    assert stat.S_IMODE(Path("june.csv.ledger").stat().st_mode) == 0o600

    sent = posts(here.sandbox)
    again = here("run", "june.csv")
    assert (again.code, again.step("loaded")["is_new"]) == (Exit.DONE, False)
    assert here("reconcile", "june.csv.ledger").step("certified")["clean"] is True
    assert posts(here.sandbox) == sent

    os.environ.pop("PAYMENTS_API_KEY")  # monkeypatch puts it back; what only looks needs none
    looked = here("status", "june.csv.ledger", "--json").step("batch")
    assert (looked["running"], looked["rows"]["created"]) == (False, 40)
    assert looked["certificate"]["list"]["seen"] == 40
    assert here("watch", "june.csv.ledger").step("batch") == looked
    (listed,) = here("batches", "june.csv.ledger", "--json").lines
    assert (listed["rows"], listed["totals"], listed["state"]) == (40, totals, "certified")


def test_people_get_tables_of_what_programs_get_as_lines(here: Here) -> None:
    payouts_file(here.folder, 6)
    done = here("run", "june.csv", as_text=True)
    assert (done.code, "{" in done.out) == (Exit.DONE, False)
    assert "✓ Certified  the service's list shows 6 payouts as asked for" in done.out
    assert "Read       the list since 20" in done.out
    printed = here("status", "june.csv.ledger").out
    assert "✓ Batch      complete; certified 20" in printed
    assert "no process has rows in hand" in printed
    assert "Created 6 GHS 9.14 XCD 12.28" in " ".join(printed.split())
    assert "✓ Certified  " in here("run", "june.csv", as_text=True).out  # also by that of a minute ago
    assert "nothing to pay again" in here("retry-failed", "june.csv.ledger").out
    exported = here("export", "june.csv.ledger", "out.csv").out
    assert "6 rows, GHS 9.14, XCD 12.28; account data masked" in exported
    listed = " ".join(here("batches", "june.csv.ledger").out.split())
    assert ": certified; 6 rows, GHS 9.14, XCD 12.28; of 20" in listed


def test_refused_rows_end_with_1_are_exported_corrected_and_paid(here: Here) -> None:
    file = payouts_file(here.folder, 6)
    here.sandbox.on("payouts.create", amount="4.07").respond("http:422")
    done = here("run", "june.csv")
    assert (done.code, done.step("finished")["rows"]["rejected"]) == (Exit.REFUSED, 1)
    assert "export june.csv.ledger rejected.csv --state rejected" in done.err
    assert "--accept-edits" in done.err
    assert PHONE not in done.out + done.err
    assert "✗ Batch      complete, 1 rejected; certified" in here("status", "june.csv.ledger").out

    assert here("export", "june.csv.ledger", "to-check.csv", "--state", "rejected").code == Exit.DONE
    (row,) = csv.DictReader(Path("to-check.csv").read_text().splitlines())
    assert (row["row_key"], row["amount"], row["outcome"]) == ("r4", "4.07", "rejected")
    assert PHONE not in Path("to-check.csv").read_text()
    assert stat.S_IMODE(Path("to-check.csv").stat().st_mode) == 0o600
    again = here("export", "june.csv.ledger", "to-check.csv")
    again.assert_one_message(Exit.USAGE, "to-check.csv: exists already", "--overwrite")
    assert here("export", "june.csv.ledger", "to-check.csv", "--overwrite").code == Exit.DONE
    printed = here("export", "all.jsonl", "--ledger", "june.csv.ledger", "--accounts", "--json")
    assert printed.step("exported")["rows"] == 6
    assert Path("all.jsonl").read_text().count(PHONE) == 6

    file.write_text(file.read_text().replace("4.07", "4.70"))
    here("run", "june.csv").assert_one_message(Exit.USAGE, "row 4", "changed amount", "--accept-edits")
    preview = here("run", "june.csv", "--dry-run", "--json")
    assert (preview.code, preview.step("checked")["differing"]) == (Exit.REFUSED, 1)
    mended = here("run", "june.csv", "--accept-edits")
    assert (mended.code, mended.step("loaded")["corrected"]) == (Exit.DONE, 1)
    assert sorted(entry.amount for entry in here.sandbox.books.payouts())[3] == Decimal("4.70")


def test_a_limit_ends_with_75_until_it_is_raised(here: Here) -> None:
    payouts_file(here.folder, 30)
    first = here("run", "june.csv", "--max-rows", "10")
    end = first.step("finished")
    assert (first.code, end["rows"]["created"], end["resumable"]) == (Exit.RESUMABLE, 10, "after_change")
    assert "--max-rows" in first.err
    assert here("run", "june.csv", "--max-amount", "40").code == Exit.RESUMABLE
    assert here("run", "june.csv", "--max-rows", "30").code == Exit.DONE
    assert_paid_once(here.sandbox, 30)


def test_too_many_failures_pause_the_batch(here: Here) -> None:
    payouts_file(here.folder, 60)
    here.sandbox.on("payouts.create").respond("http:422", times=30)
    stopped = here("run", "june.csv", "--max-failure-rate", "0.5", "--concurrency", "1")
    assert stopped.code == Exit.RESUMABLE
    assert "`payments payouts resume june.csv.ledger` first" in stopped.err
    assert "; paused: " in here("status", "june.csv.ledger").out


def test_rows_in_doubt_end_with_3(here: Here) -> None:
    payouts_file(here.folder, 5)
    here.sandbox.on("payouts.create", amount="3.07").respond("http:503", times=50)
    done = here("run", "june.csv", "--patience", "0")
    done.assert_one_message(
        Exit.OUTCOME_UNKNOWN, "1 row in doubt: the same `run` command posts them once more"
    )
    assert here("reconcile", "june.csv.ledger").code == Exit.OUTCOME_UNKNOWN
    printed = here("status", "june.csv.ledger")
    assert (printed.code, "1 row in doubt" in printed.out) == (Exit.DONE, True)
    assert "· Batch      not complete" in printed.out


def test_payouts_that_fail_later_are_followed_and_paid_anew(here: Here) -> None:
    payouts_file(here.folder, 3)
    here.sandbox.on("payouts.create", amount="2.07").outcome("fail:RECIPIENT_ERROR immediate", times=1)
    here.sandbox.on("payouts.create").outcome("complete immediate")
    done = here("run", "june.csv", "--wait-final", "30s")
    ended = done.step("finished")["rows"]
    assert (done.code, ended["failed"], ended["not_final"]) == (1, 1, 0)
    assert "payments payouts retry-failed june.csv.ledger" in done.err
    assert "`payments payouts export june.csv.ledger failed.csv --state failed` lists them" in done.err
    for state, rows in (("failed", 1), ("arrived", 2), ("not-final", 0), ("created", 3), ("in_doubt", 0)):
        exported = here("export", "june.csv.ledger", f"{state}.csv", "--state", state, "--json")
        assert (exported.code, exported.step("exported")["rows"]) == (Exit.DONE, rows)
    dry = here("retry-failed", "june.csv.ledger", "--dry-run", "--json")
    assert (dry.step("retry")["rows"], dry.step("retry")["totals"]) == ([2], {"XCD": "2.07"})
    assert dry.step("retry")["reasons"] == {"2": "r2, XCD 2.07: RECIPIENT_ERROR"}
    assert "row 2: r2, XCD 2.07: RECIPIENT_ERROR" in here("retry-failed", "june.csv.ledger", "--dry-run").out
    settled = here("reconcile", "june.csv.ledger")
    assert (settled.code, settled.step("certified")["clean"]) == (Exit.REFUSED, True)
    assert "1 payout failed for good" in settled.err
    assert here("status", "june.csv.ledger", "--json").step("batch")["rows"]["not_started"] == 0
    assert here("retry-failed", "june.csv.ledger", "--row", "2", "--confirm-total", "XCD 2.08").code == 2
    retried = here("retry-failed", "june.csv.ledger", "--row", "2")
    assert (retried.code, "1 row, XCD 2.07" in retried.out) == (Exit.DONE, True)
    (listed,) = here("batches", "june.csv.ledger", "--json").lines
    assert listed["state"] == "open", "its certificate is not of the payout that is made now"
    assert here("run", "june.csv", "--wait-final", "30s").code == Exit.DONE
    assert sorted(entry.amount for entry in here.sandbox.books.payouts()) == [
        Decimal(text) for text in ("1.07", "2.07", "2.07", "3.07")
    ]


def test_a_dry_run_reads_everything_and_leaves_nothing(here: Here) -> None:
    done = here("run", "june.csv", "--dry-run")
    assert (done.code, done.step("checked")["rows"]) == (Exit.DONE, 4)
    assert here.sandbox.requests == []
    assert os.listdir(here.folder) == ["june.csv"]
    os.environ.pop("PAYMENTS_API_KEY")
    assert here("run", "june.csv", "--dry-run").code == Exit.DONE
    here("run", "--ledger", "june.ledger", "--dry-run").assert_one_message(Exit.USAGE, "FILE is missing")
    seen = " ".join(here("run", "june.csv", "--dry-run", as_text=True).out.split())
    assert "✓ Checked 4 payouts, GHS 3.07, XCD 7.21" in seen
    assert "✗ Warning a live key needs a batch id here" in seen
    assert "a live key wants --confirm-total 'GHS 3.07' --confirm-total 'XCD 7.21'" in seen


def test_a_dry_run_of_an_edited_file_shows_both_totals_and_what_to_do(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = payouts_file(here.folder, 4)
    here.sandbox.on("payouts.create", amount="4.07").respond("http:422")
    assert here("run", "june.csv").code == Exit.REFUSED
    file.write_text(file.read_text().replace("4.07", "40.07"))
    checked = here("run", "june.csv", "--dry-run").step("checked")
    assert checked["totals"] == {"GHS": "3.07", "XCD": "7.21"}
    assert checked["input_totals"] == {"GHS": "3.07", "XCD": "43.21"}
    wide_terminal(monkeypatch)
    dry = here("run", "june.csv", "--dry-run", as_text=True)
    assert dry.code == Exit.REFUSED
    seen = " ".join(dry.out.split())
    assert "the ledger has 4 payouts, GHS 3.07, XCD 7.21" in seen
    assert "the file as it is now comes to GHS 3.07, XCD 43.21" in seen
    assert "row 4" in seen
    assert "--accept-edits" in seen


def test_a_file_is_read_from_its_header_on_and_with_its_delimiter(here: Here) -> None:
    field = Path(__file__).parents[1] / "bulk" / "sources" / "field"
    here("run", field / "comments.csv", "--dry-run").assert_one_message(Exit.USAGE, "--header-row 2")
    for file, *options in (
        ("comments.csv", "--header-row", "2"),
        ("file.tsv", "--delimiter", "tab"),
        ("pandas_index.csv", "--map", "="),
    ):
        assert here("run", field / file, "--dry-run", *options).code == Exit.DONE
    assert "line 3, the row is struck out" in here("run", field / "strike.xlsx", "--dry-run").out
    for wrong in (("--header-row", "0"), ("--delimiter", "semicolon")):
        assert here("run", field / "comments.csv", "--dry-run", *wrong).code == Exit.USAGE


@pytest.mark.parametrize("dry", [["--dry-run"], []])
def test_rows_with_faults_are_left_out_on_purpose_and_written_down(
    here: Here, dry: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, name = payouts_file(here.folder, 3), "checked" if dry else "loaded"
    asked = ["run", "june.csv", "--skip-invalid", "--rejects", "rejects.csv"]
    assert here(*asked, "--dry-run").step("checked")["rejects"] is None  # no row is at fault
    file.write_text(file.read_text().replace("2.07", "NaN"))
    done = here(*asked, *dry)
    assert (done.code, done.step(name)["skipped"]) == (Exit.DONE, 1)
    assert done.step(name)["rejects"] == "rejects.csv"
    assert "NaN" in Path("rejects.csv").read_text()
    assert len(here.sandbox.books.payouts()) == (0 if dry else 2)
    Path("june.csv.ledger").unlink(missing_ok=True)
    wide_terminal(monkeypatch)
    printed = here(*asked, *dry, as_text=True).out
    assert "1 row with faults left out\n  ✓ Written    rejects.csv\n" in printed
    Path("june.csv.ledger").unlink(missing_ok=True)
    refused = here("run", "june.csv", "--skip-invalid", "--rejects", "no/where.csv", *dry)
    refused.assert_one_message(Exit.USAGE, "no/where.csv (No such file or directory)", "nothing was sent")
    assert refused.step("refused")["exit_code"] == Exit.USAGE


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
