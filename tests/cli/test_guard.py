"""`payments guard`: begin a state and show it, at a sandbox over TCP."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from payments_async import GuardRefused, Instrument
from payments_sync import Payments
from tests.support.canary import NEEDLE
from tests.support.payout_command import Exit, Here, Said
from tests.support.servers import free_port
from tests.support.snapshots import Snapshots

RULES = 'most = {GHS = "5000", XOF = "400000"}\nmethods = ["mobile_money", "mtn_bj"]\n'
SUMS = 'sums = [["GHS", "6000", "hour"], ["GHS", "9000", "day"]]\n'
FILE = 'state = "guard.sqlite"\n'
WALLET = Instrument.phone("+233200000001", "GH")

Command = Callable[..., Said]


@pytest.fixture
def guard(here: Here, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`payments guard` in an empty folder, with a guard in guard.toml.

    Its key is of this test alone: a guard holds it until the process ends.
    """
    write_guard(RULES + SUMS + FILE)
    monkeypatch.setenv("PAYMENTS_API_KEY", here.sandbox.new_key())
    monkeypatch.setenv("PAYMENTS_GUARD", "guard.toml")
    return lambda *argv: here.command("guard", *argv)


def write_guard(text: str) -> None:
    path = Path("guard.toml")
    path.write_text(text)
    path.chmod(0o600)


def shown(guard: Command) -> dict[str, Any]:
    said = guard("show", "--json")
    (line,) = said.lines or [{"failed": said.err}]
    return line


def pay(client: Payments, amount: int, reference: str) -> None:
    client.payouts.create(
        amount=amount, currency="GHS", method="mobile_money", instrument=WALLET, reference=reference
    )


def spend() -> None:
    """Pay 1,200, and end the program that did."""
    with Payments() as client:
        pay(client, 1200, "r-1")
        client._async._internal.guard.sums.state.end()


def test_a_state_that_is_begun_is_trusted_from_then_on(guard: Command, here: Here) -> None:
    before = shown(guard)
    assert (before["ok"], before["exists"], before["sums"]) == (False, False, [])
    assert not Path("guard.sqlite").exists()
    begun = guard("begin", "--json").step("begun")
    assert (begun["begun"], begun["state"]) == (True, os.path.abspath("guard.sqlite"))
    assert begun["sums"] == [["GHS", "6000", 3600], ["GHS", "9000", 86400]]
    assert Path("guard.sqlite").stat().st_mode & 0o777 == 0o600
    after = shown(guard)
    trusted = [each["trusted"] for each in after["sums"]]
    assert (after["ok"], after["exists"], trusted) == (True, True, [True] * 2)
    assert not here.sandbox.requests


def test_a_state_that_is_trusted_is_left_as_it_is_unless_again_is_said(guard: Command) -> None:
    guard("begin")
    spend()
    trusted = guard("begin")
    assert trusted.code == Exit.DONE
    assert "trusted already: nothing was" in " ".join(trusted.out.split())
    assert guard("begin", "--json").step("trusted")["begun"] is False
    assert guard("begin", "--again", "--json").step("begun")["begun"] is True
    assert [each["paid"] for each in shown(guard)["sums"]] == ["1200", "1200"]


def test_a_state_that_was_not_begun_refuses_and_says_for_how_long(guard: Command) -> None:
    with Payments() as client, pytest.raises(GuardRefused) as raised:
        pay(client, 100, "r-1")
    assert raised.value.rule == "begin"
    said = shown(guard)
    assert (said["ok"], said["exists"], said["sums"][0]["trusted"]) == (False, True, False)
    assert 4500 < said["sums"][0]["trusted_in"] <= 4560
    text = " ".join(guard("show").out.split())
    assert "it refuses for another" in text
    assert "or until `payments guard begin`" in text
    assert guard("begin", "--json").step("begun")["begun"] is True


