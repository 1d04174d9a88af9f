"""A server in a process of its own: one JSON line tells its address and, when asked, another its account."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn


class Service:
    """A server's process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self._process, self._out = process, process.stdout
        address = json.loads(self._out.readline())
        self.pid = process.pid
        self.variables = {
            "PAYMENTS_BASE_URL": address["base_url"],
            "PAYMENTS_API_KEY": address["api_key"],
        }

    def account(self) -> dict[str, Any]:
        """Its books and what it counted; it leaves after that."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        told: dict[str, Any] = json.loads(self._out.readline())
        return told


@contextmanager
def serving(module: str, *arguments: str) -> Iterator[Service]:
    """A server of this folder in a process of its own, which ends with the block."""
    with started([sys.executable, "-m", f"benchmarks.{module}", *arguments], {}) as process:
        yield Service(process)


@contextmanager
def started(command: Sequence[str], variables: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process whose pipes are ours; it does not outlive the block."""
    environment = {**os.environ, **variables}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def unwind_on_sigterm() -> None:
    """Let SIGTERM end this process as Ctrl-C does: its folders are removed, and its processes end."""

    def leave(*_: object) -> NoReturn:
        sys.exit(143)

    signal.signal(signal.SIGTERM, leave)
