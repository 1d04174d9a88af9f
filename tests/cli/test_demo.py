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

from payments_async._cli import main
from payments_async._cli._exit_codes import Exit
from payments_async._cli.demo import clients
from payments_async.sandbox import PaymentEntry, Sandbox

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
FEW = "8"


def steps(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_every_figure_is_counted_and_each_fault_cost_no_second_payout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[Sandbox] = []

    class Kept(Sandbox):
        def __enter__(self) -> Sandbox:
            opened.append(self)
            return super().__enter__()

    monkeypatch.setattr(clients, "Sandbox", Kept)
    assert main(["demo", "--json", "--payouts", FEW]) == Exit.DONE
    *lines, result = steps(capsys.readouterr().out)
    assert (result["step"], result["ok"]) == ("result", True)
    assert [client["client"] for client in result["clients"]] == ["AsyncPayments", "Payments"]
    for sandbox, client in zip(opened, result["clients"], strict=True):
        assert client["asked"] == client["booked"] == 8
        assert client["asked_sum"] == client["booked_sum"] == str(sandbox.books.total("GHS"))
        assert client["collected"] == "25.5", "as amounts stand on the wire"
        assert (client["retries"], client["replays"], client["refused"]) == (4, 2, 1)
        assert client["requests"] == len(sandbox.requests) == 8 + 4 + len(("create", "retrieve"))
        assert [request.status for request in sandbox.requests].count(429) == 1
        assert client["limit"] == 60_000
        assert client["per_second"] == pytest.approx(8 / client["seconds"])
        assert (client["problems"], sandbox.unused_rules) == ([], [])
    met = [step for step in lines if step.get("step") == "fault"]
    assert len(met) == 8
    assert {(step["fault"], *step["tries"], step["replayed"], step["booked"]) for step in met} == {
        ("lost_response", "reset", "201", True, 1),
        ("cut_body", "reset", "201", True, 1),
        ("http:500", "500", "201", False, 1),
        ("429:1", "429", "201", False, 1),
    }


class Stray(Sandbox):
    """A service with a payout in its books that was never requested."""

    def pay(self, payment_id: str, **options: Any) -> PaymentEntry:
        body = {
            "amount": 1,
            "currency": "GHS",
            "method": "mobile_money",
            "reference": "stray",
            "instrument": {"type": "phone", "phone_number": "+233209999999", "country": "GH"},
        }
        headers = {"Authorization": f"Bearer {self.api_key}", "Content-Type": "application/json"}
        assert self.handle("POST", "/v1/payouts", headers, json.dumps(body).encode()).status == 201
        return super().pay(payment_id, **options)


class Unpaid(Sandbox):
    """A service where the payer does not pay."""

    def pay(self, payment_id: str, **options: Any) -> PaymentEntry:
        return super().pay(payment_id, outcome="fail:CUSTOMER_DECLINED")


def test_books_that_do_not_agree_are_said_clearly_and_exit_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clients, "Sandbox", Stray)
    assert main(["demo", "--payouts", "2"]) == Exit.REFUSED
    out = capsys.readouterr().out
    assert "✗ Books      stray is in the books 1 time(s) more than asked for" in out
    assert "✗ Result     THE BOOKS DO NOT AGREE" in out
    assert "✓ Books" not in out


def test_a_payment_that_does_not_read_back_as_paid_exits_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clients, "Sandbox", Unpaid)
    assert main(["demo", "--payouts", "1"]) == Exit.REFUSED
    out = " ".join(capsys.readouterr().out.split())
    assert "✗ Checkout GHS 25.50: created, paid by a simulated payer, read back as NOT paid" in out
    assert "✗ Books the checkout was paid, and does not read back as paid" in out


@pytest.mark.parametrize("number", [0, 1], ids=["awaited", "blocking"])
def test_a_payout_without_a_known_outcome_exits_3(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clients, "SURFACES", (clients.SURFACES[number],))
    monkeypatch.setattr(clients, "disturbed", lambda rows, seed: {rows[0].reference: "lost_response*9"})
    assert main(["demo", "--payouts", FEW]) == Exit.OUTCOME_UNKNOWN
    assert capsys.readouterr().err.startswith("payments: OutcomeUnknown: payouts.create: no definite answer")


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
    assert shape(done.stdout) == shape(figure())


def figure() -> str:
    (shown,) = re.findall(r"<!-- demo -->\n```text\n(.*?)```", GUIDE, re.DOTALL)
    return str(shown)


def shape(output: str) -> list[str]:
    """The lines without their figures, alignment and progress."""
    lines = [re.sub(r"\d[\d.,]*", "#", " ".join(line.split())) for line in output.splitlines()]
    return [line for line in lines if line and not line.startswith(("·", "─"))]
