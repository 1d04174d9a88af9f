"""`payments payouts` for tests: files to pay, the command here and in processes, a terminal, a live key."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import attrs
import pytest

from payments_async._cli import main as main
from payments_async._cli._app import make_app as make_app
from payments_async._cli._exit_codes import Exit as Exit
from payments_async.sandbox import Sandbox
from tests.support.rawserver import CERTIFICATE, server_tls

HEADER = "row_key,amount,currency,method,instrument.phone_number,instrument.country"
PHONE = "+2290190112233"
COMMAND = (sys.executable, "-m", "payments_async._cli", "payouts")


def payouts_file(folder: Path, count: int, *, name: str = "june.csv") -> Path:
    """So many rows: 1.07 XCD, 2.07 XCD and so on, each third in GHS."""
    path = folder / name
    rows = [f"r{n},{n}.07,{'GHS' if n % 3 == 0 else 'XCD'},mtn_bj,{PHONE},BJ" for n in range(1, count + 1)]
    path.write_text("\n".join([HEADER, *rows, ""]))
    return path


def environment_of(sandbox: Sandbox) -> dict[str, str]:
    return {"PAYMENTS_API_KEY": sandbox.api_key, "PAYMENTS_BASE_URL": sandbox.base_url}


def assert_paid_once(sandbox: Sandbox, count: int) -> None:
    """The books hold each row of `payouts_file` exactly once, to the last digit."""
    entries = sandbox.books.payouts()
    assert max(Counter(entry.reference for entry in entries).values(), default=0) <= 1
    assert sorted(entry.amount for entry in entries) == [Decimal(f"{n}.07") for n in range(1, count + 1)]


def as_json(argv: Sequence[str | Path]) -> tuple[str, ...]:
    """The flag of a command that shows its progress, where it is not given."""
    progresses = argv[:1] and argv[0] in {"run", "reconcile", "watch"}
    return ("--json",) if progresses and not {"--json", "--help"} & {*argv} else ()


@attrs.frozen
class Said:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    def step(self, name: str) -> dict[str, Any]:
        return next(line for line in reversed(self.lines) if line["step"] == name)

    @property
    def told(self) -> str:
        """What people are told on stderr, and programs as a refusal in JSON instead."""
        lines = (line for line in self.out.splitlines() if '"step": "refused"' in line)
        return "".join([*(f"payments: {json.loads(line)['message']}" for line in lines), self.err])

    def assert_one_message(self, code: int, *parts: str) -> None:
        """It was refused with one message, on one stream, that says all of these."""
        assert self.code == code, self
        assert self.told.startswith("payments: ")
        assert self.told.count("payments: ") == 1
        assert "Traceback" not in self.told
        assert PHONE not in self.told
        for part in parts:
            assert part in self.told, (part, self.told)


@attrs.frozen
class Here:
    """The command in this process, in a folder of its own, at a sandbox."""

    sandbox: Sandbox
    folder: Path
    _capsys: pytest.CaptureFixture[str]

    def __call__(self, *argv: str | Path, as_text: bool = False) -> Said:
        """Run it; a command that shows its progress does so as JSON, unless `as_text`."""
        return self.command("payouts", *argv, *(() if as_text else as_json(argv)))

    def command(self, *argv: str | Path) -> Said:
        self._capsys.readouterr()
        code = main([*map(str, argv)])
        return Said(code, *self._capsys.readouterr())


def started(variables: Mapping[str, str], *argv: str | Path, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *map(str, argv), *as_json(argv)],
        env={**os.environ, **variables},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(process: subprocess.Popen[str], created: int) -> dict[str, Any]:
    """Read JSON lines until so many rows are created."""
    assert process.stdout is not None
    for line in process.stdout:
        said: dict[str, Any] = json.loads(line)
        if said["step"] == "progress" and said["rows"]["created"] >= created:
            return said
    raise AssertionError("it ended before")


_ON_ITS_TERMINAL = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from payments_async._cli import main
sys.exit(main(sys.argv[1:]))
"""


class OnTerminal:
    """The command on a pseudo-terminal: what is seen there, and what is typed."""

    def __init__(self, variables: Mapping[str, str], *argv: str | Path, cwd: Path, columns: int = 80) -> None:
        import fcntl
        import pty
        import struct
        import termios

        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", _ON_ITS_TERMINAL, "payouts", *map(str, argv)],
            env={**os.environ, **variables, "TERM": "xterm-256color"},
            cwd=cwd,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._seen = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def until(self, text: str) -> str:
        """Wait until it has said this; all that was seen so far, without colours."""
        while text not in self.seen:
            if not self._read():
                raise AssertionError(f"{text!r} was never said: {self.seen}")
        return self.seen

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def end(self) -> int:
        while self._read():
            pass
        return self.process.wait(300)

    @property
    def seen(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._seen.decode(errors="replace")).replace(
            "\r\n", "\n"
        )

    def _read(self) -> bool:
        ready, _, _ = select.select([self._ours], [], [], 60)
        if not ready:
            raise AssertionError(f"nothing more was said: {self.seen}")
        try:
            chunk = os.read(self._ours, 65536)
        except OSError:  # its last holder has left
            return False
        self._seen += chunk
        return bool(chunk)


@contextmanager
def live_line(sandbox: Sandbox) -> Iterator[dict[str, str]]:
    """A TLS address that takes a live key and passes requests on to a sandbox; the variables for it."""
    key = "sk_live_".ljust(len(sandbox.api_key), "L")

    class Relay(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            given = {
                **self.headers,
                "Authorization": self.headers["Authorization"].replace(key, sandbox.api_key),
            }
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with closing(HTTPConnection(urlsplit(sandbox.base_url).netloc, timeout=300)) as line:
                line.request(self.command, self.path, body, given)
                answer = line.getresponse()
                content = answer.read()
            self.send_response_only(answer.status)
            for header in answer.getheaders():
                self.send_header(*header)
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Relay)
    server.socket = server_tls().wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    with server:
        thread.start()
        try:
            yield {
                "PAYMENTS_API_KEY": key,
                "PAYMENTS_BASE_URL": f"https://127.0.0.1:{server.server_port}/v1",
                "SSL_CERT_FILE": str(CERTIFICATE),
            }
        finally:
            server.shutdown()
            thread.join()
