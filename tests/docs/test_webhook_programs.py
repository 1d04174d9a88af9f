"""The programs of the guide to webhooks, as their reader runs them: from a shell, and behind a socket."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from payments_async.sandbox import Sandbox
from payments_sync import Instrument
from tests.docs.snippets import Snippet, all_snippets

SECRET = "for this test alone, and more than 32 bytes"


def program(part: str) -> Snippet:
    """The guide's only block that holds `part`."""
    (found,) = (s for s in all_snippets() if s.file == "docs/webhooks.md" and part in s.code)
    return found


def test_the_first_program_runs_as_printed(tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(program("routes(receiver)").code)
    command = [sys.executable, "-m", "payments_async._cli", "sandbox", "exec", "--speed", "2000", "--"]
    done = subprocess.run(
        [*command, sys.executable, "hooks.py"],
        cwd=tmp_path,
        env={**os.environ, "WEBHOOK_SECRET": SECRET},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "200 ['invoice-7: paid']\n", done.stderr
    assert done.returncode == 0


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def blocking(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The names of the blocking program, whose application is served; `port` says where."""
    with Sandbox(seed=880_001) as sandbox:
        sandbox.on("payouts.create").outcome("complete immediate")
        monkeypatch.setenv("PAYMENTS_API_KEY", sandbox.api_key)
        monkeypatch.setenv("PAYMENTS_BASE_URL", sandbox.base_url)
        monkeypatch.setenv("WEBHOOK_SECRET", SECRET)
        names: dict[str, Any] = {"__name__": "snippet"}
        exec(program("def application").code, names)
        with make_server("127.0.0.1", 0, names["application"], handler_class=Quiet) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            yield {**names, "port": server.server_port}
            server.shutdown()
            thread.join()


def answer(port: int, path: str, *headers: tuple[str, str], body: bytes = b"") -> int:
    """The status of a POST whose sender keeps the connection open, as HTTP/1.1 does."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.putrequest("POST", path)
        for header in headers:
            connection.putheader(*header)
        connection.endheaders(body)
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_blocking_program_takes_a_delivery_from_a_socket_that_stays_open(
    blocking: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    from payments_sync import Payments

    url = blocking["receiver"].url_for_payout("invoice-8")
    with Payments() as client:
        client.payouts.create(
            amount="10.10",
            currency="GHS",
            method="mobile_money",
            instrument=Instrument.phone("+233200000001", "GH"),
            reference="invoice-8",
            webhook_url=url,
        )
    body = b'{"event": "payout.completed"}'
    length = ("Content-Length", str(len(body)))
    assert answer(blocking["port"], urlsplit(url).path, length, body=body) == 200
    assert "invoice-8 completed" in capsys.readouterr().out


def test_the_blocking_program_refuses_what_does_not_say_its_length(blocking: dict[str, Any]) -> None:
    port = blocking["port"]
    path = urlsplit(blocking["receiver"].url_for_payout("invoice-9")).path
    assert answer(port, path) == 411
    for odd in ("-1", "1e3", "0x10", "1" * 5_000):
        assert answer(port, path, ("Content-Length", odd)) == 411, odd[:10]
    assert answer(port, path + "x", ("Content-Length", "0")) == 404, "a forged address"
