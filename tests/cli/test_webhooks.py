"""`payments webhooks`: deliveries of a real sandbox, received at the desk, passed on, and sent once more."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import attrs
import pytest

from payments_async.sandbox import Sandbox, VirtualClock
from tests.support.payout_command import Exit, main
from tests.support.servers import free_port
from tests.support.strangers import ask_as_stranger, needs_root, nobody_is_known

PERSON = {"first_name": "Ada", "last_name": "Adeyemi", "email": "ada@shop.test"}
PAYOUT: dict[str, Any] = {
    "amount": 50,
    "currency": "XCD",
    "method": "mtn_bj",
    "instrument": {"type": "phone", "phone_number": "+2290190000001", "country": "BJ"},
    "customer": PERSON,
    "metadata": {"note": "for Ada", "sandbox_scenario": "manual"},
    "description": "Ada's wages",
}


@attrs.frozen
class Listener:
    """`payments webhooks listen`: what it prints while something is done with its address, Ctrl-C last."""

    _monkeypatch: pytest.MonkeyPatch
    _capsys: pytest.CaptureFixture[str]

    def __call__(self, look: Callable[[str], object], *options: str, columns: int = 80) -> str:
        def wait(receiver: Any) -> None:
            look(receiver.url)
            raise KeyboardInterrupt

        self._monkeypatch.setattr("payments_async._cli.webhooks.listener.wait", wait)
        self._monkeypatch.setenv("COLUMNS", str(columns))
        self._capsys.readouterr()
        assert main(["webhooks", "listen", *options]) == Exit.DONE
        return self._capsys.readouterr().out


@pytest.fixture
def listen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Listener:
    monkeypatch.setattr("payments_async._cli.webhooks.listener.DEFAULT_PORT", 0)
    return Listener(monkeypatch, capsys)


@contextmanager
def serving(application: Callable[[bytes, Mapping[str, str]], int]) -> Iterator[str]:
    """The address of an application that is given each body with its headers, and returns the status."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response_only(application(body, headers))
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def create(sandbox: Sandbox, **fields: Any) -> str:
    headers = {"Authorization": f"Bearer {sandbox.api_key}"}
    answer = sandbox.handle("POST", "/v1/payouts", headers, json.dumps({**PAYOUT, **fields}).encode())
    return str(json.loads(answer.body)["data"]["id"])


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def send(url: str, body: bytes | None = b"{}", **headers: str) -> int:
    try:
        with urlopen(Request(url, body, headers)) as answer:
            return int(answer.status)
    except HTTPError as refused:
        with refused:
            return refused.code


def test_each_delivery_is_shown_without_account_data(listen: Listener) -> None:
    created: list[str] = []

    def look(url: str) -> None:
        with Sandbox(clock=VirtualClock.frozen()) as sandbox:
            created.append(create(sandbox, webhook_url=url, reference="order-7"))
            sandbox.wait_for_webhooks()
            assert sandbox.webhooks[0].state == "delivered"
            assert sandbox.webhooks[0].tries[0].only_listened

    printed = listen(look)
    assert "as webhook_url" in printed
    told = " ".join(printed.partition("Received")[2].split())
    assert re.fullmatch(
        rf"..:..:.. UTC payout\.created, {created[0]}, .* 50.00, pending, order-7, wh_00000001", told
    )
    out = listen(look, "--json")
    listening_line, received = lines(out)
    assert listening_line["webhook_url"].startswith("http://127.0.0.1:")
    said = [received[name] for name in ("event", "record", "status", "reference", "delivery")]
    assert said == ["payout.created", created[1], "pending", "order-7", "wh_00000001"]
    for secret in ("Ada", "ada@", "+229", "wages"):
        assert secret not in printed + out


def test_what_arrives_is_forwarded_and_the_answer_shown_and_returned(listen: Listener) -> None:
    got: list[tuple[bytes, dict[str, str]]] = []
    answers = [503, 204]

    def application(body: bytes, headers: Any) -> int:
        got.append((body, dict(headers)))
        return answers.pop(0)

    def look(url: str) -> None:
        with Sandbox(clock=VirtualClock.frozen()) as sandbox:
            create(sandbox, webhook_url=url)
            sandbox.wait_for_webhooks()
            sandbox.advance(30)
            sandbox.wait_for_webhooks()
            (webhook,) = sandbox.webhooks
            assert [tried.status for tried in webhook.tries] == [503, 204]
            assert not webhook.tries[0].only_listened
            assert {body for body, _ in got} == {webhook.body}
        hints = {"X-Payment-Event": "payment.completed", "X-Payment-Id": "pi_1", "Cookie": "a=b"}
        answers.append(200)
        send(url, b"{}", **hints)

    with serving(application) as address:
        _, _, first, _, second, *_ = lines(listen(look, "--forward", f"{address}hook?x=1", "--json"))
    assert 0 <= first["seconds"] < 600
    assert [(each["step"], each["ok"], each["status"]) for each in (first, second)] == [
        ("forwarded", False, 503),
        ("forwarded", True, 204),
    ]
    assert got[0][1]["content-type"] == "application/json"
    assert (got[2][1]["x-payment-event"], got[2][1]["x-payment-id"]) == ("payment.completed", "pi_1")
    assert "cookie" not in got[2][1]


