"""`payments payouts` from the file to the certificate, at a real sandbox over TCP."""

from __future__ import annotations

import csv
import json
import os
import re
import stat
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_async._cli._exit_codes import Exit
from payments_async._cli._output import OutputConsole
from payments_async._cli.payouts import command_context
from payments_async.bulk._engine import sender
from payments_async.bulk._engine.service import Service
from payments_async.models import Pagination
from payments_async.sandbox import Sandbox
from tests.support.payout_command import PHONE, Here, assert_paid_once, payouts_file, totals_of


def posts(sandbox: Sandbox) -> int:
    """How many requests asked for a payout."""
    return sum(request.method == "POST" for request in sandbox.requests)


@pytest.mark.parametrize("command", ["run", "reconcile"])
def test_without_the_flag_the_output_is_text_also_in_a_pipe(here: Here, command: str) -> None:
    payouts_file(here.folder, 3)
    done = here("run", "june.csv", as_text=True)
    if command == "reconcile":
        done = here("reconcile", "june.csv.ledger", as_text=True)
    assert done.code == Exit.DONE
    assert "{" not in done.out
    assert "✓ Certified" in done.out
    assert re.search(r"Created +3 ", done.out)


def test_a_file_is_paid_certified_and_examined_afterwards(here: Here) -> None:
    payouts_file(here.folder, 40)
    here.sandbox.on("payouts.create").outcome("complete manual", times=None)
    done = here("run", "june.csv")
    assert done.code == Exit.DONE
    assert_paid_once(here.sandbox, 40)

    totals = {currency: str(amount) for currency, amount in totals_of(40).items()}
    assert done.step("loaded")["totals"] == totals
    end = done.step("finished")
    assert (end["rows"]["created"], end["done"], end["rows"]["asked"], end["exit_code"]) == (40, 40, 40, 0)
    assert {currency: sums["created"] for currency, sums in end["sums"].items()} == totals
    assert {currency: sums["asked"] for currency, sums in end["sums"].items()} == totals
    assert (end["complete"], end["balanced"], end["stopped"]) == (True, True, None)
    assert end["next"].startswith("40 payouts are created, and not final yet: each may still fail.")
    assert done.err == f"payments: {end['next']}\n"

    certificate = here.folder / end["certificate"]
    assert json.loads(certificate.read_text())["clean"]
    assert certificate.name == "june.csv.ledger.certificate.json"
    assert stat.S_IMODE(certificate.stat().st_mode) == 0o600

    sent = posts(here.sandbox)
    again = here("run", "june.csv", "--json")
    assert (again.code, again.step("loaded")["is_new"]) == (Exit.DONE, False)
    settled = here("reconcile", "june.csv.ledger", "--certificate", "later.json")
    assert (settled.code, settled.step("certified")["path"]) == (Exit.DONE, "later.json")
    assert json.loads(Path("later.json").read_text())["clean"]
    assert posts(here.sandbox) == sent

    os.environ.pop("PAYMENTS_API_KEY")  # monkeypatch puts it back; what only looks needs none
    looked = here("status", "june.csv.ledger", "--json")
    assert (looked.code, looked.step("batch")["running"], looked.step("batch")["rows"]["created"]) == (
        0,
        False,
        40,
    )
    checked = here("check", "june.csv.ledger", "--json")
    assert (checked.code, checked.step("check")["findings"], checked.step("check")["rows"]) == (0, [], 40)


def test_people_get_tables_of_what_programs_get_as_lines(here: Here) -> None:
    payouts_file(here.folder, 6)
    assert here("run", "june.csv").code == Exit.DONE
    printed = here("status", "june.csv.ledger").out
    assert "✓ Batch      complete; no run is under way" in printed
    assert [line.split() for line in printed.splitlines() if "Created" in line] == [
        ["Created", "6", "9.14", "12.28"]
    ]
    assert "as it was written" in here("check", "june.csv.ledger").out
    assert "nothing to pay again" in here("retry-failed", "june.csv.ledger").out
    here("run", "june.csv", "--batch-id", "short")  # refused: it is another batch
    assert (
        "6 rows, GHS 9.14, XOF 12.28; account data masked" in here("export", "june.csv.ledger", "out.csv").out
    )


