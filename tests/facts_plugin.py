"""pytest plugin: every fact of `tests/facts.toml` has the passing tests it needs, or the run says what lacks.

A test claims facts with `@pytest.mark.fact("id", ...)`. Its parameter `surface` ("async" or "sync") says
through which face of the client it went; a test without one speaks for the service. A fact's `side` says
which of these it needs. `--facts` fails an incomplete run. Runs of parts of the suite share `--proofs=FILE`:
each adds what it proved, and the last one judges.

Under pytest-xdist the workers check the claims and send them along with each report; the controller judges.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import Final, Literal, get_args

import attrs
import pytest

Side = Literal["client", "service", "both"]
Role = Literal["async", "sync", "service"]

NEEDS: Final[Mapping[Side, tuple[Role, ...]]] = {
    "client": ("async", "sync"),
    "service": ("service",),
    "both": ("async", "sync", "service"),
}
ONE_SURFACE: Final = ("field.", "request.", "idempotency.length-")
"""Facts of fields and their limits: the async tests prove them, the mirror's tests the other surface."""
ID_PATTERN: Final = re.compile(r"[a-z0-9][\w.-]*", re.ASCII)
CLAIMS, ROLE = "facts", "facts_role"  # names of the user properties that carry a test's claims


@attrs.frozen
class Fact:
    """One rule of `docs/interface.md`: where it stands, what it says, and which side has to prove it."""

    id: str = attrs.field(validator=attrs.validators.matches_re(ID_PATTERN))
    section: str = attrs.field(validator=attrs.validators.instance_of(str))
    side: Side = attrs.field(validator=attrs.validators.in_(get_args(Side)))
    text: str = attrs.field(validator=attrs.validators.instance_of(str))


def roles_of(fact: Fact) -> tuple[Role, ...]:
    """The roles in which a fact needs a passing test."""
    return tuple(role for role in NEEDS[fact.side] if role != "sync" or not fact.id.startswith(ONE_SURFACE))


def parse_facts(source: str) -> dict[str, Fact]:
    """The facts of a TOML text by id, in its order. `ValueError` says which entry is wrong."""
    facts: dict[str, Fact] = {}
    for number, entry in enumerate(tomllib.loads(source).get("fact", []), start=1):
        try:
            fact = Fact(**entry)
        except (TypeError, ValueError) as error:
            raise ValueError(f"fact {number}: {error.args[0]}") from error
        if fact.id in facts:
            raise ValueError(f"fact {number}: the id {fact.id!r} is taken")
        facts[fact.id] = fact
    return facts


def claimed_ids(item: pytest.Item) -> list[str]:
    """The ids on the test, its parameters, class and module, each once."""
    return list(dict.fromkeys(str(name) for marker in item.iter_markers("fact") for name in marker.args))


def surface_of(item: pytest.Item) -> object:
    if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
        return item.callspec.params.get("surface")
    return None


def claim_problem(ids: Iterable[str], surface: object, known: Mapping[str, Fact]) -> str | None:
    """What is wrong with a test's claims, or None."""
    if surface not in ("async", "sync", None):
        return f'the parameter surface is {surface!r}; facts know "async" and "sync"'
    for name in ids:
        if name not in known:
            near = ", ".join(difflib.get_close_matches(name, known, n=3))
            return f"no fact {name!r} in the fact list; near: {near or 'none'}"
    return None


@attrs.frozen(eq=False)
class ClaimChecker:
    """Runs where tests are collected: refuses unknown ids and notes the claims on each test."""

    facts: Mapping[str, Fact]

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Turn a collector whose tests claim nonsense into a collection error."""
        report = yield
        items = [node for node in report.result or () if isinstance(node, pytest.Item)]
        problems = list(filter(None, map(self._note_claims, items)))
        if problems:
            report.outcome, report.longrepr, report.result = "failed", "\n".join(problems), []
        return report

    def _note_claims(self, item: pytest.Item) -> str | None:
        ids, surface = claimed_ids(item), surface_of(item)
        if not ids:
            return None
        problem = claim_problem(ids, surface, self.facts)
        if problem:
            return f"{item.nodeid}: {problem}"
        item.user_properties += [(CLAIMS, " ".join(ids)), (ROLE, str(surface or "service"))]
        return None


@attrs.frozen(eq=False)
class Judge:
    """Runs where reports arrive (the xdist controller, or the only process) and decides about the run."""

    facts: Mapping[str, Fact]
    strict: bool
    file: Path | None
    passed: set[tuple[str, str]]
    """For which fact a test passed, in which role."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what a test proves: nothing when it was skipped or expected to fail."""
        properties = dict(report.user_properties)
        if ROLE in properties and report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
            self.passed.update((name, str(properties[ROLE])) for name in str(properties[CLAIMS]).split())

    def missing(self, fact: Fact) -> str:
        """Why the fact is not proven; empty when it is."""
        lacking = [role for role in roles_of(fact) if (fact.id, role) not in self.passed]
        return f"lacks {', '.join(lacking)}" if lacking else ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Keep the proofs; under `--facts` an otherwise good run with an unproven fact exits with 1."""
        if self.file:
            self.file.write_text(json.dumps(sorted(self.passed)), encoding="utf-8")
        incomplete = any(map(self.missing, self.facts.values()))
        if self.strict and incomplete and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The count under `-v` or `--facts`; under `--facts` also every unproven fact with what it lacks."""
        missing = {name: self.missing(fact) for name, fact in self.facts.items()}
        if self.strict or terminalreporter.verbosity > 0:
            proven = sum(not lack for lack in missing.values())
            terminalreporter.write_line(f"facts: {len(missing)} listed, {proven} proven")
        for name, lack in missing.items() if self.strict else ():
            if lack:
                terminalreporter.write_line(f"  {name}: {lack}", red=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--facts`, `--proofs=FILE`, and the setting `facts_file` (default: facts.toml beside this)."""
    group = parser.getgroup("facts", "facts of the interface")
    group.addoption("--facts", action="store_true", help="fail unless every fact has its passing tests")
    group.addoption("--proofs", metavar="FILE", help="count what FILE says is proven, and add to it")
    default = [Path(__file__).with_name("facts.toml")]
    parser.addini("facts_file", "the fact list (TOML)", type="paths", default=default)


def pytest_configure(config: pytest.Config) -> None:
    """Read the list; check claims in every process, judge in the one that sees all reports."""
    config.addinivalue_line("markers", "fact(*ids): the facts of the fact list that this test proves")
    (path,) = config.getini("facts_file")
    try:
        facts = parse_facts(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise pytest.UsageError(f"{path}: {error}") from error
    config.pluginmanager.register(ClaimChecker(facts), "facts-claims")
    if config.option.collectonly or hasattr(config, "workerinput"):
        return
    name = config.getoption("proofs")
    file = config.invocation_params.dir / name if name else None
    kept = json.loads(file.read_text(encoding="utf-8")) if file and file.exists() else ()
    judge = Judge(facts, config.getoption("facts"), file, {(fact, role) for fact, role in kept})
    config.pluginmanager.register(judge, "facts-judge")
