"""Starts worker processes (`worker_process`), each behind a proxy of its own, and reads what they noted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import attrs

from payments_async.sandbox import Sandbox
from tests.support.servers import CutProxy, PostgresServer

BRISK = {"lease": 1.6, "margin": 0.4, "renew_every": 0.3}
"""Leases that end while a test waits."""


class Write(NamedTuple):
    """One creation, right before its first byte was written."""

    at: float
    """Seconds of the machine's monotonic clock."""
    lease: str
    chunk: int


@attrs.define
class WorkerProcess:
    """A worker in a process of its own."""

    process: subprocess.Popen[str]
    proxy: CutProxy
    notes: Path

    def freeze(self) -> None:
        """Stop it, as when a machine is suspended."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self.process.kill()
        self.process.wait()

    def end(self, within: float = 30.0) -> tuple[int, dict[str, Any]]:
        """Wait until it ends; its exit code and its report."""
        told, _ = self.process.communicate(timeout=within)
        return self.process.returncode, json.loads(told.splitlines()[-1]) if told else {}

    @property
    def writes(self) -> list[Write]:
        """What it has written so far."""
        if not self.notes.exists():
            return []
        lines = [line.split() for line in self.notes.read_text().splitlines()]
        return [Write(float(at), lease, int(chunk)) for at, lease, chunk in lines]


@contextmanager
def worker_process(
    server: PostgresServer,
    database: str,
    sandbox: Sandbox,
    folder: Path,
    name: str,
    *,
    ablate: Sequence[str] = (),
    writes: int = 60_000,
    timing: dict[str, float] | None = None,
    **options: Any,
) -> Iterator[WorkerProcess]:
    """Context of a running worker process, which is killed at the end."""
    with CutProxy(server.address) as proxy:
        told = {
            "url": server.url(database, port=proxy.port) + "?connect_timeout=2",
            "base_url": sandbox.base_url,
            "notes": str(folder / f"{name}.writes"),
            "worker": {"until_idle": True, "folder": str(folder), **options},
            "ablate": list(ablate),
            "writes": writes,
            **(BRISK if timing is None else timing),
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.worker_process", json.dumps(told)],
            env={**os.environ, "PAYMENTS_API_KEY": sandbox.api_key},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        try:
            yield WorkerProcess(process, proxy, folder / f"{name}.writes")
        finally:
            process.kill()
            process.communicate()
