"""`payments demo --machines`, whole: PostgreSQL, Temporal, workers that are killed, and what is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(600)
Demo = subprocess.Popen[str]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    """The demonstration of a small payroll, with a folder of its own for temporary files."""
    command = [
        sys.executable,
        "-m",
        "payments_async._cli",
        "demo",
        "--machines",
        "--json",
        "--payouts",
        "1500",
    ]
    elsewhere = {"PAYMENTS_LIMIT_STORE": "redis://127.0.0.1:9", "PGSSLMODE": "require", "PGSERVICE": "none"}
    environment = {**os.environ, **elsewhere, "TMPDIR": str(tmp_path)}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    yield process
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def read_until(demo: Demo, step: str) -> list[dict[str, Any]]:
    """The lines up to one of a step."""
    assert demo.stdout is not None
    found: list[dict[str, Any]] = []
    for line in demo.stdout:
        found.append(json.loads(line))
        if found[-1].get("step") == step:
            return found
    raise AssertionError(f"it ended before {step}: {found[-3:]}")


def started_by(demo: Demo, folder: Path) -> list[Path]:
    """The entries in /proc of its processes, and of those that work in its folder."""
    parents: dict[str, str] = {}
    ours = set[Path]()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[entry.name] = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            if str(folder).encode() in (entry / "cmdline").read_bytes():
                ours.add(entry)
    for name in parents:
        above = name
        while above in parents:
            if above == str(demo.pid):
                ours.add(Path("/proc") / name)
            above = parents[above]
    return sorted(ours)


def running(processes: list[Path]) -> list[Path]:
    """Those of these entries in /proc whose process has not ended."""
    found = list[Path]()
    for entry in processes:
        with suppress(OSError):
            if (entry / "cmdline").read_bytes():
                found.append(entry)
    return found


@pytest.mark.brief
def test_killed_workers_pay_every_row_once_and_both_pages_are_there(demo: Demo, tmp_path: Path) -> None:
    addresses = {line["step"]: line["address"] for line in read_until(demo, "page") if "address" in line}
    read_until(demo, "kill -9")
    for address, text in (
        (addresses["temporal"], "/_app/immutable/"),
        (addresses["page"], "1,500 rows decided"),
    ):
        with urllib.request.urlopen(address) as page:
            assert text in page.read().decode()
    lines = read_until(demo, "result")
    assert demo.wait() == 0
    result = lines[-1]
    assert result["ok"] is True
    assert result["asked"] == result["created"] == result["booked"] == 1500
    assert result["asked_sum"] == result["created_sum"] == result["booked_sum"]
    assert (result["kills"] >= 1, result["requests"] >= 1500, result["problems"]) == (True, True, [])
    assert list(tmp_path.iterdir()) == []


def test_a_demonstration_that_is_killed_leaves_no_process_and_no_file(demo: Demo, tmp_path: Path) -> None:
    read_until(demo, "kill -9")
    processes = started_by(demo, tmp_path)
    demo.kill()
    assert demo.wait() == -signal.SIGKILL
    while [*tmp_path.iterdir()] or running(processes):
        time.sleep(0.2)  # its guards are at work


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.brief)])
def test_a_signal_leaves_no_process_and_no_file(demo: Demo, tmp_path: Path, number: signal.Signals) -> None:
    read_until(demo, "kill -9")
    processes = started_by(demo, tmp_path)
    assert len(processes) >= 5  # itself, the database, Temporal, the workers
    demo.send_signal(number)
    assert demo.wait() == 130
    assert running(processes) == []
    assert list(tmp_path.iterdir()) == []
