"""`nox` runs every check of a change, `nox -s NAME` one. Sessions install from the pins in pyproject.toml."""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import sys
from typing import NoReturn

import nox

nox.needs_version = ">=2024.4"
nox.options.default_venv_backend = "uv"
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = False
CHANGE = ["lint", "typing", "mirror", "tests"]
NIGHT = ["examples", "engines", "airflow", "lowest", "standins", "docs", "openapi", "audit"]
nox.options.sessions = CHANGE

RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
OTHERS = [version for version in ("3.11", "3.12", "3.13", "3.14") if version != RUNNING]
CODE = ["payments_async", "payments_sync", "tests", "benchmarks", "examples", "tools", *glob.glob("*.py")]
CI = os.environ.get("CI") == "true"
DJANGO = os.path.join("examples", "frameworks", "django_shop")
FORK = "aioresponses-ng==0.8.2"
INTERPRETER = [  # rooms whose subject is the interpreter: sockets, threads, types, how things are shown
    *("tests/sync", "tests/http", "tests/loopback", "tests/codec", "tests/request", "tests/webhooks"),
    *("tests/testing", "tests/models", "tests/test_runtime.py", "tests/test_attrs.py"),
    "tests/test_public_names.py",
]
LINTERS = ["@stoplight/spectral-cli@6.16.3", "@redocly/cli@2.77.0"]  # of OpenAPI; they run on node


def select_all_of_pyenv() -> None:
    """Select every Python of pyenv, after those that are: its shims refuse the others."""
    if shutil.which("pyenv"):
        asked = (["pyenv", "version-name"], ["pyenv", "versions", "--bare"])
        found = [subprocess.run(each, capture_output=True, text=True, check=False).stdout for each in asked]
        os.environ["PYENV_VERSION"] = ":".join(" ".join(found).split())


select_all_of_pyenv()


def sync(session: nox.Session, *groups: str, compiled: bool = True) -> None:
    """Install dependency groups and the built package, pinned, into the session's environment.

    All of it is compiled: tests start hundreds of processes, and none need compile anything.
    """
    chosen = [*(f"--group={group}" for group in groups), *["--compile-bytecode"] * compiled]
    session.run_install(
        "uv",
        "sync",
        "--quiet",
        "--no-default-groups",
        "--no-editable",
        "--reinstall-package=payments-sdk",
        f"--python={session.virtualenv.location}",
        *chosen,
        env={"UV_PROJECT_ENVIRONMENT": session.virtualenv.location},
    )


def skipped(session: nox.Session, why: str) -> NoReturn:
    """End a session whose tool is not at hand: as skipped, in CI as failed."""
    if CI:
        session.error(why)
    session.skip(why)


@nox.session(python=RUNNING)
def lint(session: nox.Session) -> None:
    """Format, lint, who imports whom, circles and doubled names; in CI the documentation site too."""
    sync(session, "lint", *["docs"] * CI)
    session.run("ruff", "format", "--check", *CODE)
    session.run("ruff", "check", *CODE)
    session.run("lint-imports", "--no-logo", "--no-cache", env={"PYTHONPATH": "."})
    session.run("python", "-m", "tests.house", "--check")
    if CI:
        session.run("python", "-m", "tools.site")


@nox.session(python=RUNNING)
def typing(session: nox.Session) -> None:
    """Strict types inside, complete types outside."""
    sync(session, "typing")
    session.run("mypy")
    programs = [file for file in glob.glob("examples/**/*.py", recursive=True) if DJANGO not in file]
    session.run("mypy", "--strict", "tests/typing", "hatch_build.py", *programs)
    with session.chdir(DJANGO):  # where its mypy.ini is
        session.run("mypy", ".", env={"DJANGO_SECRET_KEY": "for mypy"})
    session.run("python", "-m", "tests.docs.typed_snippets")
    session.run("pyright", "tests/typing/fields.py")
    for package in ("payments_async", "payments_sync"):
        session.run("pyright", "--verifytypes", package, "--ignoreexternal")


@nox.session(python=RUNNING)
def mirror(session: nox.Session) -> None:
    """Renew payments_sync, and the Args sections of both; `nox -s mirror -- --check` only compares."""
    check = session.posargs or ["--check"] * CI
    session.run("python", "-m", "tools.mirror", *check)


def run_tests(session: nox.Session, *options: str, processes: int = 4) -> None:
    """Tests against the installed package; prints the ten slowest.

    More processes than cores, as many tests wait for a server or a process.
    Bytecode is kept: making it of the tests, with pytest's assertions, takes each process 16 s.
    """
    how = (f"--numprocesses={processes}", "--dist=worksteal", "--durations=10")
    session.run("pytest", *how, *options, *session.posargs, env={"PYTHONDONTWRITEBYTECODE": None})