def test_refused_rows_end_with_1_are_exported_corrected_and_paid(here: Here) -> None:
    file = payouts_file(here.folder, 6)
    here.sandbox.on("payouts.create", amount="4.07").respond("http:422")
    done = here("run", "june.csv")
    assert (done.code, done.step("finished")["rows"]["rejected"]) == (Exit.REFUSED, 1)
    assert "export june.csv.ledger to-check.csv --state rejected" in done.err
    assert "--accept-edits" in done.err
    assert PHONE not in done.out + done.err
    assert "✗ Batch      complete, 1 rejected; no run is under way" in here("status", "june.csv.ledger").out

    assert here("export", "june.csv.ledger", "to-check.csv", "--state", "rejected").code == Exit.DONE
    (row,) = csv.DictReader(Path("to-check.csv").read_text().splitlines())
    assert (row["row_key"], row["amount"], row["outcome"]) == ("r4", "4.07", "rejected")
    assert PHONE not in Path("to-check.csv").read_text()
    assert stat.S_IMODE(Path("to-check.csv").stat().st_mode) == 0o600
    again = here("export", "june.csv.ledger", "to-check.csv")
    again.assert_one_message(Exit.USAGE, "to-check.csv: exists already", "--overwrite")
    assert here("export", "june.csv.ledger", "to-check.csv", "--overwrite").code == Exit.DONE
    printed = here("export", "june.csv.ledger", "all.jsonl", "--accounts", "--json")
    assert printed.step("exported")["rows"] == 6
    assert Path("all.jsonl").read_text().count(PHONE) == 6

    file.write_text(file.read_text().replace("4.07", "4.70"))
    refused = here("run", "june.csv")
    refused.assert_one_message(Exit.USAGE, "row 4", "changed amount", "--accept-edits")
    preview = here("run", "june.csv", "--dry-run", "--json")
    assert (preview.code, preview.step("checked")["differing"]) == (Exit.REFUSED, 1)
    mended = here("run", "june.csv", "--accept-edits")
    assert (mended.code, mended.step("loaded")["corrected"]) == (Exit.DONE, 1)
    assert sorted(entry.amount for entry in here.sandbox.books.payouts())[3] == Decimal("4.70")


def test_refused_rows_are_paid_as_they_are_once_the_service_takes_them(here: Here) -> None:
    payouts_file(here.folder, 6)
    here.sandbox.on("payouts.create", amount="4.07").respond("http:422", times=1)
    done = here("run", "june.csv")
    assert done.code == Exit.REFUSED
    assert "payments payouts retry-failed june.csv.ledger --rejected" in done.err
    dry = here("retry-failed", "june.csv.ledger", "--rejected", "--dry-run", "--json")
    assert (dry.step("retry")["rows"], dry.step("retry")["totals"]) == ([4], {"XOF": "4.07"})
    anew = here("retry-failed", "june.csv.ledger", "--rejected")
    assert (anew.code, "1 row, XOF 4.07" in anew.out) == (Exit.DONE, True)
    assert "no row is rejected" in here("retry-failed", "june.csv.ledger", "--rejected").out
    assert here("run", "june.csv").code == Exit.DONE
    assert_paid_once(here.sandbox, 6)


def test_a_stop_rule_ends_with_75_and_the_rest_is_paid_without_it(here: Here) -> None:
    payouts_file(here.folder, 30)
    first = here("run", "june.csv", "--max-rows", "10")
    rows = first.step("finished")["rows"]
    assert (first.code, rows["created"], rows["not_started"]) == (75, 10, 20)
    assert "Raise that limit" in first.err
    assert not Path("june.csv.ledger.certificate.json").exists()
    assert here("status", "june.csv.ledger", "--json").step("batch")["complete"] is False
    assert here("run", "june.csv", "--max-amount", "40").code == Exit.RESUMABLE
    assert here("run", "june.csv").code == Exit.DONE
    assert_paid_once(here.sandbox, 30)


def test_rows_in_doubt_end_with_3_until_the_service_answers(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "TRIES", 2)  # its back-offs take real time here
    payouts_file(here.folder, 5)
    here.sandbox.on("payouts.create", amount="3.07").respond("http:503", times=50)
    done = here("run", "june.csv", "--patience", "0")
    assert done.code == Exit.OUTCOME_UNKNOWN, done
    assert done.step("finished")["rows"]["in_doubt"] == 1
    assert "1 row in doubt: the same `run` command posts them once more" in done.err
    assert here("reconcile", "june.csv.ledger").code == Exit.OUTCOME_UNKNOWN
    printed = here("status", "june.csv.ledger")
    assert (printed.code, "1 row in doubt" in printed.out) == (Exit.DONE, True)
    assert "· Batch      not complete" in printed.out
    here.sandbox.clear_rules()
    assert here("run", "june.csv", "--patience", "0").code == Exit.DONE
    assert_paid_once(here.sandbox, 5)


