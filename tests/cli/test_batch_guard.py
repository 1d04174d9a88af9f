"""A batch's guard on the command line: shown before another is recorded, by the next run or by `resume`."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from payments_async import Guard, client
from payments_async._cli._exit_codes import Exit
from payments_async._cli.payouts import machines
from payments_async._cli.payouts.confirm import Confirmation
from payments_async._rate_limit.registry import LimiterRegistry
from payments_async.bulk.workers import _worker
from tests.support.payout_command import Here, assert_paid_once, payouts_file

NAMED = ("--batch-id", "june")


@pytest.fixture
def here(here: Here, monkeypatch: pytest.MonkeyPatch) -> Here:
    """With a file of payouts, and a rate that this process has for itself."""
    payouts_file(here.folder, 4)
    monkeypatch.setenv("PAYMENTS_RATE_SHARE", "1")
    monkeypatch.setattr(_worker, "POLL", 0.05)
    monkeypatch.setattr(_worker, "AGAIN", 0.05)
    return here


def guard_of(patch: pytest.MonkeyPatch, most: int | None) -> str:
    """Give the next commands, as in a process of their own, this guard or none. Returns its digest."""
    patch.setattr(client, "PROCESS", LimiterRegistry())
    if most is None:
        patch.delenv("PAYMENTS_GUARD", raising=False)
        return ""
    path = Path("guard.toml")
    path.write_text(f"decimals = false\n[most]\nXOF = {most}\nGHS = {most}\n")
    path.chmod(0o600)
    patch.setenv("PAYMENTS_GUARD", str(path))
    return Guard.from_file(path).digest


def test_a_file_with_forbidden_rows_is_refused(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    guard_of(monkeypatch, 3)
    refused = here("run", "june.csv")
    assert refused.code == Exit.USAGE
    assert "line 4, amount: the guard: GHS 3.07 is above the most of one payout, 3" in refused.err
    assert here.sandbox.requests == []


def test_a_run_under_other_rules_shows_them_and_records_them(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ("run", "june.csv", "--max-rows")
    first = guard_of(monkeypatch, 5)
    assert not [each for each in here(*run, "1").lines if each.get("step") == "guard"]
    second = guard_of(monkeypatch, 6)
    shown = here(*run, "2").step("guard")
    assert (shown["digest"], shown["before"]) == (second, first)
    assert shown["rules"] == [{"most": {"GHS": "6", "XOF": "6"}}]
    guard_of(monkeypatch, None)
    shown = here(*run, "3").step("guard")
    assert (shown["digest"], shown["before"], shown["rules"]) == (None, second, [])
    guard_of(monkeypatch, 4)
    stopped = here("run", "june.csv")
    assert (stopped.code, stopped.step("finished")["resumable"]) == (Exit.RESUMABLE, "after_change")
    assert "Change that row or the guard and run the same command again" in stopped.err
    guard_of(monkeypatch, 6)
    done = here("run", "june.csv")
    assert done.code == Exit.DONE
    assert f'"guard": "{second}"' in Path(done.step("finished")["certificate"]).read_text()
    assert_paid_once(here.sandbox, 4)


def test_resume_records_the_guard_that_workers_have(
    here: Here, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAYMENTS_LEDGER", database)
    first = guard_of(monkeypatch, 5)
    assert here("run", "june.csv", *NAMED, "--detach").code == Exit.DONE
    second = guard_of(monkeypatch, 6)
    assert here("worker", "--until-idle").step("ended")["left_open"] == ["june"]
    assert first != second
    assert here.sandbox.books.payouts() == []
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE payments.batches SET environment = 'live'")
        resume = ("resume", *NAMED, "--guard")
        refused = here(*resume)
        assert refused.code == Exit.USAGE
        assert "`payments payouts resume --guard --yes --batch-id june`" in refused.err
        monkeypatch.setattr(machines, "terminal", lambda: lambda text: "june\n")
        connection.execute("UPDATE payments.batches SET environment = 'sandbox'")
    assert '"most"' in here(*resume).out
    assert here("worker", "--until-idle").step("ended")["rows"] == 4
    assert_paid_once(here.sandbox, 4)


def test_a_live_batch_is_confirmed_anew_under_another_guard() -> None:
    said = Confirmation("june", "hash", "here", {}, "one")
    assert said.is_same_as(said.to_json())
    assert not said.is_same_as(Confirmation("june", "hash", "here", {}, "two").to_json())
    assert not said.is_same_as(Confirmation("june", "hash", "here", {}).to_json())