@nox.session(python=RUNNING)
def tests(session: nox.Session) -> None:
    """Every test that is not slow, or those that are named.

    Where CI=true: every line and branch that we measure is reached by them; then what is slow, or heavy
    under a tracer; the client's tests under the hostile gap profile; and each fact is proven by one of these.
    """
    sync(session, "tests")
    if session.posargs or not CI:
        run_tests(session, *["-mnot slow"] * (not session.posargs))
        return
    proofs = os.path.join(session.virtualenv.location, "proofs.json")
    if os.path.exists(proofs):
        os.remove(proofs)
    session.run("coverage", "erase")
    run_tests(session, "-mnot slow and not no_cover", "--cov", "--cov-report=", f"--proofs={proofs}")
    session.run("coverage", "report", "--fail-under=100")
    run_tests(session, "-mslow or no_cover", f"--proofs={proofs}", "--facts", processes=6)
    run_tests(session, "--gap-profile=hostile", "tests/client")


@nox.session(python=RUNNING)
def examples(session: nox.Session) -> None:
    """The programs for frameworks, started as their users would: the built wheel, nothing of the checkout."""
    sync(session, "examples")
    session.run("python", "-P", "examples/frameworks/run.py", *session.posargs)


@nox.session(python=OTHERS, tags=["others"])
def tests_on(session: nox.Session) -> None:
    """The interpreter's rooms on another Python: `nox -s tests_on-3.13`. Skipped where there is none."""
    sync(session, "tests", compiled=False)
    run_tests(session, *(INTERPRETER if not session.posargs else ()))


@nox.session(python="3.11")
def lowest(session: nox.Session) -> None:
    """All tests with the oldest version of every dependency that we accept, extras included."""
    sync(session, "tests")
    floors = ["uv", "pip", "install", "--quiet", "--no-config", "--resolution=lowest-direct", "--upgrade"]
    otel = ["opentelemetry-sdk>=1.30", "opentelemetry-instrumentation-aiohttp-client>=0.51b0"]  # one version
    session.run_install(*floors, f"--python={session.virtualenv.location}", ".[all,parquet]", *otel)
    run_tests(session)


@nox.session(python=RUNNING)
def audit(session: nox.Session) -> None:
    """Published vulnerabilities in our pins and floors; skipped where no database can be reached."""
    session.install("pip-audit")
    pinned, oldest = (os.path.join(session.create_tmp(), name) for name in ("pinned.txt", "oldest.txt"))
    listing = [
        "uv",
        "pip",
        "compile",
        "--quiet",
        "--no-header",
        "--no-annotate",
        "--all-extras",
        "pyproject.toml",
    ]
    session.run_install(*listing, f"--output-file={pinned}")
    session.run_install(*listing, f"--output-file={oldest}", "--resolution=lowest-direct", "--no-config")
    for listed in (pinned, oldest):
        if not any(audited(session, service, listed) for service in ("pypi", "osv")):
            session.skip("no database of vulnerabilities can be reached from here")


def audited(session: nox.Session, service: str, listed: str) -> bool:
    """Whether a database could be asked about the listed versions. A vulnerability fails the session."""
    report = os.path.join(session.create_tmp(), "audit.json")
    with open(report, "wb"):  # an audit that could not connect leaves it empty
        pass
    command = ["pip-audit", f"--requirement={listed}", "--no-deps", "--disable-pip", f"--output={report}"]
    session.run(
        *command, "--format=json", f"--vulnerability-service={service}", success_codes=[0, 1], silent=True
    )
    with open(report, "rb") as file:
        content = file.read()
    found = [item for item in json.loads(content)["dependencies"] if "vulns" in item] if content else []
    if vulnerable := [
        f"{item['name']} {item['version']}: {known['id']}" for item in found for known in item["vulns"]
    ]:
        session.error("; ".join(vulnerable))
    return bool(found)


@nox.session(python=RUNNING)
def docs(session: nox.Session) -> None:
    """The documentation site in build/docs/site: strict; links and names checked."""
    sync(session, "docs")
    session.run("python", "-m", "tools.site", *session.posargs)


@nox.session(python=RUNNING)
def pictures(session: nox.Session) -> None:
    """Make the pictures of README.md and docs/ anew: `nox -s pictures -- timeline` makes one."""
    sync(session, "pictures")
    session.run("python", "-m", "tools.pictures", *session.posargs)


