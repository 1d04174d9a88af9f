"""A server in a process of its own: one JSON line tells its address and, when asked, another its account."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


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
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Service(process)
        finally:
            process.terminate()
