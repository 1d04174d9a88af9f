"""The fact plugin, run on small suites of its own through pytester."""

from __future__ import annotations

from pathlib import Path

import pytest

RULE = """
[[fact]]
id = "{side}.rule"
section = "Errors"
side = "{side}"
text = "A rule of the {side} | side."
"""
FACTS = "".join(RULE.format(side=side) for side in ("client", "service", "both"))
SURFACES = 'import pytest\n\nboth_surfaces = pytest.mark.parametrize("surface", ["async", "sync"])\n'
COMPLETE = """
@pytest.mark.fact("client.rule", "both.rule")
@both_surfaces
def test_client(surface): pass

@pytest.mark.fact("service.rule", "both.rule")
def test_service(): pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An empty project with three facts, one for each side."""
    here = str(Path(__file__).parent)
    pytester.syspathinsert(here)
    monkeypatch.setenv("PYTHONPATH", here)  # for subprocesses
    # Importing plugins that are not needed costs a second a run.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makefile(".toml", rules=FACTS)
    pytester.makeini("[pytest]\nfacts_file = rules.toml\naddopts = -p facts_plugin -p no:cacheprovider")
    return pytester


ONLY_ASYNC = COMPLETE.replace("@both_surfaces", '@pytest.mark.parametrize("surface", ["async"])')
ODD_SURFACE = COMPLETE.replace("@both_surfaces", '@pytest.mark.parametrize("surface", ["blocking"])')
FAILING = COMPLETE.replace("def test_service(): pass", "def test_service(): assert 0")
NONE = "def test_unrelated(): pass"
ELSEWHERE = """
pytestmark = pytest.mark.fact("service.rule")

@pytest.mark.fact("client.rule")
class TestClient:
    @pytest.fixture(params=[pytest.param("async", marks=pytest.mark.fact("both.rule")), "sync"])
    def surface(self, request): return request.param

    def test_client(self, surface): pass

def test_service(): pass
"""


def of_service(body: str, mark: str = "") -> str:
    """A test that claims the service's fact."""
    return f'{mark}@pytest.mark.fact("service.rule")\ndef test_service():\n    {body}'


def broken_in(phase: str) -> str:
    """A test of the service's fact that fails in a phase."""
    return f"""
@pytest.fixture
def world():
    assert {phase!r} != "setup"
    yield
    assert {phase!r} != "teardown"

@pytest.mark.fact("service.rule")
def test_broken(world): assert {phase!r} != "call"
"""


OK, FAILED = pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED
UNPROVEN = {
    NONE: "  client.rule: lacks async, sync|  both.rule: lacks async, sync, service",
    ONLY_ASYNC: "facts: 3 listed, 1 proven|  client.rule: lacks sync|  both.rule: lacks sync",
    of_service('pytest.skip("later")'): "  service.rule: lacks service",
    of_service('pytest.xfail("known")'): "  service.rule: lacks service",
    of_service("pass", "@pytest.mark.xfail(strict=False)\n"): "  service.rule: lacks service",
    f"{COMPLETE}{broken_in('setup')}": "  service.rule: failed in *::test_broken",
    f"{COMPLETE}{broken_in('call')}": "  service.rule: failed in *::test_broken",
    f"{COMPLETE}{broken_in('teardown')}": "  service.rule: failed in *::test_broken",
    ELSEWHERE: "facts: 3 listed, 2 proven|  both.rule: lacks sync, service",
}
"""{tests: what a strict run says of them, with bars between lines}."""
ODD = {
    '@pytest.mark.fact("clint.rule")\nclass TestGroup:\n    def test_typo(self): pass': (
        "*::test_typo: no fact 'clint.rule' in the fact list; near: client.rule*"
    ),
    ODD_SURFACE: "*the parameter surface is 'blocking'*",
}
"""{tests: the error of their collection}."""


def run(suite: pytest.Pytester, tests: str, *options: str) -> pytest.RunResult:
    """Run `tests` as the project's only test file."""
    suite.makepyfile(SURFACES + tests)
    return suite.runpytest(*options)


@pytest.mark.parametrize(("tests", "said"), UNPROVEN.items())
def test_a_strict_run_fails_and_says_what_each_fact_lacks(
    suite: pytest.Pytester, tests: str, said: str
) -> None:
    result = run(suite, tests, "--facts")
    assert result.ret == FAILED
    result.stdout.fnmatch_lines(said.split("|"))


@pytest.mark.parametrize(("tests", "said"), ODD.items())
def test_a_claim_that_cannot_be_is_a_collection_error(suite: pytest.Pytester, tests: str, said: str) -> None:
    result = run(suite, tests)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines([said])


@pytest.mark.parametrize(
    ("tests", "code", "line"),
    [
        (COMPLETE, OK, "facts: 3 listed, 3 proven"),
        (FAILING, FAILED, "  service.rule: failed in *::test_service"),
    ],
)
def test_workers_tell_the_controller(
    suite: pytest.Pytester, tests: str, code: pytest.ExitCode, line: str
) -> None:
    suite.makepyfile(SURFACES + tests)  # workers find the plugin on the path of a fresh process only
    result = suite.runpytest_subprocess("--facts", "-p", "xdist", "-n", "2")
    assert result.ret == code
    result.stdout.fnmatch_lines([line])


def test_the_last_of_several_runs_judges_what_all_of_them_proved(suite: pytest.Pytester) -> None:
    one, other = COMPLETE.split('@pytest.mark.fact("service')
    assert run(suite, one, "--proofs=kept.json").ret == OK
    result = run(suite, f'@pytest.mark.fact("service{other}', "--proofs=kept.json", "--facts")
    assert result.ret == OK
    result.stdout.fnmatch_lines(["facts: 3 listed, 3 proven"])
    assert run(suite, FAILING, "--proofs=kept.json").ret == FAILED
    result = run(suite, COMPLETE, "--proofs=kept.json", "--facts")
    assert result.ret == FAILED
    result.stdout.fnmatch_lines(["  service.rule: failed in *::test_service"])


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ('id = "a"\nsection = "S"\nside = "none"\ntext = "T"', "*rules.toml: fact 2: 'side' must be in*"),
        (
            'id = "a b"\nsection = "S"\nside = "both"\ntext = "T"',
            "*rules.toml: fact 2: 'id' must match regex*",
        ),
        ('id = "a"\nsection = "S"\nside = "both"', "*rules.toml: fact 2: *missing*'text'*"),
        ('id = "a"\nsection = "S"\nside = "both"\ntext = 1', "*rules.toml: fact 2: 'text' must be*"),
        ('id = "ok"\nsection = "S"\nside = "both"\ntext = "T"', "*rules.toml: fact 2: the id 'ok' is taken*"),
        ("= 1", "*rules.toml: Invalid statement*"),
    ],
)
def test_a_broken_list_stops_the_run_and_says_where(
    suite: pytest.Pytester, entry: str, complaint: str
) -> None:
    good = '[[fact]]\nid = "ok"\nsection = "S"\nside = "both"\ntext = "T"\n'
    suite.makefile(".toml", rules=f"{good}[[fact]]\n{entry}")
    result = run(suite, COMPLETE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([complaint])
