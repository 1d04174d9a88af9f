"""One payout, one checkout and one request from the shell, against the sandbox over its socket."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_async import AsyncPayments
from payments_async._cli._exit_codes import Exit
from payments_async._cli.calls import payouts as one_payout
from payments_async._cli.calls.json_values import without_accounts
from payments_async.sandbox import Sandbox
from tests.support.patience import until
from tests.support.payout_command import COMMAND, PHONE, Here, OnTerminal, Said, live_line, main

ACCOUNT = {"type": "phone", "phone_number": PHONE, "country": "BJ"}


@attrs.frozen
class Shell:
    """`payments` in a folder with `account.json`."""

    here: Here
    sandbox: Sandbox

    def __call__(self, *argv: str) -> Said:
        self.here._capsys.readouterr()
        code = main(list(argv))
        out, err = self.here._capsys.readouterr()
        return Said(code, out, err)

    def create(self, *argv: str, amount: str = "50", reference: str = "R-1") -> Said:
        """One payout."""
        named = ("--reference", reference, "--amount", amount, "--currency", "GHS")
        account = () if "--instrument" in argv else ("--instrument", "account.json")
        return self("payouts", "create", *named, "--method", "mobile_money", *account, *argv)


@pytest.fixture
def shell(here: Here) -> Shell:
    account(here.folder)
    return Shell(here, here.sandbox)


@contextmanager
def scripted(answer: object) -> Iterator[str]:
    """The address of a service that always answers this."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join(60)


def account(folder: Path) -> None:
    """A file with an account, for its owner alone."""
    path = folder / "account.json"
    path.write_text(json.dumps(ACCOUNT))
    path.chmod(0o600)


def test_one_payout_is_created_found_listed_and_waited_for(shell: Shell) -> None:
    made = shell.create()
    assert (made.code, made.err) == (Exit.DONE, "")
    payout = shell.sandbox.books.payouts()[0]
    for text in (f"✓ Created    {payout.id}", "R-1", "GHS 50", "type=phone phone_number=*** country=BJ"):
        assert text in made.out
    assert f"`payments payouts wait {payout.id}`" in made.out
    assert payout.id in shell("payouts", "find", "R-1").out
    assert "1 in all" in shell("payouts", "list").out
    assert "the newest 1; --max-items shows more" in shell("payouts", "list", "--max-items", "1").out
    shell.sandbox.settle(payout.id)
    for named in ([payout.id], ["--reference", "R-1"]):
        ended = shell("payouts", "wait", *named)
        assert (ended.code, "✓ Arrived" in ended.out, "may still fail" in ended.out) == (
            Exit.DONE,
            True,
            False,
        )


def test_the_same_command_again_pays_nothing_twice(shell: Shell) -> None:
    first, again = shell.create("--json").lines[0], shell.create("--json").lines[0]
    assert (first["step"], first["created"], first["ok"]) == ("created", True, True)
    assert (again["step"], again["created"]) == ("exists", False)
    assert first["payout"]["id"] == again["payout"]["id"]
    assert "created earlier; nothing was paid now" in shell.create().out
    shell.create(amount="51").assert_one_message(Exit.REFUSED, "another payout has the reference", "amount")
    assert [each.reference for each in shell.sandbox.books.payouts()] == ["R-1"]


@pytest.mark.parametrize(
    ("argv", "amount", "said"),
    [
        ([], "51", "(amount: not the same): po_"),
        ([], "51", "GHS 50.00; you asked for GHS 51.00"),
        (["--instrument", "other.json"], "50", "(instrument.phone_number: not the same): po_"),
    ],
)
def test_another_payout_under_the_reference_is_named(
    shell: Shell, argv: list[str], amount: str, said: str
) -> None:
    shell.create("--description", "first")
    Path("other.json").write_text(json.dumps({**ACCOUNT, "phone_number": f"{PHONE[:-1]}9"}))
    Path("other.json").chmod(0o600)
    argv = argv if "--description" in argv else [*argv, "--description", "first"]
    again = shell.create(*argv, amount=amount)
    again.assert_one_message(Exit.REFUSED, said, "`payments payouts find R-1` looks it up")
    assert PHONE not in again.err