def test_payouts_that_fail_later_are_followed_and_paid_anew(here: Here) -> None:
    payouts_file(here.folder, 3)
    here.sandbox.on("payouts.create", amount="2.07").outcome("fail:RECIPIENT_ERROR immediate", times=1)
    here.sandbox.on("payouts.create").outcome("complete immediate")
    done = here("run", "june.csv", "--wait-final", "30s")
    ended = done.step("finished")["rows"]
    assert (done.code, ended["failed"], ended["not_final"]) == (1, 1, 0)
    assert "payments payouts retry-failed june.csv.ledger" in done.err
    assert "`payments payouts export june.csv.ledger failed.csv --state failed` lists them" in done.err
    for state, rows in (("failed", 1), ("arrived", 2), ("not-final", 0), ("created", 3), ("in-doubt", 0)):
        exported = here("export", "june.csv.ledger", f"{state}.csv", "--state", state, "--json")
        assert (exported.code, exported.step("exported")["rows"]) == (Exit.DONE, rows)
    dry = here("retry-failed", "june.csv.ledger", "--dry-run", "--json")
    assert (dry.step("retry")["rows"], dry.step("retry")["totals"]) == ([2], {"XOF": "2.07"})
    assert here("status", "june.csv.ledger", "--json").step("batch")["rows"]["not_started"] == 0
    assert here("retry-failed", "june.csv.ledger", "--row", "2", "--confirm-total", "XOF 2.08").code == 2
    retried = here("retry-failed", "june.csv.ledger", "--row", "2")
    assert (retried.code, "1 row, XOF 2.07" in retried.out) == (Exit.DONE, True)
    assert here("run", "june.csv", "--wait-final", "30s").code == Exit.DONE
    assert sorted(entry.amount for entry in here.sandbox.books.payouts()) == [
        Decimal(text) for text in ("1.07", "2.07", "2.07", "3.07")
    ]


def test_a_dry_run_reads_everything_and_leaves_nothing(here: Here) -> None:
    payouts_file(here.folder, 4)
    done = here("run", "june.csv", "--dry-run")
    assert (done.code, done.step("checked")["rows"]) == (Exit.DONE, 4)
    assert here.sandbox.requests == []
    assert os.listdir(here.folder) == ["june.csv"]
    os.environ.pop("PAYMENTS_API_KEY")
    assert here("run", "june.csv", "--dry-run").code == Exit.DONE