def test_an_application_that_is_away_is_a_502(listen: Listener) -> None:
    address = f"http://127.0.0.1:{free_port()}/"
    answers: list[int] = []
    printed = " ".join(listen(lambda url: answers.append(send(url)), "--forward", address).split())
    assert answers == [502]
    assert "did not answer: Connection refused; start your application there, or correct --forward" in printed


def typed(url: str, head: str, body: bytes = b"") -> bytes:
    address = urlsplit(url)
    with socket.create_connection((str(address.hostname), address.port or 0)) as line:
        line.sendall(head.replace("\n", "\r\n").encode() + body)
        return line.makefile("rb").read()


def test_what_is_no_delivery_is_answered_and_shown(listen: Listener) -> None:
    def look(url: str) -> None:
        assert [send(url, body) for body in (b"no json", b"[1]", b"[" * 200_000)] == [200] * 3
        assert send(url, b"x" * (2**20 + 1)) == 413
        for length in ("x", "9" * 5000):
            assert typed(url, f"POST / HTTP/1.0\nContent-Length: {length}\n\n").split()[1] == b"400"
        head, _, hint = typed(url, "GET / HTTP/1.0\n\n").partition(b"\r\n\r\n")
        assert (head[:13], hint) == (b"HTTP/1.0 405 ", b"Webhooks arrive here, by POST.\n")
        head, _, body = typed(url, "POST / / HTTP/1.0\n\n").partition(b"\r\n\r\n")
        assert (head[:13], b"<" in body) == (b"HTTP/1.0 400 ", False)

    assert listen(look).count("its body is not a JSON object") == 3


@pytest.mark.parametrize(
    "forward", ["", "shop", "ftp://x/", "http://", "http://a b/", "http://u:p@x/", "http://x:y/", "http://é/"]
)
def test_an_unusable_forward_address_is_refused_before_anything_listens(
    forward: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["webhooks", "listen", "--forward", forward]) == Exit.USAGE
    assert "--forward must be an address" in capsys.readouterr().err