@pytest.mark.parametrize("word", ["http:500", "lost_response"])
def test_a_payout_to_somebody_else_is_never_said_to_be_paid(shell: Shell, word: str) -> None:
    """The reference was paid to another before; no definite answer came to this request."""
    shell.create()
    Path("other.json").write_text(json.dumps({**ACCOUNT, "phone_number": f"{PHONE[:-1]}9"}))
    Path("other.json").chmod(0o600)
    shell.sandbox.on("payouts.create").respond(word, times=None)
    again = shell.create("--instrument", "other.json", "--deadline", "2s", "--json")
    assert again.code not in (Exit.DONE, Exit.USAGE)
    assert '"ok": true, "created"' not in again.out
    assert len(shell.sandbox.books.payouts()) == 1


@pytest.mark.parametrize("amount", ["150.000", "1'500", "+50", "500-", "1,500"])
def test_an_amount_that_may_mean_another_is_refused(shell: Shell, amount: str) -> None:
    shell.create(amount=amount).assert_one_message(Exit.USAGE, "--amount: ", "nothing was sent")
    assert shell.sandbox.books.payouts() == []


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["payouts", "wait", "po_none"], Exit.REFUSED, "there is no such payout: po_none"),
        (["payouts", "list", "--status", "fialed"], Exit.USAGE, "did you mean 'failed'?"),
        (["payouts", "list", "--status", "zzzz"], Exit.USAGE, "there are cancelled"),
        (["api", "GET", "/payouts/none"], Exit.REFUSED, "the service has nothing at this path"),
    ],
)
def test_what_is_not_there(shell: Shell, argv: list[str], code: Exit, said: str) -> None:
    shell(*argv).assert_one_message(code, said)


@pytest.mark.slow
def test_the_same_payout_that_failed_is_not_paid_again(shell: Shell) -> None:
    shell.sandbox.on("payouts.create", reference="R-1").outcome("fail:CUSTOMER_DECLINED")
    payout = shell.create("--json").lines[0]["payout"]
    shell("payouts", "wait", payout["id"])
    shell.create().assert_one_message(Exit.REFUSED, "it failed", "another --reference, unless", "R-1~g1")


def test_json_has_exact_texts_and_no_account_unless_asked(shell: Shell) -> None:
    payout = shell.create("--json", amount="50.1").lines[0]["payout"]
    assert payout["amount"]["value"] == "50.1"
    assert (payout["instrument"]["phone_number"], payout["is_final"]) == ("***", False)
    assert "T" in payout["created_at"]
    for line in (["find", "R-1"], ["list"]):
        assert PHONE not in shell("payouts", *line, "--json").out
        assert PHONE in shell("payouts", *line, "--json", "--accounts").out
    filtered = shell("payouts", "list", "--json", "--status", "failed", "--currency", "GHS")
    assert [line["step"] for line in filtered.lines] == ["listed"]


def test_a_payout_without_an_end_is_75_and_a_failed_one_is_1(shell: Shell) -> None:
    shell.sandbox.on("payouts.create", reference="R-1").outcome("complete manual")
    payout = shell.create("--json").lines[0]["payout"]
    late = shell("payouts", "wait", payout["id"], "--deadline", "0.1s")
    late.assert_one_message(Exit.RESUMABLE, "the same command waits on")
    shell.sandbox.settle(payout["id"], "fail:RECIPIENT_ERROR")
    failed = shell("payouts", "wait", payout["id"])
    assert (failed.code, "✗ Failed" in failed.out) == (Exit.REFUSED, True)
    assert "failed, RECIPIENT_ERROR" in failed.out
    shell("payouts", "wait").assert_one_message(Exit.USAGE, "give the payout's ID, or its --reference")


def test_a_write_in_doubt_is_resolved_and_paid_once(shell: Shell) -> None:
    shell.sandbox.on("payouts.create").respond("lost_response", times=3)
    made = shell.create()
    assert (made.code, "✓ Created" in made.out) == (Exit.DONE, True)
    assert "no definite answer came: finding out whether it was carried out" in made.err
    assert len(shell.sandbox.books.payouts()) == 1


