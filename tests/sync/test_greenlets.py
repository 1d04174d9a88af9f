"""Where gevent or eventlet has replaced threads, a blocking call is refused at once: it would hang."""

from __future__ import annotations

import _thread
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from payments_async.errors import ConfigurationError
from payments_async.sandbox import Sandbox
from payments_sync import Payments

PATCHED = """
import sys
{patch}
from payments_sync import ConfigurationError, Payments

client = Payments(sys.argv[1], base_url=sys.argv[2])
for _ in range(2):
    try:
        client.payouts.list()
    except ConfigurationError as error:
        assert str(error).startswith("{library} has replaced this process's threads"), error
        assert "gthread" in str(error), error
        assert error.effect == "none"
    else:
        raise AssertionError
client.close()
"""
APPLICATION = """
import os
from payments_sync import ConfigurationError, Payments

client = Payments(os.environ["KEY"], base_url=os.environ["ADDRESS"])

def application(environ, start_response):
    try:
        shown = f"{len(client.payouts.list())} payouts"
    except ConfigurationError as error:
        shown = str(error)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [shown.encode()]
"""


def test_after_threads_were_replaced_a_call_is_refused_at_once(sandbox: Sandbox) -> None:
    """By eventlet; gunicorn's worker below does the same with gevent."""
    program = PATCHED.format(library="eventlet", patch="import eventlet; eventlet.monkey_patch()")
    command = [sys.executable, "-W", "ignore", "-c", program, sandbox.api_key, sandbox.base_url]
    subprocess.run(command, check=True, timeout=300)


@pytest.mark.parametrize("library", ["gevent", "eventlet"])
def test_the_refusal_examines_who_starts_threads_when_the_first_call_is_made(
    library: str, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start_new_thread() -> None:
        """Stands in for one that starts a greenlet."""

    start_new_thread.__module__ = f"{library}.thread"
    with Payments(sandbox.api_key, base_url=sandbox.base_url) as client:
        with monkeypatch.context() as patched:
            patched.setattr(_thread, "start_new_thread", start_new_thread)
            with pytest.raises(ConfigurationError, match=f"^{library} has replaced") as refused:
                client.payouts.list()
        assert refused.value.effect == "none"
        assert len(client.payouts.list()) == 0


@contextmanager
def served(sandbox: Sandbox, worker: str, folder: Path) -> Iterator[HTTPConnection]:
    """The application in one worker of gunicorn's, of that kind."""
    (folder / "shop.py").write_text(APPLICATION)
    command = [sys.executable, "-m", "gunicorn", "--bind=127.0.0.1:0", f"--worker-class={worker}", "shop"]
    environ = {"KEY": sandbox.api_key, "ADDRESS": sandbox.base_url}
    with subprocess.Popen(command, cwd=folder, env=environ, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            for line in server.stderr:  # it ends when the server does
                if "Listening at: " in line:
                    port = line.partition("127.0.0.1:")[2].partition(" ")[0]
                    yield HTTPConnection("127.0.0.1", int(port), timeout=300)
                    break
        finally:
            server.terminate()


@pytest.mark.parametrize(("worker", "shown"), [("gevent", "gevent has replaced"), ("gthread", "0 payouts")])
def test_gunicorns_gevent_worker_is_refused_and_its_worker_with_threads_is_not(
    sandbox: Sandbox, tmp_path: Path, worker: str, shown: str
) -> None:
    with served(sandbox, worker, tmp_path) as connection:
        connection.request("GET", "/")
        assert connection.getresponse().read().decode().startswith(shown)
        connection.close()
