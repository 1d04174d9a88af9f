"""One payout, one checkout and one request from the shell, against the sandbox over its socket."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_async import AsyncPayments
from payments_async.sandbox import Answer, Sandbox
from tests.support.patience import until
from tests.support.payout_command import PHONE, Exit, Here, OnTerminal, Said, live_line, started

ACCOUNT = {"type": "phone", "phone_number": PHONE, "country": "BJ"}
OTHER = {**ACCOUNT, "phone_number": f"{PHONE[:-1]}9"}
FILES = {
    "account": json.dumps(ACCOUNT),
    "other": json.dumps(OTHER),
    "national": json.dumps({**ACCOUNT, "phone_number": "0244123456", "country": "GH"}),
    "checkout": '{"amount": 50, "currency": "GHS"}',
    "text": f"{PHONE} GH",
    "list": "[1]",
    "empty": "{}",
    "odd": '{"+233": "x"}',
}
ONE = (
    *("create", "--reference", "R-1", "--amount", "50", "--currency", "GHS"),
    *("--method", "mobile_money", "--instrument", "account.json"),
)


@attrs.frozen
class Shell:
    """`payments` in a folder with `FILES`, each `NAME.json`."""

    here: Here
    sandbox: Sandbox

    def __call__(self, *argv: str) -> Said:
        return self.here.command(*argv)

    def create(self, *argv: str, amount: str = "50", reference: str = "R-1") -> Said:
        named = ("--reference", reference, "--amount", amount, "--currency", "GHS")
        account = () if "--instrument" in argv else ("--instrument", "account.json")
        return self("payouts", "create", *named, "--method", "mobile_money", *account, *argv)

    @property
    def paid(self) -> list[str | None]:
        return [entry.reference for entry in self.sandbox.books.payouts()]


def scripted(patch: pytest.MonkeyPatch, record: object) -> None:
    answer = Answer(200, {"Content-Type": "application/json"}, json.dumps(record).encode())
    patch.setattr(Sandbox, "_answer", lambda *_: answer)


def write_files(folder: Path) -> None:
    for name, text in FILES.items():
        path = folder / f"{name}.json"
        path.write_text(text)
        path.chmod(0o600)


@pytest.fixture
def shell(here: Here) -> Shell:
    write_files(here.folder)
    return Shell(here, here.sandbox)


def test_one_payout_is_created_found_and_waited_for(shell: Shell) -> None:
    made = shell.create()
    assert (made.code, made.err) == (Exit.DONE, "")
    (payout,) = shell.sandbox.books.payouts()
    for text in (f"✓ Created    {payout.id}", "R-1", "GHS 50.00", "It may still fail: --wait 15m"):
        assert text in made.out
    assert f"✓ Found      {payout.id}" in shell("payouts", "find", "R-1").out
    shell.sandbox.settle(payout.id)
    for ended in (shell.create("--wait", "1m"), shell("payouts", "find", "R-1", "--wait", "1m")):
        assert (ended.code, "✓ Arrived" in ended.out, "may still" in ended.out) == (Exit.DONE, True, False)
    assert "may still" not in shell("payouts", "find", "R-1").out
    assert shell.paid == ["R-1"]


def test_json_has_exact_texts_and_no_account_unless_asked(shell: Shell) -> None:
    (first,) = shell.create("--json", amount="50.1").lines
    (again,) = shell.create("--json", amount="50.1").lines
    payout = first["payout"]
    assert (first["step"], first["created"], first["ok"]) == ("created", True, True)
    assert (again["step"], again["created"], again["payout"]["id"]) == ("exists", False, payout["id"])
    assert (payout["amount"]["value"], payout["is_final"]) == ("50.1", False)
    assert (payout["instrument"]["phone_number"], "T" in payout["created_at"]) == ("***", True)
    shown = shell("payouts", "find", "R-1", "--json", "--accounts")
    assert shown.lines[0]["payout"]["instrument"]["phone_number"] == PHONE


def test_a_payout_without_an_end_is_75_and_a_failed_one_is_1(shell: Shell) -> None:
    shell.sandbox.on("payouts.create").outcome("complete manual")
    late = shell.create("--wait", "0.1s")
    assert (late.code, "✓ Created" in late.out, "--wait" in late.out) == (Exit.RESUMABLE, True, False)
    assert "not ended after 0.1 s (pending); the same command waits on" in late.err
    shell.sandbox.settle(shell.sandbox.books.payouts()[0].id, "fail:RECIPIENT_ERROR")
    failed = shell("payouts", "find", "R-1", "--wait", "1m")
    assert (failed.code, "✗ Failed" in failed.out) == (Exit.REFUSED, True)
    assert "failed, RECIPIENT_ERROR" in failed.out
    again = shell.create()
    assert (again.code, shell.paid) == (Exit.REFUSED, ["R-1"])
    assert "it failed; to pay again use another --reference" in again.err
    assert "R-1~g1" in again.err


# Refused before anything is sent


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        *((["--amount", text], "--amount: ") for text in ("150.000", "1'500", "+50", "500-", "1,500", "0")),
        (["--amount", "1e3"], "--amount: is '1e3', which is no decimal number: write plain digits"),
        (["--amount", "fifty"], "--amount: is 'fifty', which is no decimal number"),
        (["--amount", "50.001"], "--amount: "),
        (["--confirm", "GHS 50", "--confirm", "GHS 50"], "--confirm"),
        (["--confirm", "fifty"], "--confirm: 'fifty' is not"),
        (["--confirm", "GHS 51"], "GHS 51.00 was confirmed, and the payout comes to GHS 50.00"),
        (["--description", "x" * 501], "--description: "),
        (["--wait", "soon"], "'soon' is not a duration"),
        (["--instrument", "none.json"], "--instrument: none.json cannot be read (No such file or directory)"),
        (["--instrument", f'{{"phone_number": "{PHONE}"}}'], "--instrument: takes a file's name, or - for"),
        (["--instrument", "text.json"], "--instrument: text.json is not JSON"),
        (["--instrument", "list.json"], "--instrument: list.json must hold one JSON object"),
        (["--instrument", "empty.json"], "--instrument: "),
        (["--instrument", "odd.json"], "--instrument: has a field that is not known; there are account_name"),
    ],
)
def test_bad_input_names_the_option_and_sends_nothing(shell: Shell, argv: list[str], said: str) -> None:
    named = ["--reference", "R-1", "--currency", "GHS", "--method", "mobile_money"]
    amount = [] if "--amount" in argv else ["--amount", "50"]
    account = [] if "--instrument" in argv else ["--instrument", "account.json"]
    refused = shell("payouts", "create", *named, *amount, *account, *argv)
    refused.assert_one_message(Exit.USAGE, said)
    assert shell.sandbox.requests == []


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["POST", "/payouts"], "POST may change records and move money: add --write if it is meant"),
        (["DELETE", "/payouts/1"], "DELETE may change records"),
        (["GET", "/payouts", "--body", "account.json"], "GET takes no --body"),
        (["GET", "/payouts?a=1&a=2"], "names a parameter twice"),
        (["GET", "payouts"], "path: must start with a slash"),
        (["NOPE", "/payouts", "--write"], "method: must be one of GET"),
        *(
            (["POST", path, "--write", "--body", "account.json"], "is sent by `payments payouts create`")
            for path in ("/payouts", "/%70ayouts", "/Payouts;a/")
        ),
    ],
)
def test_a_request_that_is_not_allowed_or_not_possible(shell: Shell, argv: list[str], said: str) -> None:
    shell("api", *argv).assert_one_message(Exit.USAGE, said)
    assert shell.sandbox.requests == []


def test_what_is_probably_a_slip_is_named_before_it_is_sent(shell: Shell) -> None:
    made = shell.create("--instrument", "national.json")
    doubt = "is this right? instrument.phone_number does not begin with +233, the calling code of GH"
    assert (made.code, doubt in made.err, "0244" in made.err) == (Exit.DONE, True, False)


def test_a_file_that_others_can_read_gets_a_word(shell: Shell) -> None:
    Path("account.json").chmod(0o644)
    said = "payments: account.json: others on this machine may read it; `chmod 600` keeps it yours\n"
    assert shell.create().err == said


def test_account_data_may_come_from_the_standard_input(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FILES["account"].encode())))
    made = shell.create("--instrument", "-", "--accounts", "--json")
    assert (made.code, made.err) == (Exit.DONE, "")
    assert made.lines[0]["payout"]["instrument"]["phone_number"] == PHONE


# Refused by the service, the guard, or a reference that is taken


@pytest.mark.parametrize(
    ("argv", "amount", "said"),
    [
        ([], "51", "another payout has the reference (amount differ)"),
        (["--instrument", "other.json"], "50", "(instrument.phone_number differ)"),
    ],
)
def test_another_payout_under_the_reference_is_refused(
    shell: Shell, argv: list[str], amount: str, said: str
) -> None:
    shell.create()
    again = shell.create(*argv, amount=amount)
    again.assert_one_message(Exit.REFUSED, said, "this request was not carried out")
    assert shell.paid == ["R-1"]


@pytest.mark.parametrize("word", ["http:500", "lost_response"])
def test_a_payout_to_somebody_else_is_never_said_to_be_paid(shell: Shell, word: str) -> None:
    """The reference was paid to another before; no definite answer came to this request."""
    shell.create()
    shell.sandbox.on("payouts.create").respond(word, times=None)
    again = shell.create("--instrument", "other.json", "--json")
    assert again.code not in (Exit.DONE, Exit.USAGE)
    assert '"ok": true, "created"' not in again.out
    assert shell.paid == ["R-1"]


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["payouts", "find", "R-2"], Exit.REFUSED, "no payout has the reference R-2; one sent in"),
        (["api", "GET", "/payouts/none"], Exit.REFUSED, "the service has nothing there"),
        (["payouts", *ONE, "--base-url", "http://127.0.0.1:1/v1"], Exit.RESUMABLE, "run the same command"),
    ],
)
def test_what_is_not_there(shell: Shell, argv: list[str], code: Exit, said: str) -> None:
    shell(*argv).assert_one_message(code, said)


def test_a_guard_refuses_a_payout(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("guard.toml").write_text('most = {GHS = "40"}\n')
    monkeypatch.setenv("PAYMENTS_GUARD", "guard.toml")
    shell.create().assert_one_message(Exit.REFUSED, "GuardRefused", "GHS 50 is above the most")
    assert shell.paid == []


# Without a definite answer


def test_a_write_in_doubt_is_resolved_and_paid_once(shell: Shell) -> None:
    shell.sandbox.on("payouts.create").respond("lost_response", times=3)
    made = shell.create()
    assert (made.code, "✓ Created" in made.out) == (Exit.DONE, True)
    assert "no definite answer came: finding out whether it was carried out" in made.err
    assert shell.paid == ["R-1"]


def test_what_is_found_by_its_reference_may_be_an_earlier_payout(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.create()

    async def resolved(client: AsyncPayments, _: object) -> object:
        return await client.payouts.find("R-1")

    monkeypatch.setattr(AsyncPayments, "resolve", resolved)
    shell.sandbox.on("payouts.create").respond("lost_response", times=None)
    found = shell.create("--json")
    assert (found.code, found.lines[-1]["created"]) == (Exit.DONE, None)


def test_a_taken_reference_that_cannot_be_read_is_75(shell: Shell) -> None:
    shell.create()
    shell.sandbox.on("payouts.list").respond("http:503", times=None)
    shell.create().assert_one_message(Exit.RESUMABLE, "run the same command again")
    assert shell.paid == ["R-1"]


def test_what_stays_in_doubt_is_3_with_the_command_that_looks_it_up(shell: Shell) -> None:
    shell.sandbox.on("payouts.create").respond("lost_response", times=None)
    shell.sandbox.on("payouts.list").respond("http:500", times=None)
    lost = shell.create(reference="June's")
    assert lost.code == Exit.OUTCOME_UNKNOWN
    assert "`payments payouts find 'June'\"'\"'s'` looks it up; do not pay it in another way" in lost.err
    shell.sandbox.clear_rules()
    assert shell("payouts", "find", "June's").code == Exit.DONE


def test_a_search_that_cannot_read_the_whole_list_is_3(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, {"data": [], "pagination": {"has_more_pages": True, "next_cursor": None}})
    early = shell("payouts", "find", "R-2")
    early.assert_one_message(Exit.OUTCOME_UNKNOWN, "--created-on-or-after with a date")


def test_a_write_without_an_answer_is_3_and_the_same_key_repeats_it(shell: Shell) -> None:
    request = ("api", "POST", "/payment/checkouts", "--write", "--body", "checkout.json")
    shell.sandbox.on("checkouts.create").respond("lost_response", times=3)
    key = ("--idempotency-key", "key-of-R-9")
    shell(*request, *key).assert_one_message(Exit.OUTCOME_UNKNOWN, "--idempotency-key key-of-R-9")
    again = shell(*request, *key)
    assert (again.code, "url" in json.loads(again.out)["data"]["checkout"]) == (Exit.DONE, True)
    assert len(shell.sandbox.books.payments()) == 1


# A live key, and signals


def test_a_live_key_wants_the_amount_typed_back(tmp_path: Path) -> None:
    write_files(tmp_path)
    with Sandbox() as sandbox, live_line(sandbox) as variables:
        with OnTerminal(variables, *ONE, cwd=tmp_path) as terminal:
            seen = terminal.until("Type the GHS total to pay it: ")
            assert "This key is live: 1 payout of real money, GHS 50.00 in all." in seen
            assert sandbox.books.payouts() == []
            terminal.type("50\n")
            assert terminal.end() == Exit.DONE
        assert len(sandbox.books.payouts()) == 1


def test_without_a_terminal_a_live_key_wants_the_option(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live_line(shell.sandbox) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        shell.create().assert_one_message(Exit.USAGE, "To pay it: --confirm 'GHS 50.00'", "nothing was sent")
        assert shell.sandbox.requests == []
        assert "✓ Confirmed  GHS 50.00, as given with --confirm" in shell.create("--confirm", "GHS 50").out


@pytest.mark.parametrize(
    ("number", "argv", "code", "said"),
    [
        (signal.SIGINT, ONE, Exit.OUTCOME_UNKNOWN, "stopped by Ctrl-C after it had been sent"),
        (signal.SIGTERM, ONE, Exit.OUTCOME_UNKNOWN, "it may be carried out. `payments payouts find R-1`"),
        (signal.SIGINT, ("find", "R-1"), Exit.INTERRUPTED, "payments: stopped by Ctrl-C\n"),
    ],
)
def test_a_signal_during_a_call_says_what_is_known(
    shell: Shell, number: int, argv: tuple[str, ...], code: Exit, said: str
) -> None:
    for operation in ("payouts.create", "payouts.list"):
        shell.sandbox.on(operation).respond("slow:600", times=None)
    with started({}, *argv, cwd=shell.here.folder) as process:
        asyncio.run(until(lambda: shell.sandbox.requests or process.poll() is not None))
        process.send_signal(number)
        _, err = process.communicate(timeout=300)
    assert (process.returncode, said in err) == (code, True), err


def test_a_signal_while_a_doubt_is_resolved_says_that_it_may_be_paid(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(client: AsyncPayments, _: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)

    monkeypatch.setattr(AsyncPayments, "resolve", resolve)
    shell.sandbox.on("payouts.create").respond("lost_response", times=None)
    ended = shell.create()
    assert (ended.code, shell.paid) == (Exit.OUTCOME_UNKNOWN, ["R-1"])
    assert "it may be carried out. `payments payouts find R-1` looks it up" in ended.err


def test_a_signal_after_the_answer_does_not_deny_it(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    async def close(client: AsyncPayments) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)

    monkeypatch.setattr(AsyncPayments, "aclose", close)
    ended = shell.create()
    assert (ended.code, "✓ Created" in ended.out) == (Exit.INTERRUPTED, True)
    assert ended.err == "payments: stopped by Ctrl-C\n"


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command meets on Windows: no owners and modes of files, no signal handlers of a loop."""

    def refused(*_: object) -> None:
        raise NotImplementedError

    monkeypatch.delattr(os, "geteuid")
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "uvloop", None)
    for name in ("add_signal_handler", "remove_signal_handler"):
        monkeypatch.setattr(asyncio.SelectorEventLoop, name, refused)


