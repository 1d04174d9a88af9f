"""`payments payouts show`: one row with its state, attempts and times; during a run too."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from payments_async import AsyncPayments
from payments_async._cli._exit_codes import CommandEnded, Exit
from payments_async._cli._output import JsonLines, OutputConsole
from payments_async._cli.payouts import row
from payments_async._cli.payouts.command_context import CommandContext
from payments_async.bulk import PayoutBatch, RowAttempt, RowAttempts
from payments_async.bulk._page import address_file
from payments_async.bulk._page.source import RunSource
from payments_async.bulk._protocol.attempts import one_attempt
from payments_async.bulk._texts.ledger_address import LedgerAddress
from payments_async.sandbox import Sandbox
from tests.support.batch_pages import served
from tests.support.payout_command import PHONE, Here, payouts_file


def _faults(sandbox: Sandbox) -> None:
    """The first row needs two requests, the second is rejected, the third fails later."""
    sandbox.on("payouts.create", amount="1.07").respond("http:503", times=1)
    sandbox.on("payouts.create", amount="2.07").respond("http:422", times=None)
    sandbox.on("payouts.create", amount="3.07").outcome("fail:RECIPIENT_ERROR immediate")


def test_a_row_shows_its_attempts_its_payout_and_where_to_look(here: Here) -> None:
    payouts_file(here.folder, 5)
    _faults(here.sandbox)
    here("run", "june.csv")
    shown = here("show", "june.csv.ledger", "r1")
    facts = here("show", "june.csv.ledger", "r1", "--json").step("row")
    assert (shown.code, PHONE in shown.out) == (Exit.DONE, False)
    assert "Amount     XOF 1.07 by mtn_bj" in shown.out
    assert "Answers    503 201" in shown.out
    assert "phone_number ***" in shown.out
    assert facts["reference"] in shown.out
    assert facts["payout_id"] in shown.out
    page = f"/_sandbox/payouts/{facts['payout_id']}"
    assert facts["inspector"] == here.sandbox.base_url.removesuffix("/v1") + page
    assert (facts["attempts"]["made"], facts["amount"], facts["outcome"]) == (2, "1.07", "not_final")
    assert facts["page"] is None, "no run serves it"
    assert here("show", "june.csv.ledger", str(facts["reference"])).out == shown.out
    assert here("show", "june.csv.ledger", "1").out == shown.out
    assert "Page       payments payouts watch june.csv.ledger" in shown.out
    rejected = here("show", "june.csv.ledger", "r2").out
    assert "✗ Outcome    rejected; HTTP 422" in rejected
    assert "Inspector" not in rejected
    assert "✗ Outcome    failed; RECIPIENT_ERROR" in here("show", "june.csv.ledger", "r3").out
    assert "Attempts   one, which created it" in here("show", "june.csv.ledger", "r4").out


def test_a_row_that_is_not_there_is_named(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    payouts_file(here.folder, 2)
    here("run", "june.csv", "--max-rows", "1")
    here("show", "june.csv.ledger", "r9").assert_one_message(Exit.USAGE, "no row has this key", "r9")
    here("show").assert_one_message(Exit.USAGE, "ROW is missing", "`payments payouts watch LEDGER`")
    here("show", "june.csv.ledger").assert_one_message(
        Exit.USAGE,
        "ROW is missing",
        "`payments payouts watch june.csv.ledger`",
        "`payments payouts export june.csv.ledger to-check.csv --state rejected`",
    )
    assert here("export", "june.csv.ledger", "to-check.csv", "--state", "rejected").code == Exit.DONE
    monkeypatch.setenv("PAYMENTS_LEDGER", "june.csv.ledger")
    here("show").assert_one_message(Exit.USAGE, "ROW is missing", "`payments payouts watch` shows")
    waiting = here("show", "r2")
    assert "Outcome    not started" in waiting.out
    assert "Attempts   none yet" in waiting.out
    assert "Sent " not in waiting.out


def test_a_row_shows_what_the_service_has_said_of_it_and_when(here: Here) -> None:
    payouts_file(here.folder, 3)
    _faults(here.sandbox)
    here("run", "june.csv")
    here.sandbox.advance(60.0)
    here("reconcile", "june.csv.ledger")
    payout_id = here("show", "june.csv.ledger", "1", "--json").step("row")["payout_id"]
    with here.sandbox.changing() as world:
        payout = world.tenants[here.sandbox.api_key].payouts_by_id[payout_id]
        payout.failed_at = payout.created_at
    here("reconcile", "june.csv.ledger")
    facts = here("show", "june.csv.ledger", "1", "--json").step("row")
    said = [(each["status"], each["contradicts"]) for each in facts["statuses"]]
    assert said == [("pending", False), ("completed", False), ("completed", True)]
    assert all(each["payout_id"] == facts["payout_id"] for each in facts["statuses"])
    pending, completed, unclear = facts["statuses"]
    assert pending["at"] <= completed["at"] <= unclear["at"]
    assert completed["service_at"] - pending["service_at"] >= 59.0
    shown = here("show", "june.csv.ledger", "1").out
    assert f"Statuses   of {payout_id}" in shown
    assert "Service's time" in shown
    table = [line.split() for line in shown.splitlines()]
    day = datetime.fromtimestamp(completed["service_at"], UTC)
    (line,) = (words for words in table if len(words) == 5 and words[-1] == "completed")
    assert line[:2] == [f"{day:%Y-%m-%d}", f"{day:%H:%M:%S}"]
    assert "completed (contradicts itself)" in shown
    assert "✗ Outcome    created, not final yet; completed with" in shown
    assert "Statuses" not in here("show", "june.csv.ledger", "2").out, "it was rejected"


def test_a_row_that_was_retried_shows_which_payout_each_status_is_of(here: Here) -> None:
    payouts_file(here.folder, 3)
    _faults(here.sandbox)
    here("run", "june.csv")
    here("retry-failed", "june.csv.ledger")
    here("run", "june.csv")
    facts = here("show", "june.csv.ledger", "r3", "--json").step("row")
    first, *_, last = facts["statuses"]
    assert first["payout_id"] != last["payout_id"] == facts["payout_id"]
    shown = here("show", "june.csv.ledger", "r3").out
    assert shown.index(f"of {first['payout_id']}") < shown.index(f"of {last['payout_id']}")


def test_a_row_that_an_earlier_ledger_has_paid_shows_its_payout_and_what_that_is_of(here: Here) -> None:
    payouts_file(here.folder, 3)
    here("run", "june.csv", "--batch-id", "june")
    second = ("--batch-id", "june", "--ledger", "second", "--pay-again")
    assert here("run", "june.csv", *second, "--max-rows", "1").code == Exit.RESUMABLE
    here("reconcile", "second")
    shown = here("show", "second", "r2").out
    assert "Attempts   none is recorded; the service's list shows its payout" in shown
    assert ", of XOF" not in shown
    with here.sandbox.changing() as world:
        payouts = world.tenants[here.sandbox.api_key].payouts  # in the order in which they arrived
        next(each for each in payouts if each.amount == Decimal("2.07")).amount = Decimal("9.99")
    assert "and XOF 2.07 was asked for" in here("reconcile", "second").out
    assert re.search(r"✗ Payout     \S+, pending, of XOF 9.99", here("show", "second", "r2").out)


def test_check_names_figures_that_cannot_be_read_and_the_ledger_is_sound(here: Here) -> None:
    payouts_file(here.folder, 3)
    _faults(here.sandbox)
    here("run", "june.csv")
    with closing(sqlite3.connect("june.csv.ledger", isolation_level=None)) as file:
        file.execute("UPDATE attempts SET attempts = '{'")
    shown = here("check", "june.csv.ledger")
    assert shown.code == Exit.DONE
    assert "as it was written" in shown.out
    assert "Figures    the attempts of row 1 and 1 more cannot be read" in shown.out
    named = here("check", "june.csv.ledger", "--json").step("check")
    assert (named["findings"], named["unreadable"]) == ([], ["the attempts of row 1 and 1 more"])
    assert "none is kept" in here("show", "june.csv.ledger", "r2").out


def test_many_attempts_are_shortened_in_the_middle(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    payouts_file(here.folder, 1)
    here("run", "june.csv", "--max-rows", "1")
    facts = here("show", "june.csv.ledger", "r1", "--json").step("row")
    attempts = RowAttempts()
    for number in range(20):
        attempts += one_attempt(RowAttempt(1.8e9 + number, "503", 0.25))
    attempts += one_attempt(RowAttempt(1.8e9 + 20, "409", 0.25, replayed=True))

    async def given(*_: object) -> dict[str, Any]:
        return {
            **facts,
            "attempts": attempts.facts(),
            "outcome": "conflict",
            "statuses": [
                {"status": None, "payout_id": "po_1", "service_at": None, "at": 1.8e9, "contradicts": True}
            ],
            "last_sent": facts["first_sent"] + 60,
        }

    monkeypatch.setattr(row, "_facts", given)
    printed = here("show", "june.csv.ledger", "r1").out
    assert "503 503 503 … (13 more) … 503 503 503 503 409" in printed
    assert "409 replayed" in printed
    assert "13 more" in printed.split("When")[1]
    sent = re.search(r"Sent +first (.{19}) UTC;\s+last (.{19}) UTC", printed)
    assert sent
    assert datetime.fromisoformat(sent[2]) - datetime.fromisoformat(sent[1]) == timedelta(seconds=60)
    assert "✗ Outcome    in conflict" in printed
    assert "not known" in printed
    assert "none shown (contradicts itself)" in printed


async def test_while_a_run_holds_the_ledger_it_is_asked(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    payouts_file(here.folder, 2)
    ledger, path = LedgerAddress("june.ledger"), here.folder / "june.ledger"
    quiet: Any = None
    context = CommandContext(OutputConsole(), JsonLines(), True, quiet)
    client = AsyncPayments(here.sandbox.api_key, base_url=here.sandbox.base_url)
    async with client, PayoutBatch.open(path, client) as batch:
        await batch.load("june.csv")
        async with served(RunSource(ledger, "june.csv", batch=batch)) as server:
            address_file.publish(ledger.text, server.access)
            assert await row.show_row(ledger, "r2", context) == Exit.DONE
            facts = json.loads(capsys.readouterr().out)
            with pytest.raises(CommandEnded, match="no row has this key"):
                await row.show_row(ledger, "r9", context)
            address_file.withdraw(ledger.text)
        with pytest.raises(CommandEnded, match="does not answer questions about rows") as silent:
            await row.show_row(ledger, "r2", context)
    assert silent.value.code == Exit.RESUMABLE
    assert (facts["row_key"], facts["outcome"], facts["inspector"]) == ("r2", "not_started", None)
    assert facts["page"] == f"{server.access.origin}/rows/2"
