"""`payments demo`, whole: what it says, that it is true, and what happens when the books are wrong."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from payments_async.sandbox import PaymentEntry, PayoutEntry, Sandbox
from tests.support.payout_command import Exit, main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")


def test_every_figure_is_counted_and_each_fault_cost_no_second_payout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[Sandbox] = []

    class Kept(Sandbox):
        def __enter__(self) -> Sandbox:
            opened.append(self)
            return super().__enter__()

    monkeypatch.setattr("payments_async._cli.demo.client.Sandbox", Kept)
    assert main(["demo", "--json", "--payouts", "8"]) == Exit.DONE
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    said, (sandbox,) = {line["step"]: line for line in lines}, opened
    assert {line["ok"] for line in lines} == {True}
    assert (said["payouts"]["sent"], said["books"]["payouts"]) == (8, 8)
    assert said["csv"]["sum"] == str(sandbox.books.total("GHS"))
    assert said["checkout"]["amount"] == "25.5", "as amounts stand on the wire"
    counts = said["requests"]
    assert (counts["retries"], counts["replays"], counts["refused"]) == (4, 2, 1)
    assert counts["requests"] == 8 + 4 == len(sandbox.requests) - len(("create", "retrieve"))
    assert sandbox.unused_rules == []
    met = [line for line in lines if line["step"] == "fault"]
    assert [(line["fault"], *line["tries"], line["replayed"], line["booked"]) for line in met] == [
        ("lost_response", "reset", "201", True, 1),
        ("cut_body", "reset", "201", True, 1),
        ("http:500", "500", "201", False, 1),
        ("429:1", "429", "201", False, 1),
    ]


class Stray(Sandbox):
    """A service with a payout in its books that was never requested."""

    def pay(self, payment_id: str, **options: Any) -> PaymentEntry:
        wallet = {"type": "phone", "phone_number": "+233209999999", "country": "GH"}
        body = {"amount": 1, "currency": "GHS", "method": "m", "instrument": wallet, "reference": "stray"}
        headers = {"Authorization": f"Bearer {self.api_key}", "Content-Type": "application/json"}
        assert self.handle("POST", "/v1/payouts", headers, json.dumps(body).encode()).status == 201
        return super().pay(payment_id, **options)


class Unpaid(Sandbox):
    def pay(self, payment_id: str, **options: Any) -> PaymentEntry:
        return super().pay(payment_id, outcome="fail:CUSTOMER_DECLINED")


class Lost(Sandbox):
    """A service that forgets the first payout."""

    def pay(self, payment_id: str, **options: Any) -> PaymentEntry:
        every = self.books.payouts

        def kept(**filters: Any) -> list[PayoutEntry]:
            return [entry for entry in every(**filters) if entry.reference != "demo-000001"]

        self.books.payouts = kept  # type: ignore[method-assign]
        return super().pay(payment_id, **options)


@pytest.mark.parametrize(
    ("service", "said"),
    [
        (Stray, "✗ Books stray is in the books 1 time(s) more than asked for"),
        (Stray, "paid out; GHS"),
        (Lost, "✗ Books demo-000001 is not in the books"),
        (Unpaid, "✗ Checkout GHS 25.50: created, paid by a simulated payer, read back as NOT paid"),
        (Unpaid, "✗ Books the checkout was paid, and does not read back as paid"),
    ],
)
def test_books_that_do_not_agree_are_said_clearly_and_exit_1(
    service: type[Sandbox], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("payments_async._cli.demo.client.Sandbox", service)
    assert main(["demo", "--payouts", "2"]) == Exit.REFUSED
    out = " ".join(capsys.readouterr().out.split())
    assert said in out
    assert "✗ Result THE BOOKS DO NOT AGREE" in out
    assert "✓ Books" not in out


def test_a_payout_without_a_known_outcome_exits_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "payments_async._cli.demo.client.disturbed", lambda rows, seed: {rows[0].reference: "lost_response*9"}
    )
    assert main(["demo", "--payouts", "8"]) == Exit.OUTCOME_UNKNOWN
    assert capsys.readouterr().err.startswith("payments: OutcomeUnknown: payouts.create: no definite answer")


@pytest.mark.slow
def test_processes_that_are_killed_pay_one_batch_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--processes", "3", "--payouts", "4000", "--json"]) == Exit.DONE
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    steps = [line["step"] for line in lines]
    assert 1 <= steps.count("killed") <= 5
    assert steps[-3:] == ["batch", "books", "result"]
    assert (lines[-3]["exit_code"], lines[-2]["payouts"], lines[-1]["ok"]) == (0, 4000, True)


@pytest.mark.slow
def test_the_whole_demonstration_as_the_readme_calls_it_is_as_the_guide_shows_it() -> None:
    commands, *_ = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    called = [shlex.split(line.split("#")[0].split("uv run ")[1]) for line in commands.splitlines()]
    assert called == [["payments", "demo"], ["nox"]]
    command = shutil.which("payments", path=str(Path(sys.executable).parent))
    assert command is not None
    done = subprocess.run(
        [command, *called[0][1:]], capture_output=True, text=True, timeout=300, check=False, encoding="utf-8"
    )
    assert (done.returncode, done.stderr) == (Exit.DONE, "")
    (shown,) = re.findall(r"<!-- demo -->\n```text\n(.*?)```", GUIDE, re.DOTALL)
    assert shape(done.stdout) == shape(shown)


def shape(output: str) -> list[str]:
    """The lines without their figures and alignment."""
    lines = [re.sub(r"\d[\d.,]*", "#", " ".join(line.split())) for line in output.splitlines()]
    return [line for line in lines if line]
