"""`payments sandbox` and `payments sandbox exec`: in this process, and as people run them."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.test_webhooks import send
from tests.support.payout_command import Exit, main
from tests.support.servers import free_port, listen

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
COMMAND = [sys.executable, "-m", "payments_async._cli", "sandbox"]


def status_of(base_url: str, key: str) -> int:
    return send(f"{base_url}/payouts", None, Authorization=f"Bearer {key}")


@contextmanager
def taken() -> Iterator[int]:
    with listen(None) as other:
        yield int(other.getsockname()[1])


@pytest.fixture
def meanwhile(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Callable[[str], None]], None]:
    """What is done with the printed text while the service runs; Ctrl-C follows."""

    def arrange(look: Callable[[str], None]) -> None:
        def wait() -> None:
            look(capsys.readouterr().out)
            raise KeyboardInterrupt

        monkeypatch.setattr("payments_async._cli.sandbox.serve.until_interrupted", wait)

    return arrange


Meanwhile = Callable[[Callable[[str], None]], None]


def test_the_service_answers_where_the_two_lines_for_the_shell_say(
    meanwhile: Meanwhile, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setattr("payments_async._cli.sandbox.serve.DEFAULT_PORT", port)

    def look(printed: str) -> None:
        exports = dict(re.findall(r"^export (\w+)=(\S+)$", printed, re.MULTILINE))
        assert set(exports) == {"PAYMENTS_BASE_URL", "PAYMENTS_API_KEY"}
        assert exports["PAYMENTS_BASE_URL"] == f"http://127.0.0.1:{port}/v1"
        assert all(printed.count(value) == 2 for value in exports.values())
        assert status_of(*(exports[name] for name in ("PAYMENTS_BASE_URL", "PAYMENTS_API_KEY"))) == 200
        assert f"\n  Inspector  http://127.0.0.1:{port}/_sandbox/\n" in printed

    meanwhile(look)
    assert main(["sandbox"]) == Exit.DONE
    with pytest.raises(OSError, match="refused"):
        status_of(f"http://127.0.0.1:{port}/v1", "key")


def test_a_port_that_was_asked_for_is_used_or_refused(
    meanwhile: Meanwhile, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    meanwhile(
        lambda printed: None if f":{port}/v1" in json.loads(printed)["base_url"] else pytest.fail(printed)
    )
    assert main(["sandbox", "--json", "--port", str(port)]) == Exit.DONE
    with taken() as port:
        assert main(["sandbox", "--port", str(port)]) == Exit.USAGE
    assert capsys.readouterr().err.endswith(
        f"port {port} cannot be used: Address already in use; choose another with --port\n"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_service_with_exit_code_0(number: signal.Signals) -> None:
    with subprocess.Popen(
        [*COMMAND, "--json", "--port", str(free_port())],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            about = json.loads(process.stdout.readline())
            assert status_of(about["base_url"], about["api_key"]) == 200
        finally:  # a failure must not wait for a service that nobody stops
            process.send_signal(number)
        assert process.communicate() == ("", "")
    assert process.returncode == Exit.DONE


PAY = """
import json, os, sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen
address, known = os.environ["PAYMENTS_BASE_URL"] + "/payouts", "Bearer " + os.environ["PAYMENTS_API_KEY"]
for names in json.loads(sys.argv[1]):
    headers = {"Authorization": known, "Content-Type": "application/json"}
    if "key" in names:
        headers["X-Idempotency-Key"] = names.pop("key")
    body = {"amount": 10.10, "currency": "GHS", "method": "mobile_money", **names,
            "instrument": {"type": "phone", "phone_number": "+233200000001", "country": "GH"}}
    try:
        urlopen(Request(address, json.dumps(body).encode(), headers)).close()
    except HTTPError as taken:
        taken.close()