def test_what_is_found_by_its_reference_may_be_an_earlier_payout(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.create()

    async def resolved(client: AsyncPayments, _: object) -> object:
        return await client.payouts.find("R-1")

    monkeypatch.setattr(AsyncPayments, "resolve", resolved)
    shell.sandbox.on("payouts.create").respond("hang", times=None)
    found = shell.create("--deadline", "1s", "--json")
    assert found.code == Exit.DONE
    assert found.lines[-1]["created"] is None


def test_a_taken_reference_that_cannot_be_read_is_3(shell: Shell) -> None:
    shell.create()
    shell.sandbox.on("payouts.list").respond("http:503", times=None)
    shell.create().assert_one_message(
        Exit.OUTCOME_UNKNOWN, "a payout with this reference exists, and could not be read"
    )


def test_a_signal_after_the_answer_does_not_deny_it(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    async def close(client: AsyncPayments) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)

    monkeypatch.setattr(AsyncPayments, "aclose", close)
    ended = shell.create()
    assert ended.code == Exit.INTERRUPTED
    assert "✓ Created" in ended.out
    assert ended.err.endswith("stopped by Ctrl-C; it was carried out, as shown above\n")


def test_what_stays_in_doubt_is_3_with_the_command_that_looks_it_up(shell: Shell) -> None:
    shell.sandbox.on("payouts.create").respond("lost_response", times=None)
    shell.sandbox.on("payouts.list").respond("http:500", times=None)
    lost = shell.create("--deadline", "0.4s", reference="June's")
    assert lost.code == Exit.OUTCOME_UNKNOWN
    assert "`payments payouts find 'June'\"'\"'s'` looks it up; do not pay it in another way" in lost.err
    shell.sandbox.clear_rules()
    assert shell("payouts", "find", "June's").code == Exit.DONE


def test_a_search_that_finds_none_is_1_and_one_that_ends_early_is_3(shell: Shell) -> None:
    shell("payouts", "find", "R-2").assert_one_message(
        Exit.REFUSED, "no payout has the reference R-2", "15 min"
    )
    answer = {"data": [], "pagination": {"has_more_pages": True, "next_cursor": None}}
    with scripted(answer) as url:
        early = shell("payouts", "find", "R-2", "--base-url", url)
    early.assert_one_message(Exit.OUTCOME_UNKNOWN, "--created-on-or-after with a date")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--confirm", "GHS 50", "--confirm", "GHS 50"], "--confirm"),
        (["--description", "x" * 501], "--description: "),
        (["--instrument", "none.json"], "--instrument: none.json cannot be read (No such file or directory)"),
        (["--instrument", '{"phone_number": "+233"}'], "--instrument: takes a file's name, or - for"),
        (["--instrument", "text.json"], "--instrument: text.json is not JSON"),
        (["--instrument", "list.json"], "--instrument: list.json must hold one JSON object"),
        (["--instrument", "large.json"], "--instrument: large.json has more than 1 MiB"),
        (["--customer", "text.json"], "--customer: text.json is not JSON"),
        (["--instrument", "empty.json"], "--instrument: "),
        (["--instrument", "typo.json"], "--instrument: netwrok is no field; did you mean 'network'?"),
        (["--customer", "odd.json"], "--customer: has a field that is not known; there are address"),
        (
            ["--confirm", "GHS 51"],
            "GHS 51.00 was confirmed, and the payout comes to GHS 50.00; nothing was sent",
        ),
        (["--confirm", "fifty"], "--confirm: 'fifty' is not"),
    ],
)
def test_bad_input_names_the_option_and_sends_nothing(shell: Shell, argv: list[str], said: str) -> None:
    texts = {"text": f"{PHONE} GH", "list": "[1]", "large": " " * 1_100_000}
    texts |= {"empty": "{}", "typo": '{"netwrok": "x"}', "odd": '{"+233": "x"}'}
    for name, text in texts.items():
        Path(f"{name}.json").write_text(text)
        Path(f"{name}.json").chmod(0o600)
    shell.create(*argv).assert_one_message(Exit.USAGE, said)
    assert shell.sandbox.books.payouts() == []


def test_a_file_that_others_can_read_gets_a_word(shell: Shell) -> None:
    Path("account.json").chmod(0o644)
    made = shell.create()
    assert (made.code, made.err) == (
        Exit.DONE,
        "payments: account.json: others on this machine may read it; `chmod 600` keeps it yours\n",
    )


