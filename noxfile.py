"""`nox` runs every check of a change, `nox -s NAME` one. Sessions install from the pins in pyproject.toml."""

from __future__ import annotations

import os
import shutil
import sys

import nox

nox.needs_version = ">=2024.4"
nox.options.default_venv_backend = "uv"
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = False
nox.options.sessions = ["lint", "typing", "mirror", "tests"]

RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
OTHERS = [version for version in ("3.11", "3.12", "3.13") if version != RUNNING]
CODE = ["payments_async", "payments_sync", "tests", "benchmarks", "examples", "noxfile.py"]
CI = os.environ.get("CI") == "true"


def sync(session: nox.Session, *groups: str) -> None:
    """Install dependency groups and the built package, pinned, into the session's environment."""
    chosen = [f"--group={group}" for group in groups]
    session.run_install(
        "uv",
        "sync",
        "--quiet",
        "--no-default-groups",
        "--no-editable",
        "--reinstall-package=payments-sdk",
        "--compile-bytecode",  # tests start hundreds of processes, and none need compile anything
        f"--python={session.virtualenv.location}",
        *chosen,
        env={"UV_PROJECT_ENVIRONMENT": session.virtualenv.location},
    )


@nox.session(python=RUNNING)
def lint(session: nox.Session) -> None:
    """Format, lint, and who imports whom."""
    sync(session, "lint")
    session.run("ruff", "format", "--check", *CODE)
    session.run("ruff", "check", *CODE)
    session.run("lint-imports", "--no-logo", "--no-cache", env={"PYTHONPATH": "."})


@nox.session(python=RUNNING)
def typing(session: nox.Session) -> None:
    """Strict types inside, complete types outside."""
    sync(session, "typing")
    session.run("mypy")
    session.run(
        "mypy", "--strict", "tests/typing", "examples/shop/shop.py", "examples/pytest_project/salaries.py"
    )
    session.run("python", "-m", "tests.docs.typed_snippets")
    for package in ("payments_async", "payments_sync"):
        session.run("pyright", "--verifytypes", package, "--ignoreexternal")


@nox.session(python=RUNNING)
def mirror(session: nox.Session) -> None:
    """Renew payments_sync from payments_async; `nox -s mirror -- --check` only compares."""
    check = session.posargs or ["--check"] * CI
    session.run("python", "payments_sync/_mirror.py", *check)


def run_tests(session: nox.Session, *options: str) -> None:
    """The whole suite on both cores, against the installed package."""
    session.run("pytest", "--numprocesses=2", "--dist=worksteal", *options, *session.posargs)


@nox.session(python=RUNNING)
def tests(session: nox.Session) -> None:
    """All tests: both surfaces, facts, documentation, coverage of layers 0 to 4."""
    sync(session, "tests")
    if session.posargs:
        run_tests(session)
        return
    session.run("coverage", "erase")
    run_tests(session, "--facts", "--cov", "--cov-report=")
    run_tests(session, "--gap-profile=hostile", "tests/client")
    session.run("coverage", "report", "--fail-under=100")


@nox.session(python=OTHERS, tags=["others"])
def tests_on(session: nox.Session) -> None:
    """All tests on another Python: `nox -s tests_on-3.13`."""
    sync(session, "tests")
    run_tests(session, "--facts")


@nox.session(python="3.11")
def lowest(session: nox.Session) -> None:
    """All tests with the oldest versions of our dependencies that we accept."""
    session.install("--resolution=lowest-direct", ".", "--no-config")
    tools = [
        "pytest",
        "pytest-asyncio",
        "pytest-timeout",
        "pytest-xdist",
        "pytest-cov",
        "hypothesis",
        "aioresponses",
        "axe-playwright-python",
        "playwright",
        "jsonschema",
        "schemathesis",
    ]
    session.install(*tools, "payments-sdk[cli,sandbox] @ .", "--no-config")
    session.install("--resolution=lowest-direct", ".", "--no-config")
    run_tests(session)


@nox.session(python=RUNNING)
def bench(session: nox.Session) -> None:
    """The benchmarks, side by side with their peers: `nox -s bench -- --quick --only call_cost,decode`."""
    sync(session, "tests")
    peers = os.path.join(os.getcwd(), ".nox", "peers")
    if not os.path.exists(peers):
        session.run_install("uv", "venv", "--quiet", f"--python={sys.executable}", peers)
    session.run_install("uv", "pip", "sync", "--quiet", f"--python={peers}", "benchmarks/peers.txt")
    session.run("python", "-m", "benchmarks", *session.posargs, env={"PAYMENTS_BENCH_PEERS": peers})


@nox.session(python=RUNNING)
def instructions(session: nox.Session) -> None:
    """The hot paths in instructions, against what they took; `-- --update` keeps what they take now."""
    sync(session, "tests")
    session.run("python", "-m", "benchmarks.instructions", *session.posargs)


@nox.session(python=RUNNING)
def campaign(session: nox.Session) -> None:
    """The long versions of the randomised tests."""
    sync(session, "tests")
    session.run("python", "-m", "tests.campaigns", *session.posargs)


@nox.session(python=RUNNING)
def build(session: nox.Session) -> None:
    """The wheel and the source distribution."""
    shutil.rmtree("dist", ignore_errors=True)
    session.run("uv", "build", "--quiet", external=True)