def test_what_was_paid_is_held_and_is_left_is_shown_with_the_rules(
    guard: Command, assert_snapshot: Snapshots
) -> None:
    assert_snapshot(plain(guard("show").out), "before")
    assert_snapshot(plain(guard("begin").out), "begin")
    spend()
    assert_snapshot(plain(guard("show").out), "after")
    said = shown(guard)
    assert [(each["paid"], each["held"], each["left"]) for each in said["sums"]] == [
        ("1200", "0", "4800"),
        ("1200", "0", "7800"),
    ]


def plain(text: str) -> str:
    """One line a step, whatever the length of the path; without it, and without times."""
    text = " ".join(text.split()).replace(os.path.abspath("guard.sqlite"), "PATH")
    return re.sub(r" (?=[✓✗·] )", "\n", re.sub(r"20\d\d-\S+ \S+ ", "", text))


@pytest.mark.parametrize(
    ("sums", "said", "why"),
    [
        ("", "Guard no sums", "it has no sums"),
        (SUMS + 'budgets = "process"\n', "kept by each process for itself", "are kept by each process"),
    ],
)
def test_without_a_state_only_the_rules_are_shown_and_nothing_is_begun(
    guard: Command, monkeypatch: pytest.MonkeyPatch, sums: str, said: str, why: str
) -> None:
    monkeypatch.delenv("PAYMENTS_API_KEY")
    write_guard(RULES + sums)
    assert said in " ".join(guard("show").out.split())
    assert (shown(guard)["ok"], shown(guard)["state"]) == (True, None)
    guard("begin").assert_one_message(Exit.USAGE, "guard.toml: there is no state to begin", why)


def test_every_rule_that_is_set_is_shown(guard: Command) -> None:
    words = 'other_currencies = "allow"\nother_writes = "allow"\ncollecting = true\n'
    write_guard(words + 'decimals = false\ncountries = ["GH"]\n')
    text = " ".join(guard("show").out.split())
    for part in (
        "no figure; other currencies pass",
        "Countries GH",
        "Decimals any number",
        "Collecting checkouts and payment intents are judged, too",
        "Writes to any path",
    ):
        assert part in text


@pytest.mark.parametrize("command", ["show", "begin"])
def test_a_command_without_a_guard_that_it_can_use_exits_2(
    guard: Command, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    guard(command, "--guard", "none.toml").assert_one_message(Exit.USAGE, "none.toml cannot be read")
    Path("guard.toml").chmod(0o622)
    guard(command).assert_one_message(Exit.USAGE, "others than its owner may change guard.toml")
    monkeypatch.delenv("PAYMENTS_GUARD")
    guard(command).assert_one_message(Exit.USAGE, "no guard: give its file with --guard", "PAYMENTS_GUARD")


@pytest.mark.parametrize("variable", ["PAYMENTS_API_KEY", "PAYMENTS_BASE_URL"])
def test_a_state_is_that_of_a_key_and_an_address(
    guard: Command, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.delenv(variable)
    for command in ("begin", "show"):
        guard(command).assert_one_message(Exit.USAGE, variable)
    assert not Path("guard.sqlite").exists()


def test_sums_are_kept_in_the_database_of_the_limit_store_where_there_is_no_file(
    guard: Command, monkeypatch: pytest.MonkeyPatch, database: str
) -> None:
    write_guard(RULES + SUMS)
    monkeypatch.setenv("PAYMENTS_LIMIT_STORE", "")
    guard("show").assert_one_message(Exit.USAGE, "sums need a state: a file", "limit_store in PostgreSQL")
    monkeypatch.setenv("PAYMENTS_LIMIT_STORE", database)
    assert guard("begin", "--json").step("begun")["state"].startswith("postgresql://127.0.0.1:")
    assert shown(guard)["ok"] is True


def test_a_state_that_is_away_is_one_message_without_its_password(
    guard: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_guard(RULES + SUMS)
    port = free_port()
    monkeypatch.setenv("PAYMENTS_LIMIT_STORE", f"postgresql://shop:{NEEDLE}@127.0.0.1:{port}/shop")
    for command in ("begin", "show"):
        said = guard(command)
        said.assert_one_message(Exit.REFUSED, f"127.0.0.1:{port}/shop cannot be reached")
        assert NEEDLE not in said.err + said.out