@nox.session(python=RUNNING)
def bench(session: nox.Session) -> None:
    """The benchmarks, side by side with their peers: `nox -s bench -- --quick --only call_cost decode`."""
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
def engines(session: nox.Session) -> None:
    """The examples for Temporal and Celery, on their real servers, with workers killed and stopped."""
    sync(session, "engines")
    # they mostly wait
    pytest = ["pytest", "--verbose", "--numprocesses=3", "--durations=0"]
    session.run(*pytest, "tests/engines", *session.posargs)


@nox.session(python=RUNNING)
def airflow(session: nox.Session) -> None:
    """The example for Airflow, in an environment of what tests/engines/airflow.txt pins."""
    # without the pins of pyproject
    session.install("--no-config", "--requirement", "tests/engines/airflow.txt")
    session.install("--no-config", "--no-deps", ".")
    pytest = ["pytest", "--verbose", "--durations=0"]
    session.run(*pytest, "tests/engines/test_airflow.py", *session.posargs)


@nox.session(python=RUNNING)
def standins(session: nox.Session) -> None:
    """What stands in for a service in tests, or records it, works as with plain aiohttp.

    Tests as users write them run with aioresponses and with its fork, which has the same module's name.
    """
    sync(session, "tests")
    session.run("pytest", "--verbose", "tests/client/test_standins.py", *session.posargs)
    fork = os.path.join(session.create_tmp(), "fork")
    into = ["uv", "pip", "install", "--quiet", "--no-deps", f"--target={fork}"]
    session.run_install(*into, f"--python={session.virtualenv.location}", FORK)
    for path in ("", fork):
        plain = ["pytest", "--verbose", "--config-file=tests/standins/pytest.ini"]
        session.run(*plain, "tests/standins/plain_aioresponses.py", env={"PYTHONPATH": path})


@nox.session(python=RUNNING)
def openapi(session: nox.Session) -> None:
    """docs/openapi.json: spectral and redocly find nothing."""
    sync(session, "openapi")
    if not shutil.which("npm", path=session.bin):
        skipped(session, "spectral and redocly: node has no wheel for this machine")
    folder = os.path.join(session.create_tmp(), "linters")
    install = ["npm", "install", f"--prefix={folder}", "--ignore-scripts", "--no-audit", "--no-fund"]
    session.run(*install, "--loglevel=error", *LINTERS, success_codes=[0, 1])
    spectral, redocly = (
        os.path.join(folder, "node_modules", ".bin", name) for name in ("spectral", "redocly")
    )
    if not os.path.exists(redocly):
        skipped(session, "spectral and redocly: npm cannot install them here")
    document, rules = "docs/openapi.json", "tests/fidelity"
    every = [f"--ruleset={rules}/spectral.yaml", "--fail-severity=hint"]
    session.run(spectral, "lint", document, *every, external=True)
    quiet = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
    session.run(redocly, "lint", document, f"--config={rules}/redocly.yaml", external=True, env=quiet)


@nox.session(python=RUNNING)
def house(session: nox.Session) -> None:
    """Figures of the code's size and shape, and the way of four calls through its files; judges nothing."""
    sync(session, "tests")
    session.run("python", "-m", "tests.house")


@nox.session(python=RUNNING)
def release(session: nox.Session) -> None:
    """Build what a release publishes into dist/, check it, and start each extra in an empty environment."""
    sync(session, "release")
    again = os.path.join(session.create_tmp(), "again")
    for folder in ("dist", again):
        shutil.rmtree(folder, ignore_errors=True)
    session.run("uv", "build", "--quiet", external=True)  # the wheel is built from the source distribution
    unpacked = os.path.join(again, "unpacked")
    shutil.unpack_archive(*glob.glob("dist/*.tar.gz"), unpacked, filter="data")
    elsewhere = {"PYTHONHASHSEED": "1", "TZ": "Asia/Kathmandu"}
    build = ["uv", "build", "--quiet", "--sdist", "--wheel", f"--out-dir={again}"]
    session.run(*build, *glob.glob(f"{unpacked}/*"), external=True, env=elsewhere)
    session.run("twine", "check", "--strict", *glob.glob("dist/*"))
    session.run("python", "-m", "tools.release.artifacts", "dist", again)
    session.run("python", "-m", "tools.release.installing", "dist", *session.posargs)


@nox.session(python=False)
def everything(session: nox.Session) -> None:
    """What a change runs, and what a night runs."""
    for name in [*CHANGE, *NIGHT]:
        session.notify(name)