def test_a_dry_run_of_an_edited_file_shows_both_totals_and_what_to_do(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = payouts_file(here.folder, 4)
    here.sandbox.on("payouts.create", amount="4.07").respond("http:422")
    assert here("run", "june.csv").code == Exit.REFUSED
    file.write_text(file.read_text().replace("4.07", "40.07"))
    checked = here("run", "june.csv", "--dry-run").step("checked")
    assert checked["totals"] == {"GHS": "3.07", "XOF": "7.21"}
    assert checked["input_totals"] == {"GHS": "3.07", "XOF": "43.21"}
    wide = partial(OutputConsole, force_terminal=True, color_system=None, width=300)
    monkeypatch.setattr(command_context, "OutputConsole", wide)
    dry = here("run", "june.csv", "--dry-run", as_text=True)
    assert dry.code == Exit.REFUSED
    seen = " ".join(dry.out.split())
    assert "the ledger has 4 payouts, GHS 3.07, XOF 7.21" in seen
    assert "the file as it is now comes to GHS 3.07, XOF 43.21" in seen
    assert "row 4" in seen
    assert "--accept-edits" in seen


def test_a_file_with_another_delimiter_is_paid(here: Here) -> None:
    file = payouts_file(here.folder, 4)
    file.write_text(file.read_text().replace(",", ";"))
    here("run", "june.csv").assert_one_message(Exit.USAGE, "is the delimiter ';' (--delimiter)?")
    assert here("run", "june.csv", "--delimiter", "semicolon").code == Exit.USAGE
    assert here("run", "june.csv", "--delimiter", ";").code == Exit.DONE
    assert_paid_once(here.sandbox, 4)


def test_rows_with_faults_are_left_out_on_purpose_and_written_down(here: Here) -> None:
    file = payouts_file(here.folder, 3)
    file.write_text(file.read_text().replace("2.07", "NaN"))
    done = here("run", "june.csv", "--skip-invalid", "--rejects", "rejects.csv")
    assert (done.code, done.step("loaded")["skipped"]) == (Exit.DONE, 1)
    assert "NaN" in Path("rejects.csv").read_text()
    assert len(here.sandbox.books.payouts()) == 2


@pytest.mark.parametrize("options", [["--dry-run"], []])
def test_people_and_programs_get_the_name_of_the_rejects_that_were_written(
    here: Here, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = payouts_file(here.folder, 3)
    asked, name = ["run", "june.csv", "--skip-invalid", "--rejects", "rejects.csv"], "loaded"
    assert here(*asked, "--dry-run").step("checked")["rejects"] is None  # no row is at fault
    if options:
        asked, name = [*asked, *options], "checked"
    file.write_text(file.read_text().replace("2.07", "NaN"))
    assert here(*asked).step(name)["rejects"] == "rejects.csv"
    Path("june.csv.ledger").unlink(missing_ok=True)
    Path("june.csv.ledger.lock").unlink(missing_ok=True)
    wide = partial(OutputConsole, force_terminal=True, color_system=None, width=300)
    monkeypatch.setattr(command_context, "OutputConsole", wide)
    printed = here(*asked, as_text=True).out
    assert "1 row with faults left out\n  ✓ Written    rejects.csv\n" in printed


@pytest.mark.parametrize("options", [["--dry-run"], []])
def test_rejects_that_cannot_be_written_are_named_before_anything_is_sent(
    here: Here, options: list[str]
) -> None:
    file = payouts_file(here.folder, 3)
    file.write_text(file.read_text().replace("2.07", "NaN"))
    refused = here("run", "june.csv", "--skip-invalid", "--rejects", "no/where.csv", *options)
    refused.assert_one_message(Exit.USAGE, "no/where.csv (No such file or directory)", "nothing was sent")
    assert refused.step("refused")["exit_code"] == Exit.USAGE
    assert here.sandbox.books.payouts() == []


@pytest.mark.parametrize("command", ["run", "reconcile"])
def test_a_list_that_shows_no_amounts_ends_with_1_and_says_so(
    here: Here, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    payouts_file(here.folder, 40)
    if command == "reconcile":
        assert here("run", "june.csv").code == Exit.DONE
    page = Service.page

    async def bare(*args: Any, **facts: Any) -> Any:
        shown = await page(*args, **facts)
        return attrs.evolve(shown, items=tuple(attrs.evolve(each, amount=None) for each in shown))

    monkeypatch.setattr(Service, "page", bare)
    said = here("run", "june.csv") if command == "run" else here("reconcile", "june.csv.ledger")
    printed = (
        "40 rows were not compared: the list shows no amount or no currency of rows 1, 2, 3, 4, 5 and 35 more"
    )
    assert (said.code, said.step("finished")["exit_code"]) == (Exit.REFUSED, 1)
    certified = said.step("certified")
    assert (certified["clean"], certified["seen"], certified["findings"]) == (False, 0, [printed])
    assert certified["fields"]["amount"] == {"compared": 0, "not_shown": 40}
    assert "list does not confirm the ledger" in said.err
    assert json.loads(Path("june.csv.ledger.certificate.json").read_text())["findings"] == [printed]


def test_a_list_that_does_not_show_its_end_certifies_nothing_and_ends_with_1(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    payouts_file(here.folder, 4)
    page = Service.page

    async def silent(*args: Any, **facts: Any) -> Any:
        return attrs.evolve(await page(*args, **facts), pagination=Pagination(), is_last=False)

    monkeypatch.setattr(Service, "page", silent)
    said = here("run", "june.csv")
    assert said.code == Exit.REFUSED
    assert "did not say that the list ends" in said.step("certified")["error"]
    assert "the certificate could not be made (" in said.err
    assert "list does not confirm the ledger" not in said.err
    assert not Path("june.csv.ledger.certificate.json").exists()
    assert_paid_once(here.sandbox, 4)
    here("reconcile", "june.csv.ledger").assert_one_message(Exit.REFUSED, "did not say that the list ends")