raise SystemExit(int(sys.argv[2]))
"""


def pay(
    capfd: pytest.CaptureFixture[str], payouts: list[dict[str, str]], *options: str, own: int = 0
) -> tuple[int, str]:
    """How `exec` ends with a program that makes these payouts and ends with `own`, and the advice."""
    command = [sys.executable, "-c", PAY, json.dumps(payouts), str(own)]
    code = main(["sandbox", "exec", *options, "--", *command])
    _, advice = capfd.readouterr().err.split("/_sandbox/\n")
    return code, advice


STRICT = "--fail-on-advice"
REPEATED = [
    "Advisor: 1 finding, money at risk",
    "  A POST was sent again without an idempotency key",
    r"    req_\d+ \(payouts\.create\) was sent 2 times without an idempotency key",
    "    instead: .*",
    "  note: 2 payouts were made without a reference, which alone tells a payout from its repeat",
]
UNNAMED = [
    "Advisor: no findings",
    "  note: 1 payout was made without a reference, which alone tells a payout from its repeat",
]


@pytest.mark.parametrize(
    ("payouts", "options", "own", "code", "said"),
    [
        ([{}, {}], [], 0, 0, REPEATED),
        ([{}, {}], [STRICT], 0, 1, REPEATED),
        ([{}, {}], [STRICT], 7, 7, REPEATED),
        ([{"key": "key-00001"}], [STRICT], 0, 0, UNNAMED),
    ],
)
def test_exec_ends_with_what_the_advisor_found(
    capfd: pytest.CaptureFixture[str],
    payouts: list[dict[str, str]],
    options: list[str],
    own: int,
    code: int,
    said: list[str],
) -> None:
    ended, advice = pay(capfd, payouts, *options, own=own)
    assert ended == code
    assert re.fullmatch("\n".join(said) + "\n", advice)


def test_exec_names_the_transactions_and_requests_as_the_inspector_is_gone_by_then(
    capfd: pytest.CaptureFixture[str],
) -> None:
    payouts = [{"reference": f"june-{n}"} for n in range(7) for _ in range(4 if n == 0 else 2)]
    code, advice = pay(capfd, payouts, STRICT)
    assert code == 1
    head, heading, *cases = advice.splitlines()[:7]
    assert head == "Advisor: 7 findings, money at risk"
    assert heading == "  A POST was sent again without an idempotency key (7 times)"
    assert re.fullmatch(r"    req_\d+ \(payouts\.create, reference 'june-0'\) was sent 4 times .*", cases[0])
    assert [re.findall(r"june-\d", case) for case in cases] == [[f"june-{n}"] for n in range(5)]
    assert advice.splitlines()[7] == "    and 2 more like these"
    assert "+233200000001" not in advice


BELIEVE_A_WEBHOOK = """
import json, os
from urllib.request import Request, urlopen
from payments_async._cli.webhooks.receiver import Receiver
from payments_sync import Payments
control = os.environ["PAYMENTS_BASE_URL"].removesuffix("/v1") + "/_sandbox/api/"
wallet = {"type": "phone", "phone_number": "+233200000001", "country": "GH"}
accepted = lambda one: one["event"] == "payout.completed" and one["state"] == "delivered"
with Receiver(None, lambda *_: 204) as receiver, Payments() as client:
    client.payouts.create(amount=10, currency="GHS", method="m", instrument=wallet, reference="r-1",
                          webhook_url=receiver.url)
    forward = Request(control + "clock/advance", b'{"by": "10s"}', {"Content-Type": "application/json"})
    urlopen(forward).close()
    while not any(map(accepted, json.load(urlopen(control + "webhooks"))["webhooks"])):
        pass
