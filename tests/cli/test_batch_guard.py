"""A batch under a guard: shown by each run; another one is recorded, and a live total is asked for again."""

from __future__ import annotations

from pathlib import Path

import pytest

from payments_async import Guard, client
from tests.support.payout_command import Exit, Here, assert_paid_once


def guard_of(patch: pytest.MonkeyPatch, most: int | None) -> str:
    """Give the next commands, as in a process of their own, this guard or none. Returns its digest."""
    patch.setattr(client, "PROCESS", type(client.PROCESS)())
    if most is None:
        patch.delenv("PAYMENTS_GUARD", raising=False)
        return ""
    path = Path("guard.toml")
    path.write_text(f"decimals = false\n[most]\nXCD = {most}\nGHS = {most}\n")
    path.chmod(0o600)
    patch.setenv("PAYMENTS_GUARD", str(path))
    return Guard.from_file(path).digest


def test_a_run_shows_its_guard_and_records_it(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [each for each in here("run", "june.csv", "--max-rows", "1").lines if each["step"] == "guard"]
    guard = guard_of(monkeypatch, 6)
    shown = here("run", "june.csv", "--max-rows", "2").step("guard")
    assert (shown["digest"], shown["rules"]) == (guard, [{"most": {"GHS": "6", "XCD": "6"}}])
    guard_of(monkeypatch, 4)
    stopped = here("run", "--ledger", "june.csv.ledger", "--max-rows", "4")
    assert (stopped.code, stopped.step("finished")["resumable"]) == (Exit.RESUMABLE, "after_change")
    assert "XCD 4.07 is above the most of one payout, 4. Change that first." in stopped.err
    guard_of(monkeypatch, 6)
    done = here("run", "june.csv")
    assert (done.code, done.step("certified")["guard"]) == (Exit.DONE, guard)
    assert_paid_once(here.sandbox, 4)


def test_a_live_total_is_asked_for_again_under_another_guard(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments_async._cli.payouts.run.is_live", lambda key: True)
    totals = ("--confirm-total", "GHS 3.07", "--confirm-total", "XCD 7.21")
    assert here("run", "june.csv", *totals, "--max-rows", "1").code == Exit.RESUMABLE
    assert here("run", "june.csv", "--max-rows", "2").step("confirmed")["how"] == "earlier"
    guard_of(monkeypatch, 6)
    here("run", "june.csv").assert_one_message(Exit.RESUMABLE, "its total is not confirmed")
    assert len(here.sandbox.books.payouts()) == 2
    assert here("run", "june.csv", *totals, "--max-rows", "4").code == Exit.DONE
    assert_paid_once(here.sandbox, 4)