def test_account_data_may_come_from_the_standard_input(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = io.TextIOWrapper(io.BytesIO(json.dumps(ACCOUNT).encode()))
    monkeypatch.setattr(sys, "stdin", typed)
    Path("customer.json").write_text('{"first_name": "Ada", "email": "ada@shop.test"}')
    Path("customer.json").chmod(0o600)
    made = shell.create("--instrument", "-", "--customer", "customer.json", "--accounts", "--json")
    assert (made.code, made.err) == (Exit.DONE, "")
    assert made.lines[0]["payout"]["instrument"]["phone_number"] == PHONE
    assert made.lines[0]["payout"]["customer"]["email"] == "ada@shop.test"


def test_a_service_that_is_away_is_75_and_one_that_refuses_the_key_is_2(shell: Shell) -> None:
    away = shell.create("--base-url", "http://127.0.0.1:1/v1", "--deadline", "1s")
    away.assert_one_message(Exit.RESUMABLE, "run the same command again")
    shell.sandbox.revoke_key(shell.sandbox.api_key)
    shell.create().assert_one_message(Exit.USAGE, "API key")


def test_a_guard_refuses_a_payout_and_a_request(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("guard.toml").write_text('most = {GHS = "40"}\n')
    monkeypatch.setenv("PAYMENTS_GUARD", "guard.toml")
    shell.create().assert_one_message(Exit.REFUSED, "GuardRefused", "GHS 50 is above the most")
    Path("body.json").write_text(json.dumps({"amount": 50, "currency": "GHS", "reference": "R-2"}))
    Path("body.json").chmod(0o600)
    request = ("api", "POST", "/payouts", "--write", "--body", "body.json")
    shell(*request).assert_one_message(Exit.REFUSED, "GuardRefused")
    assert shell.sandbox.books.payouts() == []


# A live key


def test_a_live_key_wants_the_amount_typed_back(tmp_path: Path) -> None:
    account(tmp_path)
    argv = ("create", "--reference", "R-1", "--amount", "50", "--currency", "GHS", "--method", "mobile_money")
    argv += ("--instrument", "account.json")
    with Sandbox() as sandbox, live_line(sandbox) as variables:
        with OnTerminal(variables, *argv, cwd=tmp_path) as terminal:
            seen = terminal.until("Type the GHS total to pay it: ")
            assert "This key is live: 1 payout of real money, GHS 50.00 in all." in seen
            assert sandbox.books.payouts() == []
            terminal.type("50\n")
            assert terminal.end() == Exit.DONE
        assert len(sandbox.books.payouts()) == 1


def test_without_a_terminal_a_live_key_wants_the_option(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_payout, "is_live", lambda key: True)
    shell.create().assert_one_message(Exit.USAGE, "To pay it: --confirm 'GHS 50'", "nothing was sent")
    Path("body.json").write_text(json.dumps({"amount": 50, "currency": "GHS"}))
    Path("body.json").chmod(0o600)
    request = ("api", "POST", "/payouts", "--write", "--body", "body.json")
    shell(*request).assert_one_message(Exit.USAGE, "To pay it: --confirm 'GHS 50'")
    assert shell.sandbox.requests == []
    paid = shell.create("--confirm", "GHS 50.00")
    assert "✓ Confirmed  GHS 50.00, as given with --confirm" in paid.out


# Ctrl-C


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.OUTCOME_UNKNOWN)]
)
def test_a_signal_during_a_payout_says_how_to_look_it_up(shell: Shell, number: int, code: Exit) -> None:
    shell.sandbox.on("payouts.create").respond("slow:600", times=None)
    argv = ("create", "--reference", "R-1", "--amount", "50", "--currency", "GHS", "--method", "mobile_money")
    said = interrupted(shell, number, *argv, "--instrument", "account.json")
    assert said.code == code
    assert (
        "after it had been sent: it may be carried out. `payments payouts find R-1` looks it up" in said.err
    )
    assert shell("payouts", "find", "R-1").code == Exit.DONE


def test_ctrl_c_during_a_read_is_130(shell: Shell) -> None:
    shell.sandbox.on("payouts.list").respond("slow:600", times=None)
    said = interrupted(shell, signal.SIGINT, "find", "R-1")
    assert (said.code, said.err) == (
        Exit.INTERRUPTED,
        "payments: stopped by Ctrl-C; nothing was carried out\n",
    )


