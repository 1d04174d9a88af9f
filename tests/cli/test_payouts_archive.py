"""`payments payouts archive`, and `check` of what it has written: text, lines, exit codes, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from payments_async._cli._exit_codes import Exit
from payments_async.bulk import check_archive
from tests.support.payout_command import Here, payouts_file

LEDGER = "june.csv.ledger"


@pytest.fixture(autouse=True)
def _four_payouts(here: Here) -> None:
    payouts_file(here.folder, 4)


def test_a_batch_is_archived_with_its_certificate_and_checked_without_its_ledger(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert here("run", "june.csv").code == Exit.DONE
    monkeypatch.delenv("PAYMENTS_API_KEY")
    done = here("archive", LEDGER, "--to", "june.parquet")
    assert "✓ Archived   4 rows, " in done.out
    assert "entries; keyed hashes for account data" in done.out
    assert f"Certified  {LEDGER}.certificate.json" in done.out
    here("archive", LEDGER, "--to", "june.parquet").assert_one_message(
        Exit.USAGE, "june.parquet: exists already", "--overwrite"
    )
    lines = here("archive", LEDGER, "--to", "june.parquet", "--overwrite", "--accounts", "--json")
    archived = lines.step("archived")
    assert (archived["path"], archived["rows"], archived["accounts"]) == ("june.parquet", 4, True)
    Path(LEDGER).unlink()
    checked = here("check", "june.parquet", "--json").step("check")
    assert (checked["about"], checked["rows"], checked["findings"]) == ("june.parquet", 4, [])
    assert checked["head"] == archived["head"]
    assert "4 rows, " in here("check", "june.parquet").out
    assert archived["has_certificate"]


def test_without_a_certificate_an_archive_says_so(here: Here) -> None:
    assert here("run", "june.csv").code == Exit.DONE
    certificate = Path(f"{LEDGER}.certificate.json")
    facts = json.loads(certificate.read_text())
    certificate.write_text(json.dumps({**facts, "batch_id": "july"}))
    refused = here("archive", LEDGER, "--to", "june.parquet")
    refused.assert_one_message(Exit.USAGE, "is the certificate of another batch")
    certificate.unlink()
    done = here("archive", LEDGER, "--to", "june.parquet")
    said = " ".join(done.out.split())
    assert f"none of the batch as it is: `payments payouts reconcile {LEDGER}` writes one" in said


def test_the_certificate_of_a_batch_in_a_database_is_the_one_that_the_database_keeps(
    here: Here, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAYMENTS_LEDGER", database)
    monkeypatch.setenv("PAYMENTS_RATE_SHARE", "1")  # the limit stays in this process
    assert here("run", "june.csv", "--batch-id", "june").code == Exit.DONE
    Path("june.certificate.json").write_text("{}")  # of another time
    done = here("archive", "--to", "june.parquet", "--batch-id", "june")
    assert "✓ Certified  by the certificate in the database" in done.out
    archived = here("archive", "--to", "again.parquet", "--batch-id", "june", "--json").step("archived")
    assert archived["has_certificate"]


def test_a_damaged_archive_ends_a_check_with_1(here: Here) -> None:
    assert here("run", "june.csv").code == Exit.DONE
    assert here("archive", LEDGER, "--to", "june.parquet").code == Exit.DONE
    whole = Path("june.parquet").read_bytes()
    Path("june.parquet").write_bytes(whole[:-9])
    here("check", "june.parquet").assert_one_message(
        Exit.REFUSED, "june.parquet: it was cut short, or its end is damaged; take another copy of it"
    )
    payouts_file(here.folder, 2, name="june.parquet")
    remedy = "give the file that `payments payouts archive LEDGER --to FILE` has written"
    here("check", "june.parquet").assert_one_message(Exit.USAGE, "is no Parquet file", remedy)
    here("check", "july.parquet").assert_one_message(Exit.USAGE, "there is no such file", remedy)
    here("check", "july.parquet", "--chunks", "out").assert_one_message(Exit.USAGE, "not divided into chunks")


def test_an_archive_is_told_from_a_ledger_by_its_content(here: Here) -> None:
    assert here("run", "june.csv").code == Exit.DONE
    assert here("archive", LEDGER, "--to", "june.parquet").code == Exit.DONE
    Path("june.parquet").rename("june.bak")
    Path(LEDGER).rename("july.parquet")
    seen = sorted(here.folder.iterdir())
    assert here("check", "june.bak", "--json").step("check")["rows"] == 4
    for name, *rest in (["status"], ["show", "row-1"], ["export", "out.csv"]):
        here(name, "june.bak", *rest).assert_one_message(
            Exit.USAGE, "june.bak: is a Parquet file", "`payments payouts check` and DuckDB read an archive"
        )
    assert sorted(here.folder.iterdir()) == seen
    assert here("check", "july.parquet", "--json").step("check")["rows"] == 4


def test_a_changed_archive_is_named_with_its_findings(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    assert here("run", "june.csv").code == Exit.DONE
    assert here("archive", LEDGER, "--to", "june.parquet").code == Exit.DONE
    report = check_archive("june.parquet")
    monkeypatch.setattr("payments_async.bulk.check_archive", lambda _: report.with_finding("row 4 is"))
    done = here("check", "june.parquet")
    assert done.code == Exit.REFUSED
    assert "NOT as it was written" in done.out
    assert "✗ Finding    row 4 is" in done.out
    assert "not as it was written; take another copy of it, or make it again" in " ".join(done.err.split())


def test_a_batch_that_is_not_closed_is_not_archived(here: Here) -> None:
    assert here("run", "june.csv", "--max-rows", "1").code == Exit.RESUMABLE
    here("archive", LEDGER, "--to", "june.parquet").assert_one_message(
        Exit.USAGE, "3 of its rows are not decided: `payments payouts run` goes on"
    )
    here("archive", LEDGER, "--to", "june.csv").assert_one_message(
        Exit.USAGE, "an archive is a .parquet file"
    )
    assert here("archive", LEDGER).code == Exit.USAGE
    assert here("run", "june.csv").code == Exit.DONE
    here("archive", LEDGER, "--to", "no/where.parquet").assert_one_message(
        Exit.USAGE, "no/where.parquet cannot be written (No such file or directory)"
    )
    here("archive", LEDGER, "--to", "a.parquet", "--certificate", "none.json").assert_one_message(
        Exit.USAGE, "none.json: cannot be read (No such file or directory)"
    )
    assert not list(here.folder.glob("*.parquet*"))
