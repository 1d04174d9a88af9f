"""Each extra, installed into an empty environment and started, on the oldest and newest Python.

python -m tools.release.installing DIST [PYTHON …]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .artifacts import NAME, PROJECT
from .programs import PROGRAMS

PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def at_hand() -> list[str]:
    """The oldest and the newest Python of this machine that the project may run on."""
    found = [path for version in PYTHONS if (path := interpreter(version))]
    return list(dict.fromkeys([found[0], found[-1]]))


def interpreter(version: str) -> str:
    """A Python of this version, on the path or among pyenv's; empty if there is none."""
    find = ["uv", "--no-config", "python", "find", "--system", "--no-project", version]
    found = subprocess.run(find, capture_output=True, text=True, check=False)
    if found.returncode == 0:
        return found.stdout.strip()
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    return next((str(path) for path in versions.glob(f"{version}.*/bin/python")), "")


def started(wheel: Path, extra: str, python: str) -> Iterator[str]:
    """Install an extra and run its program; yields what went wrong."""
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        environment = Path(folder, "environment")
        scripts = environment / ("Scripts" if os.name == "nt" else "bin")
        wanted = f"payments-sdk[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
        steps = [
            ["uv", "--no-config", "venv", "--quiet", "--no-project", f"--python={python}", str(environment)],
            ["uv", "--no-config", "pip", "install", "--quiet", f"--python={environment}", wanted],
            [str(scripts / "python"), "-c", PROGRAMS[extra]],
        ]
        path = os.pathsep.join([str(scripts), os.environ["PATH"]])
        settings = {
            name: value for name, value in os.environ.items() if not name.startswith(("PAYMENTS_", "PYTHON"))
        }
        for step in steps:
            done = subprocess.run(
                step, cwd=folder, env={**settings, "PATH": path}, capture_output=True, text=True, check=False
            )
            if done.returncode:
                yield f"  {extra or 'no extra'}: FAILED\n{done.stdout}{done.stderr}"
                return


def main(dist: str, *pythons: str) -> int:
    """Print what was started, and what went wrong. The exit code is 1 if anything did."""
    wheel = Path(dist, f"{NAME}-py3-none-any.whl").resolve()
    if missing := {"", *PROJECT["optional-dependencies"]} - set(PROGRAMS):
        print(f"programs.py has no program for {', '.join(sorted(missing))}")
        return 1
    failed = 0
    for python in pythons or at_hand():
        print(f"{python}:", flush=True)
        for extra in PROGRAMS:
            wrong = [*started(wheel, extra, python)]
            failed += bool(wrong)
            print("\n".join(wrong) or f"  {extra or 'no extra'}: installed and started", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
