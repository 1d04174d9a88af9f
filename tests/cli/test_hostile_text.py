"""What an input or the service says moves no cursor and adds no line, whichever command prints it."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from payments_async.sandbox import Answer, Sandbox, SandboxLimits
from payments_async.testing import SandboxTenant
from tests.sandbox.raw_requests import Api
from tests.support.payout_command import PHONE, Exit, Here, environment_of, main, make_app, payouts_file
from tests.support.servers import PostgresServer

HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b2J\r\n\u2028payments: all 3 rows were paid\u202e\u2066\u200b\x85\x7f"
"""Clears a screen, names a window, adds lines, turns the direction of writing."""
WORDS = "payments: all 3 rows were paid"
FORBIDDEN = re.compile(
    r"\x1b\[2J|\x1b\]|\r(?!\x1b\[)|[\x00-\x08\x0b\x0c\x0e-\x1a\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]"
)
"""What nothing printed may hold; Rich's own sequences for colours and lines are others."""


class HostileSandbox(Sandbox):
    """A service whose ids, words and codes are hostile."""

    def _answer(self, request: Any) -> Answer:
        answer = super()._answer(request)
        marked = json.dumps(HOSTILE).encode()[1:-1]
        body = answer.body.replace(b'"po_', b'"' + marked + b"po_")
        body = re.sub(
            rb'"(message|failure_message|label)":"', rb'"\1":"' + marked.replace(b"\\", rb"\\"), body
        )
        return Answer(answer.status, answer.headers, body)


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Here]:
    """The command at such a service, on what it takes for a terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with HostileSandbox(limits=SandboxLimits.off()) as sandbox:
        for name, value in environment_of(sandbox).items():
            monkeypatch.setenv(name, value)
        yield Here(sandbox, tmp_path, capsys)


def assert_harmless(text: str) -> None:
    """No control of a terminal, and no line that only seems to be one of ours."""
    assert FORBIDDEN.search(text) is None, ascii(text)
    assert not [line for line in re.split(r"[\r\n]", text) if line.startswith(WORDS)]


def walked(here: Here, lines: Sequence[Sequence[str]]) -> str:
    """What these commands say to people and to programs, none of it harmful."""
    shown = ""
    for argv in lines:
        for options in ([], ["--json"]):
            said = here.command(*argv, *options)
            assert "Traceback" not in said.err
            assert_harmless(said.out + said.err)
            shown += said.out + said.err
    return shown


def of_payouts(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    return [["payouts", *argv] for argv in lines]


def failed_batch(here: Here) -> None:
    """A ledger with a failed payout, a rejected row, and one that the list shows otherwise."""
    payouts_file(here.folder, 3)
    here.sandbox.on("payouts.create", amount="1.07").outcome("fail:RECIPIENT_ERROR immediate")
    here.sandbox.on("payouts.create", amount="2.07").respond("http:422")
    here.sandbox.on("payouts.create", amount="3.07").outcome("complete manual")  # however long this takes
    assert here("run", "june.csv", "--json").code != 0
    payout_of(here, "3.07").id += "-other"


def payout_of(here: Here, amount: str) -> Any:
    payouts = here.sandbox._core.world.tenants[here.sandbox.api_key].payouts
    return next(each for each in payouts if each.amount == Decimal(amount))


COMMAND_LINES = {
    "run": [["run", "june.csv"], ["run", "hostile.csv"], ["run", "names.csv", "--dry-run"], ["run", HOSTILE]],
    "status": [["status", "june.csv.ledger"], ["status", HOSTILE]],
    "export": [["export", "june.csv.ledger", "out.csv"], ["export", "june.csv.ledger", HOSTILE]],
    "show": [["show", "june.csv.ledger", row] for row in ("1", "2", "3", HOSTILE)] + [["show", HOSTILE, "1"]],
    "watch": [["watch", HOSTILE]],
    "reconcile": [["reconcile", "june.csv.ledger"], ["reconcile", HOSTILE]],
    "retry-failed": [
        ["retry-failed", "june.csv.ledger", "--dry-run"],
        ["retry-failed", "june.csv.ledger", "--row", "3"],
        ["retry-failed", "june.csv.ledger", "--rejected"],
        ["retry-failed", "june.csv.ledger"],
    ],
}
NAMED = ("--batch-id", "june")
OTHER = ("--batch-id", HOSTILE.strip())
IN_A_DATABASE = {
    "pause": [["pause", *NAMED, "--reason", HOSTILE], ["pause", *OTHER, "--reason", HOSTILE]],
    "run": [["run", *NAMED], ["run", *OTHER], ["run", "--batch-id", f"{HOSTILE}?"]],
    "batches": [["batches"], ["batches", f"postgresql://{HOSTILE}"]],
    "status": [["status", *NAMED], ["status", *OTHER]],
    "confirm": [["confirm", *NAMED], ["confirm", *OTHER, "--confirm-total", HOSTILE]],
    "resume": [["resume", *NAMED], ["resume", *NAMED]],
    "cancel-rest": [["cancel-rest", *NAMED], ["cancel-rest", *OTHER, "--yes"]],
    "forget": [["forget", *OTHER, "--before", day] for day in ("2026-01-01", HOSTILE)],
}
FIELDS = ["--currency", "GHS", "--method", "m", "--instrument", "hostile.json"]
CALLS = {
    "payouts create": [
        ["payouts", "create", "--reference", name, "--amount", amount, *FIELDS]
        for name, amount in (("R-1", "50"), (HOSTILE, "x"), ("R-2", HOSTILE))
    ],
    "payouts find": [["payouts", "find", "R-1"], ["payouts", "find", HOSTILE]],
    "checkouts create": [
        ["checkouts", "create", "--amount", "5", "--currency", name] for name in ("GHS", HOSTILE)
    ],
    "api": [["api", "GET", "/payouts"], ["api", "GET", HOSTILE], ["api", HOSTILE, "/payouts"]],
}
GUARD = ("begin", "show")
ELSEWHERE = {
    "payouts template": "prints the path that it was given on the command line",
    "doctor": "test_a_report_shows_foreign_text_as_escapes",
    "demo": "prints its own plan, at a sandbox of its own",
    "webhooks listen": "test_what_a_delivery_claims_is_harmless",
    "webhooks resend": "test_a_sandbox_that_refuses_is_quoted_on_one_line",
    "sandbox": "prints what it was given on the command line",
    "sandbox exec": "the same",
    "mcp": "speaks to a program, in JSON, which escapes control characters",
}


def test_every_command_is_walked() -> None:
    app = make_app()
    families = [name for name in app if not name.startswith("-")]
    names = {f"{family} {name}" for family in families for name in app[family] if not name.startswith("-")}
    names |= {family for family in families if app[family].default_command}
    walked = {f"payouts {name}" for name in {*COMMAND_LINES, *IN_A_DATABASE}}
    walked |= {f"guard {name}" for name in GUARD}
    assert names == walked | ELSEWHERE.keys() | CALLS.keys()


@pytest.mark.parametrize("name", CALLS)
def test_what_one_call_is_given_and_answered_is_printed_as_escapes(here: Here, name: str) -> None:
    (here.folder / "hostile.json").write_text(json.dumps({"phone_number": HOSTILE, "country": "GH"}))
    here.command(*CALLS["payouts create"][0])
    walked(here, CALLS[name])


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_hostile_cells_and_ids_are_printed_as_escapes(here: Here, name: str) -> None:
    failed_batch(here)
    head = "row_key,amount,currency,method,instrument.phone_number,instrument.country,reference,metadata.x"
    cells = f'"{HOSTILE}",1,XCD,m,{PHONE},BJ,"{HOSTILE}","{HOSTILE}"\n'
    cells += f'"{HOSTILE}",x,"{HOSTILE}",m,{PHONE},BJ,r,y\n'
    (here.folder / "hostile.csv").write_text(f"{head}\n{cells}", newline="")
    (here.folder / "names.csv").write_text(f'{head},"{HOSTILE}","metadata.{HOSTILE}"\n', newline="")
    shown = walked(here, of_payouts(COMMAND_LINES[name]))
    assert "owned" in shown or name in ("status", "check", "watch")
    exported = here.folder / "out.csv"
    if exported.exists():
        assert_harmless(exported.read_bytes().decode().replace("\r\n", "\n"))


def test_what_a_guard_and_a_file_hold_is_printed_as_escapes(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = f"most = {{XCD = 5}}\nsums = [['XCD', 9, 7]]\nmethods = [{json.dumps(HOSTILE)}]\n"
    (here.folder / "guard.toml").write_text(f"{words}state = {json.dumps(f'{HOSTILE}.sqlite')}\n")
    (here.folder / "guard.toml").chmod(0o600)
    monkeypatch.setenv("PAYMENTS_GUARD", "guard.toml")
    lines = [["guard", name, *options] for name in GUARD for options in ([], ["--guard", HOSTILE])]
    assert walked(here, lines).count("owned") > 5


def test_what_a_database_holds_and_an_operator_says_is_printed_as_escapes(
    here: Here, postgres: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAYMENTS_LEDGER", database)
    payouts_file(here.folder, 3)
    for name in ("june", "july"):
        here("run", "june.csv", "--batch-id", name, "--max-rows", "1", "--pay-again")
    name = database.rpartition("/")[2]
    postgres.query(
        name,
        "UPDATE payments_rows SET taken_by = %s, failure_code = %s, state = 'IN_FLIGHT', due = 4e9",
        HOSTILE,
        HOSTILE,
    )
    for table in ("payments_batches", "payments_rows"):
        postgres.query(name, f"UPDATE {table} SET batch_id = %s WHERE batch_id = 'july'", HOSTILE.strip())
    lines = [argv for group in IN_A_DATABASE.values() for argv in group]
    assert walked(here, of_payouts(lines)).count("owned") > 10


def test_an_export_for_programs_holds_what_came_and_no_control(here: Here) -> None:
    failed_batch(here)
    here("export", "june.csv.ledger", "out.jsonl")
    text = (here.folder / "out.jsonl").read_text()
    assert_harmless(text)
    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["payout_id"].startswith(HOSTILE) for row in rows if row["payout_id"]] == [True, True]


def test_what_is_logged_is_on_one_line(here: Here, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    failed_batch(here)
    payout = payout_of(here, "1.07")
    here("reconcile", "june.csv.ledger")
    payout.status, payout.completed_at, payout.failed_at = "completed", payout.created_at, None
    here("reconcile", "june.csv.ledger")
    messages = [record.getMessage() for record in caplog.records]
    assert any("owned" in message for message in messages)
    for message in messages:
        assert PHONE not in message
        assert "\n" not in message
        assert_harmless(message)


def test_a_sandbox_that_refuses_is_quoted_on_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = [(404, {"message": HOSTILE}), (200, {"id": HOSTILE})]
    monkeypatch.setattr(
        "payments_async._cli.webhooks.forward.send",
        lambda *_, **__: (answers[0][0], json.dumps(answers.pop(0)[1]).encode()),
    )
    for code in (Exit.REFUSED, Exit.DONE):
        assert main(["webhooks", "resend", "wh_00000001"]) == code
        said = "".join(capsys.readouterr())
        assert_harmless(said)
        assert "owned" in said


def test_the_requests_of_a_failed_test_are_a_line_each() -> None:
    sandbox = Sandbox()
    tenant = SandboxTenant(sandbox)
    Api(sandbox, tenant.api_key).get("/payouts/%1B%5B2J%0A%E2%80%AEx")
    log = tenant.request_log()
    assert_harmless(log)
    assert len(log.splitlines()) == 1
