"""A process that is measured: started once, asked for one round after the other, silent in between.

Contenders run in processes of their own, so that each has its own libraries, and rounds of several can take
turns without one paying for another's start. Imported on both sides, in our environment and in the
peers': standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CLIENT_CORE, SERVER_CORE = 0, 1
"""Places among the cores this process may use: what is measured on one, what answers it on the other."""


class WorkerFailed(RuntimeError):
    """A worker ended instead of answering; its own words are on stderr."""


class Worker:
    """The asking side."""

    def __init__(self, process: subprocess.Popen[str], module: str) -> None:
        self.process = process
        self._module = module

    def ask(self, **question: Any) -> dict[str, float]:
        """One round: the question's fields are the keyword arguments of the worker's function."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise WorkerFailed(f"{self._module} ended without an answer")
        answer: dict[str, float] = json.loads(line)
        return answer


@contextlib.contextmanager
def started(module: str, *arguments: str, python: str | Path = sys.executable) -> Iterator[Worker]:
    """`python -m benchmarks.contenders.<module> arguments` as a worker, held on one core."""
    command = [str(python), "-m", f"benchmarks.contenders.{module}", *arguments]
    environ = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environ
    ) as process:
        hold(CLIENT_CORE, process.pid)
        try:
            yield Worker(process, module)
        finally:
            process.kill()


def turns(workers: Mapping[str, Worker], rounds: int, **question: Any) -> list[dict[str, dict[str, float]]]:
    """Each round's answers by name, but the first's. All take turns: what disturbs one disturbs all."""
    found = [{name: worker.ask(**question) for name, worker in workers.items()} for _ in range(rounds + 1)]
    return found[1:]


def hold(core: int, pid: int = 0) -> None:
    """Hold a process on one of the cores it may use; where that cannot be done, it stays free."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(pid, {cores[core % len(cores)]})


def serve(answer: Callable[..., Mapping[str, Any]]) -> None:
    """The answering side: call `answer` with each question until the asking side is gone."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no answer
    for line in sys.stdin:
        print(json.dumps(answer(**json.loads(line))), file=answers, flush=True)
