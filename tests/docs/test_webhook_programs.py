"""The programs of the guide to webhooks: from a shell, as their reader runs them, and under WSGI."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from payments_async.sandbox import Sandbox
from payments_sync import Instrument, Payments
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


class OpenSocket(io.BytesIO):
    """A body behind which the connection stays open, as in HTTP/1.1: a read beyond its end would wait."""

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert 0 < size <= len(self.getvalue()) - self.tell()
        return super().read(size)


@pytest.fixture
def blocking(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The names of the blocking program."""
    with Sandbox(seed=880_001) as sandbox:
        sandbox.on("payouts.create").outcome("complete immediate")
        monkeypatch.setenv("PAYMENTS_API_KEY", sandbox.api_key)
        monkeypatch.setenv("PAYMENTS_BASE_URL", sandbox.base_url)
        monkeypatch.setenv("WEBHOOK_SECRET", SECRET)
        names: dict[str, Any] = {"__name__": "snippet"}
        exec(program("def application").code, names)
        yield names


def answer(names: dict[str, Any], path: str, length: str | None, body: bytes = b"") -> int:
    told: list[str] = []
    environ = {"PATH_INFO": path, "REQUEST_METHOD": "POST", "wsgi.input": OpenSocket(body)}
    given = {} if length is None else {"CONTENT_LENGTH": length}
    names["application"]({**environ, **given}, lambda status, headers: told.append(status))
    return int(told[0].split(" ")[0])


def test_the_blocking_program_takes_a_delivery_from_a_socket_that_stays_open(
    blocking: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert answer(blocking, urlsplit(url).path, str(len(body)), body) == 200
    assert "invoice-8 completed" in capsys.readouterr().out


def test_the_blocking_program_refuses_what_does_not_say_its_length(blocking: dict[str, Any]) -> None:
    path = urlsplit(blocking["receiver"].url_for_payout("invoice-9")).path
    for odd in (None, "-1", "1e3", "0x10", "1" * 5_000):
        assert answer(blocking, path, odd) == 411, odd
    assert answer(blocking, path + "x", "0") == 404, "a forged address"
