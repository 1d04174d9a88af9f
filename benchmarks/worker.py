"""A process that is measured: started once, asked for one round after the other, silent in between.

Contenders run in processes of their own, so that each has its own libraries, and rounds of several can take
turns without one paying for another's start. Imported on both sides, in our environment and in the
peers': standard library only.
"""

from __future__ import annotations

import contextlib
import cProfile
import io
import json
import os
import pstats
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
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

    def ask(self, **question: Any) -> dict[str, Any]:
        """One round: the question's fields are the keyword arguments of the worker's function."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise WorkerFailed(f"{self._module} ended without an answer")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def profile(self, **question: Any) -> str:
        """One round under cProfile: the 25 functions in which most time is spent."""
        return str(self.ask(profile=True, **question)["profile"])


@contextlib.contextmanager
def started(
    module: str,
    *arguments: str,
    python: str | Path = sys.executable,
    core: int | None = CLIENT_CORE,
    environ: Mapping[str, str] | None = None,
) -> Iterator[Worker]:
    """`python -m module arguments` as a worker, held on one core (None: on all)."""
    command = [str(python), "-m", module, *arguments]
    env = {**os.environ, "PYTHONHASHSEED": "0", **(environ or {})}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=env
    ) as process:
        hold(core, process.pid)
        try:
            yield Worker(process, module)
        finally:
            process.kill()


def hold(core: int | None, pid: int = 0) -> None:
    """Hold a process on one of the cores it may use; where that cannot be done, it stays free."""
    if core is not None and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(pid, {cores[core % len(cores)]})


def serve(answer: Callable[..., Mapping[str, Any]], profile: Callable[..., str] | None = None) -> None:
    """The answering side: call `answer` with each question until the asking side is gone.

    `profile` answers those that ask for a profile, where `answer` under cProfile would not show it: cProfile
    sees its own thread alone.
    """
    told, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no answer
    for line in sys.stdin:
        question = json.loads(line)
        if question.pop("profile", False):
            told_of = profile(**question) if profile else profiled(partial(answer, **question))
            found: Mapping[str, Any] = {"profile": told_of}
        else:
            found = answer(**question)
        print(json.dumps(found), file=told, flush=True)


def profiled(work: Callable[[], object]) -> str:
    """The 25 functions in which `work` spends most of its time, with no path of this machine."""
    profile = cProfile.Profile()
    profile.runcall(work)
    return functions(profile)


def functions(profile: cProfile.Profile | str) -> str:
    """The 25 with most time in a profile, or in one's file."""
    text = io.StringIO()
    pstats.Stats(profile, stream=text).strip_dirs().sort_stats("tottime").print_stats(25)
    return text.getvalue()