@pytest.mark.usefixtures("windows")
def test_one_payout_is_sent_and_stopped_on_windows_as_elsewhere(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(client: AsyncPayments, _: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)

    for name, text in {"guard.toml": 'most = { GHS = "60" }', "account.json": FILES["account"]}.items():
        path = shell.here.folder / name
        path.write_text(text)
        path.chmod(0o666)
    monkeypatch.setenv("PAYMENTS_GUARD", "guard.toml")
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    made = shell.create()
    assert (made.code, made.err, shell.paid) == (Exit.DONE, "", ["R-1"])
    assert shell("api", "GET", "/payouts").code == Exit.DONE
    shell.create(reference="R-2", amount="61").assert_one_message(Exit.REFUSED, "GuardRefused")
    monkeypatch.setattr(AsyncPayments, "resolve", resolve)
    shell.sandbox.on("payouts.create").respond("lost_response", times=None)
    stopped = shell.create(reference="R-2")
    assert (stopped.code, shell.paid) == (Exit.OUTCOME_UNKNOWN, ["R-1", "R-2"])
    assert "stopped by Ctrl-C after it had been sent" in stopped.err
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize("line", ["run june.csv", "status june.ledger", "batches postgresql://h/d"])
def test_a_batch_is_refused_on_windows_in_one_sentence(shell: Shell, line: str) -> None:
    said = shell("payouts", *line.split())
    said.assert_one_message(Exit.USAGE, "payments: a batch needs Linux or macOS: Windows has no clock ")
    assert (said.out, os.listdir(shell.here.folder).count("june.csv.ledger")) == ("", 0)


# Checkouts, requests


def test_a_checkout_prints_its_link(shell: Shell) -> None:
    create = ("checkouts", "create", "--amount", "50", "--currency", "GHS")
    made = shell(*create)
    assert (made.code, "✓ Link       http://127.0.0.1:" in made.out) == (Exit.DONE, True)
    (line,) = shell(*create, "--json").lines
    assert (line["step"], set(line)) == ("link", {"about", "step", "ok", "url", "id", "payment_id"})
    assert line["url"].endswith(line["id"])
    shell(*create, "--return-url", "https://x.test/" + "x" * 2048).assert_one_message(
        Exit.USAGE, "--return-url: "
    )


def test_a_request_prints_the_answer_exactly_and_masks_accounts(shell: Shell) -> None:
    shell.create(amount="50.1")
    shown = shell("api", "get", "/payouts?status=pending&currency=GHS")
    assert (shown.code, '"value": 50.1,' in shown.out) == (Exit.DONE, True)
    assert json.loads(shown.out)["data"][0]["instrument"]["phone_number"] == "***"
    assert PHONE in shell("api", "GET", "/payouts", "--accounts").out


def test_json_is_indented_on_a_terminal_and_on_one_line_elsewhere(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(
        monkeypatch, {"data": [{"id": "po_1", "rate": 1.5, "\x1b[2J": "a\nb"}, 7], "meta": {}, "links": []}
    )
    (line,) = shell("api", "GET", "/payouts").out.splitlines()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    shown = shell("api", "GET", "/payouts").out
    assert json.loads(shown) == json.loads(line)
    assert shown == (
        '{\n  "data": [\n    {\n      "id": "po_1",\n      "rate": 1.5,\n'
        '      "\\u001b[2J": "a\\nb"\n    },\n    7\n  ],\n  "meta": {},\n  "links": []\n}\n'
    )


def test_what_is_masked_of_an_answer(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
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
    scripted(monkeypatch, record)
    shown = shell("api", "GET", "/payouts")
    assert json.loads(shown.out) == {
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