def test_a_port_that_was_asked_for_is_used_or_refused(
    listen: Listener, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    urls: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        assert main(["webhooks", "listen", "--port", str(taken)]) == Exit.USAGE
        assert capsys.readouterr().err.endswith(
            f"port {taken} cannot be used: Address already in use; choose another with --port\n"
        )
        monkeypatch.setattr("payments_async._cli.webhooks.listener.DEFAULT_PORT", taken)
        assert main(["webhooks", "listen"]) == Exit.USAGE
    listen(urls.append, "--port", str(taken))
    assert f":{taken}/" in urls[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_exit_code_0(number: signal.Signals) -> None:
    # a shell that runs the tests in the background has them ignore SIGINT, and so would the command
    heeding = "import signal, runpy; signal.signal(signal.SIGINT, signal.default_int_handler); "
    run = "runpy.run_module('payments_async._cli', run_name='__main__')"
    command = [sys.executable, "-c", heeding + run, "webhooks", "listen", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["webhook_url"]
        assert send(url) == 200
        assert json.loads(process.stdout.readline())["step"] == "received"
        process.send_signal(number)
        assert process.communicate() == ("", "")
    assert process.returncode == Exit.DONE


def test_what_a_sender_claims_and_is_no_word_stands_in_quotes_and_is_short(listen: Listener) -> None:
    lie = {"event": "payout.completed, po_1", "payout": {"id": "漢" * 80}}
    shown = " ".join(listen(lambda url: send(url, json.dumps(lie).encode())).split())
    assert f'"payout.completed, po_1", "{"漢" * 40}…"' in shown


def test_a_failure_is_red_on_a_terminal_and_says_why_and_what_to_do(
    listen: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses: list[int] = []
    monkeypatch.setenv("FORCE_COLOR", "1")
    named = {"X-Sandbox-Delivery": "wh_00000017"}
    with serving(lambda *_: statuses.pop()) as address:
        for no_color, is_coloured in ("", True), ("1", False):
            monkeypatch.setenv("NO_COLOR", no_color)
            statuses += [299, 599, 503]
            out = listen(lambda url: [send(url, b"{}", **named) for _ in "123"], "--forward", address)
            assert ("\x1b[1;31m" in out, "\x1b" in out) == (is_coloured, is_coloured)  # nor bold, nor dim
    text, place = " ".join(out.split()), address.split("/")[2]
    again = "`payments webhooks resend wh_00000017` sends it again"
    for said in (f"answered 503 Service Unavailable; {again}", "answered 599; `payments", "answered 299 in "):
        assert f"{place} {said}" in text


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("wh_00000017", "wh_00000017"),
        ("wh_00000017[2J", ""),
        ("+233 24 412 3456", ""),
        ("wh_" + 40 * "9", ""),
    ],
)
def test_only_a_delivery_s_name_as_a_sandbox_makes_it_is_shown(
    listen: Listener, name: str, printed: str
) -> None:
    def look(url: str) -> None:
        head = f"POST / HTTP/1.0\nX-Sandbox-Delivery: {name}\nContent-Length: 2\n\n"
        assert typed(url, head, b"{}").split()[1] == b"200"

    out = listen(look, columns=200)
    assert "\x1b" not in out
    assert (name in out) is bool(printed)
    assert lines(listen(look, "--json"))[-1]["delivery"] == printed


def test_a_delivery_is_sent_once_more_through_the_control_api(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(lambda *_: 200) as address, Sandbox(clock=VirtualClock.frozen()) as sandbox:
        create(sandbox, webhook_url=address)
        sandbox.wait_for_webhooks()
        (first,) = sandbox.webhooks
        assert main(["webhooks", "resend", first.id, "--json", "--sandbox", sandbox.base_url]) == Exit.DONE
        (printed,) = lines(capsys.readouterr().out)
        sandbox.wait_for_webhooks()
        second = sandbox.webhooks[1]
        assert (second.id, second.repeats, second.state) == (printed["id"], first.id, "delivered")
        monkeypatch.setenv("PAYMENTS_BASE_URL", sandbox.base_url)
        assert main(["webhooks", "resend", "wh_none"]) == Exit.REFUSED
        assert "the sandbox refused: " in capsys.readouterr().err


def test_where_no_user_is_known_the_key_of_that_sandbox_goes_along_and_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nobody_is_known(monkeypatch)
    with serving(lambda *_: 200) as address, Sandbox(clock=VirtualClock.frozen()) as sandbox:
        create(sandbox, webhook_url=address)
        sandbox.wait_for_webhooks()
        resend = ["webhooks", "resend", sandbox.webhooks[0].id, "--sandbox", sandbox.base_url]
        monkeypatch.setenv("PAYMENTS_BASE_URL", sandbox.base_url)
        monkeypatch.setenv("PAYMENTS_API_KEY", sandbox.api_key)
        assert main(resend) == Exit.DONE
        for base, key in (("http://127.0.0.1:1/v1", sandbox.api_key), (sandbox.base_url, "sk_test_1")):
            monkeypatch.setenv("PAYMENTS_BASE_URL", base)
            monkeypatch.setenv("PAYMENTS_API_KEY", key)
            assert main(resend) == Exit.REFUSED
            assert "It is not known who asks" in capsys.readouterr().err


@needs_root
@pytest.mark.parametrize(("option", "status"), [([], 403), (["--shared"], 200)])
def test_a_listener_takes_what_another_user_sends_if_it_is_shared(
    option: list[str], status: int, listen: Listener
) -> None:
    got: list[int] = []
    listen(
        lambda url: got.append(ask_as_stranger(urlsplit(url).port or 0, "/", "POST", body="{}").status),
        *option,
    )
    assert got == [status]


def test_resending_without_a_sandbox_or_a_name_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PAYMENTS_BASE_URL", raising=False)
    usual = f"http://127.0.0.1:{free_port()}"
    monkeypatch.setattr("payments_async._cli.webhooks.forward.DEFAULT_SANDBOX", usual)
    assert main(["webhooks", "resend", "wh_1"]) == Exit.REFUSED
    assert main(["webhooks", "resend", "../x"]) == Exit.USAGE
    assert main(["webhooks", "resend", "wh_1", "--sandbox", "nowhere"]) == Exit.USAGE
    monkeypatch.setenv("PAYMENTS_BASE_URL", "nowhere")
    assert main(["webhooks", "resend", "wh_1"]) == Exit.USAGE
    first, second, third, fourth = capsys.readouterr().err.splitlines()
    assert "no sandbox answers" in first
    assert "wh_00000001" in second
    assert "--sandbox must be an address" in third
    assert fourth.endswith(f"PAYMENTS_BASE_URL must be an address such as {usual}")