"""


def test_exec_finds_a_webhook_that_an_ended_program_has_not_read_back(
    capfd: pytest.CaptureFixture[str],
) -> None:
    command = [sys.executable, "-c", BELIEVE_A_WEBHOOK]
    assert main(["sandbox", "exec", "--fail-on-advice", "--", *command]) == 1
    advice = capfd.readouterr().err
    assert "Advisor: 1 finding, money at risk\n" in advice
    assert re.search(
        r"\n    payout\.completed accepted, and po_\w+ never read back\n    instead: .*\n\Z", advice
    )


def test_the_first_program_of_the_readme_runs_as_it_says_and_under_strict_with_what_the_guide_adds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (line,) = re.findall(r"^\$ payments (sandbox exec .*first\.py)$", README, re.MULTILINE)
    program, *_ = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (added,) = re.findall(r"also needs\s+`(customer=.*?)`", GUIDE)
    (tmp_path / "first.py").write_text(program)
    (tmp_path / "whole.py").write_text(program.replace('/thanks"', f'/thanks", {added}'))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    assert main(shlex.split(line.replace("exec", "exec --speed 2000"))) == Exit.DONE
    sent, paid = capfd.readouterr().out.splitlines()
    assert sent.startswith("send the payer to http://127.0.0.1:")
    assert paid == "invoice-7 completed"
    strict = ["sandbox", "exec", "--profile", "strict", "--speed", "2000", "--", sys.executable]
    assert main([*strict, "first.py"]) == 1
    assert "customer: The customer field is required" in capfd.readouterr().err
    assert main([*strict, "whole.py"]) == Exit.DONE
    assert capfd.readouterr().out.endswith("invoice-7 completed\n")


def test_exec_passes_on_every_argument_and_the_environment_with_a_service_in_it(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    code = "import json, os, sys; print(json.dumps([*sys.argv[1:], os.environ['OURS']]))"
    given = ["--profile", "x y", "--", "--help"]
    monkeypatch.setenv("OURS", "kept")
    line = ["sandbox", "exec", "--profile", "hostile", "--", sys.executable, "-c", code, *given]
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert main(line) == Exit.DONE
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    out, err = capfd.readouterr()
    assert json.loads(out) == [*given, "kept"]
    address = r"http://127\.0\.0\.1:\d+"
    assert re.fullmatch(rf"payments sandbox: {address}/v1, inspector {address}/_sandbox/\n", err)


def test_exec_of_nothing_that_can_run_ends_as_in_a_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "text"
    file.write_text("no program")
    assert main(["sandbox", "exec", "--", "no-such-command"]) == 127
    assert main(["sandbox", "exec", "--", str(file)]) == 126
    printed = capsys.readouterr().err.splitlines()
    first, second = (line for line in printed if not line.startswith("payments sandbox: "))
    assert first == "payments: cannot run no-such-command: No such file or directory"
    assert second == f"payments: cannot run {file}: Permission denied"


@pytest.mark.skipif(os.name != "posix", reason="signals end a process so on POSIX only")
def test_a_command_ended_by_a_signal_gives_the_shell_s_code() -> None:
    code = "import os; os.kill(os.getpid(), 9)"
    assert main(["sandbox", "exec", "--", sys.executable, "-c", code]) == 128 + 9


STOPPABLE = """
import signal, sys, threading
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
signal.signal(signal.SIGINT, lambda *_: sys.exit(6))
print("ready", flush=True)
threading.Event().wait()
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 5), (signal.SIGINT, 6)])
def test_exec_outlives_a_signal_until_its_command_has_ended(number: signal.Signals, code: int) -> None:
    with subprocess.Popen(
        [*COMMAND, "exec", "--", sys.executable, "-c", STOPPABLE],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
        else:
            process.send_signal(number)
        printed, errors = process.communicate()
    assert printed == ""
    assert errors.count("\n") == 1, "where the service is, and nothing else"
    assert process.returncode == code


@pytest.mark.parametrize("line", ["pytest -x", "--profile hostile python -V", "--profile=hostile python -V"])
def test_the_two_dashes_are_advised_where_they_are_missing(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sandbox", "exec", *line.split()]) == Exit.USAGE
    advice = "; put -- before the command: `payments sandbox exec -- python first.py`\n"
    assert capsys.readouterr().err.endswith(advice)
    assert main(["sandbox", "exec", "--bogus", "--", *line.split()]) == Exit.USAGE
    assert "put -- before" not in capsys.readouterr().err