def interrupted(shell: Shell, number: int, *argv: str) -> Said:
    """What a command says that gets a signal once its request has come."""
    with subprocess.Popen(
        [*COMMAND, *argv],
        env=dict(os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        asyncio.run(until(lambda: shell.sandbox.requests or process.poll() is not None))
        process.send_signal(number)
        out, err = process.communicate(timeout=300)
    return Said(process.returncode, out, err)


# Checkouts, requests


def test_a_checkout_prints_its_link(shell: Shell) -> None:
    made = shell("checkouts", "create", "--amount", "50", "--currency", "GHS")
    assert made.code == Exit.DONE
    assert "✓ Link       http://127.0.0.1:" in made.out
    (line,) = shell("checkouts", "create", "--amount", "50", "--currency", "GHS", "--json").lines
    assert (line["step"], set(line)) == ("link", {"about", "step", "ok", "url", "id", "payment_id"})
    assert line["url"].endswith(line["id"])
    Path("customer.json").write_text('{"email": "ada@shop.test"}')
    with_customer = ("--customer", "customer.json", "--expires-in-minutes", "10")
    wrong = shell("checkouts", "create", "--amount", "50", "--currency", "GHS", *with_customer)
    assert (wrong.code, "--expires-in-minutes: " in wrong.err) == (Exit.USAGE, True)


def test_a_request_prints_the_answer_exactly_and_masks_accounts(shell: Shell) -> None:
    shell.create(amount="50.1")
    shown = shell("api", "get", "/payouts?status=pending&currency=GHS")
    assert shown.code == Exit.DONE
    assert '"value": 50.1,' in shown.out
    assert json.loads(shown.out)["data"][0]["instrument"]["phone_number"] == "***"
    assert PHONE in shell("api", "GET", "/payouts", "--accounts").out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["POST", "/payouts"], "POST may change records and move money: add --write if it is meant"),
        (["DELETE", "/payouts/1"], "DELETE may change records"),
        (["GET", "/payouts", "--body", "account.json"], "GET takes no --body"),
        (["GET", "/payouts?a=1&a=2"], "names a parameter twice"),
        (["GET", "payouts"], "path: must start with a slash"),
        (["NOPE", "/payouts", "--write"], "method: must be one of GET"),
        (["POST", "/payouts", "--write"], "a payout needs an amount (a number) and a currency"),
        (["POST", "/%70ayouts", "--write"], "a payout needs an amount (a number) and a currency"),
        (["POST", "/Payouts;a/", "--write"], "a payout needs an amount (a number) and a currency"),
        (["POST", "/refunds", "--write", "--confirm", "GHS 50"], "--confirm is for POST /payouts alone"),
        (["POST", "/payouts", "--write", "--body", "account.json"], "a payout needs an amount"),
    ],
)
def test_a_request_that_is_not_allowed_or_not_possible(shell: Shell, argv: list[str], said: str) -> None:
    shell("api", *argv).assert_one_message(Exit.USAGE, said)
    assert shell.sandbox.requests == []


def test_a_write_without_an_answer_is_3_and_the_same_key_repeats_it(shell: Shell) -> None:
    body = {
        "reference": "R-9",
        "amount": 50,
        "currency": "GHS",
        "method": "mobile_money",
        "instrument": ACCOUNT,
    }
    Path("body.json").write_text(json.dumps(body))
    Path("body.json").chmod(0o600)
    request = ("api", "POST", "/payouts", "--write", "--body", "body.json", "--idempotency-key", "key-of-R-9")
    shell.sandbox.on("payouts.create").respond("lost_response", times=3)
    lost = shell(*request)
    lost.assert_one_message(Exit.OUTCOME_UNKNOWN, "--idempotency-key key-of-R-9", "payments payouts find R-9")
    again = shell(*request)
    assert (again.code, json.loads(again.out)["data"]["reference"]) == (Exit.DONE, "R-9")
    assert len(shell.sandbox.books.payouts()) == 1
    shell.sandbox.on("checkouts.create").respond("lost_response", times=3)
    Path("body.json").write_text('{"amount": 50, "currency": "GHS"}')
    other = shell("api", "POST", "/payment/checkouts", "--write", "--body", "body.json")
    assert (other.code, "looks it up" in other.err) == (Exit.OUTCOME_UNKNOWN, False)


def test_what_is_masked() -> None:
    record: dict[str, Any] = {
        "message": "Payout created",
        "webhook_url": "https://shop.test/hooks/8f7a6b5c4d3e2f1a0b9c",
        "failure": {"code": {"value": "X", "message": "of +233"}, "message": "of +233"},
        "next_action": {"type": "none", "url": "https://bank.test/token"},
        "metadata": {"name": "Ada"},
        "customer": {"id": "cus_1", "email": "ada@shop.test", "first_name": None},
        "instrument": {"type": "bank_account", "iban": "GB33BUKB20201555555555"},
        "checkout": {"url": "https://pay.test/cs_1"},
        "items": [{"phone": "+233"}, 5],
    }
    assert without_accounts(record) == {
        "message": "Payout created",
        "webhook_url": "https://shop.test/hooks/***",
        "failure": {"code": {"value": "X", "message": "***"}, "message": "***"},
        "next_action": {"type": "none", "url": "***"},
        "metadata": "***",
        "customer": {"id": "cus_1", "email": "***", "first_name": None},
        "instrument": {"type": "bank_account", "iban": "***"},
        "checkout": {"url": "https://pay.test/cs_1"},
        "items": [{"phone": "***"}, 5],
    }


