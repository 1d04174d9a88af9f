"""`payments payouts show`: one row with its state, its times and what the service has said of it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from urllib.request import urlopen

import pytest

from payments_async.sandbox import Sandbox
from tests.support.payout_command import PHONE, Exit, Here, payouts_file

LEDGER = "june.csv.ledger"


def _faults(sandbox: Sandbox) -> None:
    """The first row needs two requests, the second is rejected, the third fails later."""
    sandbox.on("payouts.create", amount="1.07").respond("http:503", times=1)
    sandbox.on("payouts.create", amount="2.07").respond("http:422", times=None)
    sandbox.on("payouts.create", amount="3.07").outcome("fail:RECIPIENT_ERROR immediate")


def test_a_row_shows_its_payout_and_where_to_look(here: Here) -> None:
    payouts_file(here.folder, 5)
    _faults(here.sandbox)
    here("run", "june.csv")
    shown = here("show", LEDGER, "r1")
    facts = here("show", LEDGER, "r1", "--json").step("row")
    assert (shown.code, PHONE in shown.out) == (Exit.DONE, False)
    assert "Amount     XCD 1.07 by mtn_bj" in shown.out
    assert "Sent       2 times, first on 20" in shown.out
    assert "phone_number ***" in shown.out
    assert facts["reference"] in shown.out
    assert facts["payout_id"] in shown.out
    link = f"{here.sandbox.origin}/_sandbox/payouts/{facts['payout_id']}"
    assert f"Inspector  {link}\n" in shown.out
    with urlopen(facts["inspector"]) as page:
        assert (page.status, facts["inspector"]) == (200, link)
    assert (facts["sends"], facts["amount"], facts["outcome"]) == (2, "1.07", "not_final")
    for other in ((LEDGER, str(facts["reference"])), (LEDGER, "1"), ("1", "--ledger", LEDGER)):
        assert here("show", *other).out == shown.out
    rejected = here("show", LEDGER, "r2").out
    assert "✗ Outcome    rejected; HTTP 422" in rejected
    assert "Inspector" not in rejected
    assert "Status " not in rejected
    assert "✗ Outcome    failed; RECIPIENT_ERROR" in here("show", LEDGER, "r3").out


def test_the_page_of_a_batch_is_exported_as_its_rows_are(here: Here) -> None:
    payouts_file(here.folder, 3)
    _faults(here.sandbox)
    here("run", "june.csv")
    said = here("export", LEDGER, "june.html")
    assert said.out.split("\n", 2)[1] == LEDGER
    assert "✓ Exported   the batch's page; account data masked\n  ✓ Written    june.html" in said.out
    page = (here.folder / "june.html").read_text()
    missing = "GHS 3.07, XCD 2.07 did not arrive: 1 failed, 1 rejected"
    assert f"{missing}. What to do: " in page
    assert f"✗ Shortfall  {missing}" in here("status", LEDGER).out


def test_a_row_that_is_not_there_is_named(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    payouts_file(here.folder, 2)
    here("run", "june.csv", "--max-rows", "1")
    here("show", LEDGER, "r9").assert_one_message(Exit.USAGE, "no row has this key", "r9")
    for line in (("show",), ("show", LEDGER)):
        here(*line).assert_one_message(Exit.USAGE, "ROW is missing, a row's key, reference or number")
    here("export", LEDGER).assert_one_message(Exit.USAGE, "OUT is missing, the file to write (.csv, ")
    monkeypatch.setenv("PAYMENTS_LEDGER", LEDGER)
    here("show").assert_one_message(Exit.USAGE, "ROW is missing")
    waiting = here("show", "r2")
    assert "Outcome    not started" in waiting.out
    assert "Sent " not in waiting.out


def test_a_row_shows_what_the_service_has_said_of_it_and_when(here: Here) -> None:
    payouts_file(here.folder, 3)
    _faults(here.sandbox)
    here("run", "june.csv")
    here.sandbox.advance(60.0)
    here("reconcile", LEDGER)
    payout_id = here("show", LEDGER, "1", "--json").step("row")["payout_id"]
    with here.sandbox.changing() as world:
        payout = world.tenants[here.sandbox.api_key].payouts_by_id[payout_id]
        payout.failed_at = payout.created_at
    here("reconcile", LEDGER)
    facts = here("show", LEDGER, "1", "--json").step("row")
    said = [(each["status"], each["contradicts"]) for each in facts["statuses"]]
    assert said[-2:] == [("completed", False), ("completed", True)]
    assert all(each["payout_id"] == facts["payout_id"] for each in facts["statuses"])
    completed, unclear = facts["statuses"][-2:]
    assert completed["at"] <= unclear["at"]
    shown = here("show", LEDGER, "1").out
    told, day = " ".join(shown.split()), datetime.fromtimestamp(completed["service_at"], UTC)
    assert f"Status completed, ended {day:%Y-%m-%d %H:%M:%S} UTC, read 20" in told
    assert f"Status completed (contradicts itself), ended {day:%Y-%m-%d}" in told
    assert told.count(f", of {payout_id}") == len(facts["statuses"])
    assert "✗ Outcome    not final yet; completed with" in shown


def test_a_row_that_an_earlier_ledger_has_paid_shows_its_payout_and_what_that_is_of(here: Here) -> None:
    here.sandbox.clock.set_speed(0)  # so that no payout turns, however long the commands take
    payouts_file(here.folder, 3)
    here("run", "june.csv", "--batch-id", "june")
    second = ("--batch-id", "june", "--ledger", "second", "--pay-again")
    assert here("run", "june.csv", *second, "--max-rows", "1").code == Exit.RESUMABLE
    here("reconcile", "second")
    assert ", of XCD" not in here("show", "second", "r2").out
    with here.sandbox.changing() as world:
        payouts = world.tenants[here.sandbox.api_key].payouts  # in the order in which they arrived
        next(each for each in payouts if each.amount == Decimal("2.07")).amount = Decimal("9.99")
    differs = here("reconcile", "second", as_text=True)
    assert (differs.code, "✗ Finding " in differs.out) == (Exit.REFUSED, True)
    assert "list does not confirm the ledger" in differs.err
    assert "XCD 2.07 was asked for" in " ".join(differs.out.split())
    assert "NOT clean" in here("status", "second").out
    assert re.search(r"✗ Payout     \S+, pending, of XCD 9.99", here("show", "second", "r2").out)
