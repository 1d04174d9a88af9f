"""The example project of the guide to testing, copied and run as its reader would."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# many times as slow when it is traced; others cover the same
pytestmark = pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it

PROJECT = Path(__file__).parents[2] / "examples" / "pytest_project"
BY_NAME = ("-p", "payments_async.testing._plugin", "-p", "pytest_asyncio.plugin")
"""Only the plugins that the project uses: to load all that are installed here takes seconds."""


def pytest_in(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    if options[:4] == BY_NAME:
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_its_tests_pass_with_the_plugin_as_it_is_installed(tmp_path: Path) -> None:
    copy = shutil.copytree(PROJECT, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__"))
    # anyio's is not ours, and its oldest release does not know the newest pytest; the other takes a second
    done = pytest_in(copy, "-p", "no:anyio", "-p", "no:schemathesis")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "11 passed" in done.stdout


def test_a_program_that_pays_anew_what_is_in_doubt_fails_its_tests(tmp_path: Path) -> None:
    copy = shutil.copytree(PROJECT, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__"))
    program = copy / "salaries.py"
    careless = (
        program.read_text()
        .replace(
            "        payout = await client.resolve(unknown)",
            "        return await pay(client, replaced(salary))",
        )
        .replace(
            "\n\n\nasync def pay(",
            "\n\n\ndef replaced(salary: Salary) -> Salary:\n    return Salary(salary.person, "
            'salary.month + "-again", salary.phone, salary.amount)\n\n\nasync def pay(',
        )
    )
    program.write_text(careless)
    done = pytest_in(copy, *BY_NAME, "-k", "never_comes")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "paid_again" in done.stdout
    assert "payments sandbox: requests" in done.stdout
