"""`payments demo --processes 3`: they pay one batch, and every two seconds one of them is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..._runtime import SYSTEM
from ...sandbox import Sandbox
from .._exit_codes import Exit
from .._output import Show
from .._text import print_message
from .payouts import payout_problems, read_csv, show_books, show_plan, write_csv

_EVERY: Final = 2.0  # seconds between two kills
_KILLS: Final = 5
"""Kills in all: each leaves rows that others may take a minute later, and the demonstration has to end."""


def run_processes(count: int, seed: int, processes: int, show: Show) -> Exit:
    """Have the file paid by processes that are killed; `Exit.REFUSED` when the books do not agree."""
    show.heading("payments demo", f"{processes} processes pay one batch; every 2 s one is killed")
    with tempfile.TemporaryDirectory(prefix="payments-demo-") as folder, Sandbox(seed=seed) as sandbox:
        file = write_csv(Path(folder) / "payouts.csv", count, seed)
        rows = read_csv(file)
        show_plan(file, rows, show)
        command = [sys.executable, "-m", "payments_async", "payouts", "run", str(file), "--json"]
        service = {"PAYMENTS_BASE_URL": sandbox.base_url, "PAYMENTS_API_KEY": sandbox.api_key}
        code = _run(command, os.environ | service, processes, show)
        show.step("Batch", f"complete and certified: exit code {code}", good=code == 0, exit_code=code)
        return max(show_books([*payout_problems(rows, sandbox.books)], rows, show), Exit(code))


def _run(command: Sequence[str], variables: Mapping[str, str], processes: int, show: Show) -> int:
    """Kill the oldest process again and again until one has seen the batch complete; its exit code."""

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    crew, kills, due = [start() for _ in range(processes)], 0, SYSTEM.monotonic() + _EVERY
    try:
        while (ended := next((each for each in crew if each.poll() is not None), None)) is None:
            with suppress(subprocess.TimeoutExpired):
                crew[-1].wait(0.1)
            if kills < _KILLS and SYSTEM.monotonic() >= due:
                kills, due = kills + 1, SYSTEM.monotonic() + _EVERY
                killed = crew.pop(0)
                killed.kill()
                killed.communicate()
                show.step("Killed", f"process {killed.pid}, and another begun", good=None, pid=killed.pid)
                crew.append(start())
        if ended.returncode:
            print_message(ended.communicate()[1])
        return ended.returncode
    finally:
        for each in crew:
            each.kill()
            each.communicate()
