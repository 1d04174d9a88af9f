"""What several tests of the blocking twin share."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from payments_async._http.types import HTTPRequest, HTTPResponse

if TYPE_CHECKING:  # scripts import this module, too
    from payments_async.sandbox import Sandbox
    from payments_sync._blocking_call import BlockingCall

ROOT = Path(__file__).resolve().parents[2]
KEY, ADDRESS = "sk_sandbox_" + "0" * 32, "https://p.test/v1"
"""Of clients whose transport is played."""


def payout(reference: str | None = None) -> dict[str, Any]:
    """Arguments of `payouts.create`."""
    instrument = {"type": "phone", "phone_number": "+22990000000", "country": "BJ"}
    return {
        "amount": 50,
        "currency": "XOF",
        "method": "mtn_bj",
        "instrument": instrument,
        "reference": reference,
    }


def loop_threads() -> list[threading.Thread]:
    """The threads that serve blocking clients."""
    return [thread for thread in threading.enumerate() if thread.name == "payments-sync"]


def interrupt_main_thread() -> None:
    """What Ctrl-C does."""
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)


def note(error: BaseException) -> str:
    """The one note of an error."""
    (text,) = error.__notes__
    return text


async def alone(call: BlockingCall[Any]) -> None:
    """Run a call as a queue does."""
    running: dict[BlockingCall[Any], asyncio.Task[None]] = {}
    running[call] = asyncio.create_task(call.run(running))
    await running[call]
    assert running == {}


class Silence:
    """A transport that calls `meanwhile` and then answers nothing; `sent` says whether the bytes had left."""

    def __init__(self, meanwhile: Callable[[], object], *, sent: bool) -> None:
        self._meanwhile = meanwhile
        self._sent = sent

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        request.sent = self._sent
        self._meanwhile()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("no answer comes")

    async def aclose(self) -> None:
        """There is nothing to close."""


def run(script: str) -> str:
    """What a script prints in a process of its own; a warning or a word on stderr is a failure."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def run_with_service(sandbox: Sandbox, script: str) -> str:
    """What a script prints that has a service, of this process, at `base_url` for `key`."""
    known = f"key, base_url = {sandbox.api_key!r}, {sandbox.base_url!r}"
    return run(f"{WITH_SERVICE}{known}\n{script}")


WITH_SERVICE = """
import os, sys, threading
from payments_sync import Payments
from tests.sync.scenes import payout
"""