# Events of the sandbox


@pytest.mark.parametrize(
    ("event", "status"), [("payout.completed", "completed"), ("payout.failed", "failed")]
)
def test_a_payout_ends_as_it_is_told(shell: Shell, event: str, status: str) -> None:
    shell.sandbox.on("payouts.create").outcome("complete manual", times=None)
    shell.create()
    (line,) = shell("trigger", event, "--reference", "R-1", "--json").lines
    assert (line["step"], line["event"], line["status"]) == ("triggered", event, status)
    assert shell.sandbox.books.payouts()[0].status == status
    shell("trigger", event, "--reference", "R-1").assert_one_message(
        Exit.REFUSED, "the sandbox refused", status
    )


@pytest.mark.parametrize(
    ("event", "status"),
    [
        ("payment.completed", "completed"),
        ("payment.attempt.failed", "pending"),
        ("payment.expired", "expired"),
    ],
)
def test_a_payment_ends_as_it_is_told(shell: Shell, event: str, status: str) -> None:
    (made,) = shell("checkouts", "create", "--amount", "50", "--currency", "GHS", "--json").lines
    said = shell("trigger", event, "--id", made["payment_id"])
    assert said.code == Exit.DONE, said
    assert f"{event}: {made['payment_id']} is {status}" in said.out
    if event == "payment.completed":
        refunded = shell("trigger", "payment.refunded", "--id", made["payment_id"], "--json").lines
        assert refunded[0]["status"] == "refunded"


def test_a_payment_fails_unless_its_payer_may_try_again(shell: Shell) -> None:
    (made,) = shell("checkouts", "create", "--amount", "50", "--currency", "GHS", "--json").lines
    said = shell("trigger", "payment.failed", "--id", made["payment_id"])
    said.assert_one_message(Exit.REFUSED, "so it does not fail; trigger payment.attempt.failed")
    Path("body.json").write_text('{"amount": 50, "currency": "GHS"}')
    intent = json.loads(shell("api", "POST", "/payment/intents", "--write", "--body", "body.json").out)[
        "data"
    ]
    (line,) = shell("trigger", "payment.failed", "--id", intent["id"], "--json").lines
    assert line["status"] == "failed"


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["payout.lost", "--id", "po_1"], Exit.USAGE, "is none of payout.completed"),
        (["payout.failed"], Exit.USAGE, "give the record's --reference, or its --id"),
        (["payout.failed", "--id", "../x"], Exit.USAGE, "must be as the sandbox shows it"),
        (["payout.failed", "--id", "po_1"], Exit.REFUSED, "no record 'po_1'"),
        (
            ["payout.failed", "--reference", "R-5"],
            Exit.REFUSED,
            "no payout of the sandbox has the reference R-5",
        ),
    ],
)
def test_a_trigger_that_is_not_possible(shell: Shell, argv: list[str], code: Exit, said: str) -> None:
    shell("trigger", *argv).assert_one_message(code, said)


def test_a_trigger_is_for_the_sandbox_only(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    argv = ("trigger", "payout.failed", "--reference", "R-1")
    with live_line(shell.sandbox) as variables, monkeypatch.context() as patch:
        patch.setenv("PAYMENTS_API_KEY", variables["PAYMENTS_API_KEY"])
        shell(*argv).assert_one_message(Exit.USAGE, "is a live key", "in `payments sandbox` only")
    with scripted({"data": []}) as url:
        shell(*argv, "--sandbox", url).assert_one_message(Exit.USAGE, "is not `payments sandbox`")
    monkeypatch.setenv("PAYMENTS_BASE_URL", "http://127.0.0.1:1/v1")
    shell(*argv).assert_one_message(Exit.REFUSED, "no sandbox answers at 127.0.0.1:1")


def test_help_has_two_groups(shell: Shell) -> None:
    said = shell("payouts", "--help").out
    one, batch = said.index("One payout"), said.index("A batch")
    assert one < said.index("create ") < said.index("wait ") < batch < said.index("run ")
