"""A live key: the total is typed back on a terminal, or given exactly, before anything is sent."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from payments_async.sandbox import Sandbox
from tests.support.payout_command import (
    Exit,
    Here,
    OnTerminal,
    Said,
    assert_paid_once,
    live_line,
    payouts_file,
    started,
)

RUN = ("run", "june.csv", "--batch-id", "june")


@attrs.frozen
class Live:
    """A sandbox that is reached with a live key, and a folder."""

    sandbox: Sandbox
    variables: dict[str, str]
    folder: Path

    def on_terminal(self, columns: int = 80) -> OnTerminal:
        return OnTerminal(self.variables, *RUN, cwd=self.folder, columns=columns)

    def without(self, *argv: str) -> Said:
        with started(self.variables, *(argv or RUN), cwd=self.folder) as process:
            out, err = process.communicate(timeout=300)
        return Said(process.returncode, out, err)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """Six payouts of real money, as far as the command can tell."""
    payouts_file(tmp_path, 6)
    with Sandbox() as sandbox, live_line(sandbox) as variables:
        yield Live(sandbox, variables, tmp_path)


def test_the_total_is_typed_back_per_currency_once_for_a_batch(live: Live) -> None:
    live.sandbox.on("payouts.create").outcome("complete manual", times=None)
    with live.on_terminal() as terminal:
        seen = terminal.until("Type the GHS total to pay it: ")
        assert "This key is live: 6 payouts of real money, GHS 9.14, XCD 12.28 in all." in seen
        terminal.type("\x03")
        assert terminal.end() == Exit.INTERRUPTED
        assert "payments: not confirmed; nothing was sent" in terminal.seen
    assert live.sandbox.requests == []

    with live.on_terminal(columns=120) as terminal:
        terminal.until("Type the GHS total to pay it: ")
        terminal.type("GHS 9.140\n")
        terminal.until("Type the XCD total to pay it: ")
        terminal.type("12.28\n")
        assert terminal.end() == Exit.DONE
        seen = terminal.seen
    assert_paid_once(live.sandbox, 6)
    assert "✓ Confirmed  GHS 9.14, XCD 12.28, typed back" in seen
    assert "━" in seen
    assert "· Certifying …" in seen
    assert "✓ Certified  the service's list shows 6 payouts as asked for" in seen
    again = live.without()  # nothing new to confirm: no terminal is needed
    assert again.code == Exit.DONE
    assert again.err.startswith("payments: 6 payouts are created, and not final yet")
    assert again.step("confirmed")["how"] == "earlier"


def test_a_batch_without_a_name_is_refused_with_the_reason(live: Live) -> None:
    refused = live.without("run", "june.csv")
    refused.assert_one_message(Exit.USAGE, "--batch-id salaries-june")
    assert refused.step("refused")["kind"] == "BatchIdRequired"
    assert live.sandbox.requests == []


@pytest.fixture
def here(here: Here, monkeypatch: pytest.MonkeyPatch) -> Here:
    """The command takes the sandbox's key for a live one, and has no terminal."""
    payouts_file(here.folder, 6)
    for module in ("run", "reconcile"):
        monkeypatch.setattr(f"payments_async._cli.payouts.{module}.is_live", lambda key: True)
    return here


FLAGS = ("--confirm-total", "GHS 9.14", "--confirm-total", "XCD 12.28")


def test_without_a_terminal_the_refusal_prints_the_very_options_to_pass(here: Here) -> None:
    refused = here("run", "june.csv")
    refused.assert_one_message(Exit.RESUMABLE, "a live key pays real money", "nothing was sent")
    assert f"Run it again with {shlex.join(FLAGS)}" in refused.told
    assert "`payments payouts confirm june.csv.ledger`" in refused.told
    assert here.sandbox.requests == []
    assert "a live key wants" not in here("run", "june.csv", "--dry-run", "--json").out
    assert here("run", "june.csv", *FLAGS).code == Exit.DONE
    assert_paid_once(here.sandbox, 6)
    assert here("run", "june.csv").code == Exit.DONE
    assert here("run", "june.csv", *FLAGS).code == Exit.DONE


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["GHS 9.14"], "GHS 9.14 was confirmed, and the batch comes to GHS 9.14, XCD 12.28"),
        (["GHS 9.14", "XCD 12.29"], "XCD 12.29 was confirmed, and the batch comes to GHS 9.14, XCD 12.28"),
        (["GHS 9.14", "XCD 12.28", "NGN 1"], "GHS 9.14, NGN 1.00, XCD 12.28 was confirmed, and the batch"),
        (["GHS 9.14", "GHS 9.14"], "GHS is given twice"),
        (["GHS 9,14"], "'9,14' is not an amount"),
        (["9.14"], "'9.14' is not a currency and an amount"),
        (["GHS 9.14", "XCD 12.28000000000000000001"], "XCD 12.28000000000000000001 was confirmed"),
    ],
)
def test_what_is_confirmed_must_be_the_total_to_the_last_digit(
    here: Here, given: list[str], said: str
) -> None:
    options = [part for one in given for part in ("--confirm-total", one)]
    here("run", "june.csv", *options).assert_one_message(Exit.USAGE, said, "nothing was sent")
    assert here.sandbox.requests == []
    assert (
        here("batches", "june.csv.ledger", "--json").lines == []
    )  # it is not in the way of the next attempt


def test_a_second_person_says_yes_to_what_a_job_has_loaded(live: Live) -> None:
    live.without().assert_one_message(Exit.RESUMABLE, "confirm june.csv.ledger --batch-id june")
    assert live.sandbox.books.payouts() == []
    with OnTerminal({}, "confirm", "june.csv.ledger", cwd=live.folder) as terminal:
        terminal.until("Type the GHS total to pay it: ")
        terminal.type("9.14\n")
        terminal.until("Type the XCD total to pay it: ")
        terminal.type("12.29\n12.28\n")
        assert terminal.end() == Exit.DONE
        assert "✓ Confirmed  GHS 9.14, XCD 12.28, typed back; the next `run` pays it" in terminal.seen
    for line in (("confirm", "june.csv.ledger"), ("status", "june.csv.ledger")):
        said = live.without(*line)
        assert (said.code, "not confirmed" in said.out) == (Exit.DONE, False)
    paid = live.without("run", "--ledger", "june.csv.ledger")
    assert (paid.code, paid.step("confirmed")["how"]) == (Exit.DONE, "earlier"), paid
    assert_paid_once(live.sandbox, 6)


def test_rows_are_made_new_only_with_their_own_total_confirmed(here: Here) -> None:
    here.sandbox.on("payouts.create", amount="4.07").respond("http:422", times=1)
    assert here("run", "june.csv", *FLAGS).code == Exit.REFUSED
    line = ("retry-failed", "june.csv.ledger", "--rejected")
    here(*line).assert_one_message(Exit.USAGE, "--confirm-total 'XCD 4.07'")
    assert here("status", "june.csv.ledger", "--json").step("batch")["rows"]["not_started"] == 0
    assert here(*line, "--confirm-total", "XCD 4.07").code == Exit.DONE
    assert here("run", "june.csv", *FLAGS).code == Exit.DONE
