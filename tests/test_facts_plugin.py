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
LOOP_SCOPE = "asyncio_default_fixture_loop_scope=function"
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


def run(suite: pytest.Pytester, tests: str, *options: str) -> pytest.RunResult:
    """Run `tests` as the project's only test file."""
    suite.makepyfile(SURFACES + tests)
    return suite.runpytest(*options)


def run_distributed(suite: pytest.Pytester, tests: str) -> pytest.RunResult:
    """Run `tests` strictly on two workers, which find the plugin on the path of a fresh process only."""
    suite.makepyfile(SURFACES + tests)
    return suite.runpytest_subprocess("--facts", "-p", "xdist", "-n", "2")


def test_a_complete_suite_passes_the_strict_run(suite: pytest.Pytester) -> None:
    result = run(suite, COMPLETE, "--facts")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["facts: 3 listed, 3 proven"])
    result.stdout.no_fnmatch_line("*lacks*")


def test_facts_without_tests_fail_the_strict_run_and_are_listed_with_what_they_lack(
    suite: pytest.Pytester,
) -> None:
    result = run(suite, "def test_unrelated(): pass", "--facts")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "facts: 3 listed, 0 proven",
            "  client.rule: lacks async, sync",
            "  service.rule: lacks service",
            "  both.rule: lacks async, sync, service",
        ]
    )


def test_each_missing_role_is_named(suite: pytest.Pytester) -> None:
    only_async = COMPLETE.replace("@both_surfaces", '@pytest.mark.parametrize("surface", ["async"])')
    result = run(suite, only_async, "--facts")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["facts: 3 listed, 1 proven", "  client.rule: lacks sync", "  both.rule: lacks sync"]
    )


def test_surface_tests_say_nothing_about_the_service(suite: pytest.Pytester) -> None:
    tests = '@pytest.mark.fact("service.rule")\n@both_surfaces\ndef test_client(surface): pass'
    run(suite, tests, "--facts").stdout.fnmatch_lines(["  service.rule: lacks service"])


@pytest.mark.parametrize(
    "body",
    [
        'pytest.skip("later")',
        'pytest.xfail("known")',
        "pass",  # passes despite a non-strict xfail mark
    ],
)
def test_skipped_and_expected_failures_prove_nothing(suite: pytest.Pytester, body: str) -> None:
    mark = "@pytest.mark.xfail(strict=False)\n" if body == "pass" else ""
    tests = f'{mark}@pytest.mark.fact("service.rule")\ndef test_service():\n    {body}'
    result = run(suite, tests, "--facts")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["  service.rule: lacks service"])


@pytest.mark.parametrize("phase", ["setup", "call", "teardown"])
def test_a_fact_with_a_failing_test_is_unproven_whatever_else_passes(
    suite: pytest.Pytester, phase: str
) -> None:
    tests = f"""
@pytest.fixture
def world():
    assert {phase!r} != "setup"
    yield
    assert {phase!r} != "teardown"

@pytest.mark.fact("service.rule")
def test_broken(world): assert {phase!r} != "call"
"""
    result = run(suite, COMPLETE + tests, "--facts")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["facts: 3 listed, 2 proven", "  service.rule: failed in *::test_broken"])


def test_without_the_option_an_incomplete_run_passes_and_prints_nothing(suite: pytest.Pytester) -> None:
    result = run(suite, "def test_unrelated(): pass")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*facts:*")


def test_a_verbose_run_prints_the_count_alone(suite: pytest.Pytester) -> None:
    result = run(suite, "def test_unrelated(): pass", "-v")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["facts: 3 listed, 0 proven"])
    result.stdout.no_fnmatch_line("*lacks*")


def test_an_unknown_id_is_a_collection_error_that_names_the_near_ones(suite: pytest.Pytester) -> None:
    result = run(suite, '@pytest.mark.fact("clint.rule")\ndef test_typo(): pass')
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*::test_typo: no fact 'clint.rule' in the fact list; near: client.rule*"])


def test_an_unknown_id_inside_a_class_is_a_collection_error(suite: pytest.Pytester) -> None:
    tests = '@pytest.mark.fact("zzz")\nclass TestGroup:\n    def test_typo(self): pass'
    result = run(suite, tests)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*::test_typo: no fact 'zzz' in the fact list; near: none"])


def test_an_unknown_surface_is_a_collection_error(suite: pytest.Pytester) -> None:
    result = run(
        suite, COMPLETE.replace("@both_surfaces", '@pytest.mark.parametrize("surface", ["blocking"])')
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*the parameter surface is 'blocking'*"])


def test_claims_on_module_class_and_parameter_count(suite: pytest.Pytester) -> None:
    tests = """
pytestmark = pytest.mark.fact("service.rule")

@pytest.mark.fact("client.rule")
class TestClient:
    @pytest.fixture(params=[pytest.param("async", marks=pytest.mark.fact("both.rule")), "sync"])
    def surface(self, request): return request.param

    @pytest.mark.asyncio
    async def test_client(self, surface): pass

def test_service(): pass
"""
    result = run(suite, tests, "--facts", "-p", "pytest_asyncio.plugin", "-o", LOOP_SCOPE)
    result.stdout.fnmatch_lines(["facts: 3 listed, 2 proven", "  both.rule: lacks sync, service"])


def test_a_complete_distributed_run_passes(suite: pytest.Pytester) -> None:
    result = run_distributed(suite, COMPLETE)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["facts: 3 listed, 3 proven"])


def test_an_incomplete_distributed_run_fails(suite: pytest.Pytester) -> None:
    failing = COMPLETE.replace("def test_service(): pass", "def test_service(): assert 0")
    result = run_distributed(suite, failing)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["facts: 3 listed, 1 proven", "  service.rule: failed in *::test_service"])


def test_an_unknown_id_is_a_collection_error_on_workers_too(suite: pytest.Pytester) -> None:
    result = run_distributed(suite, COMPLETE.replace('"service.rule"', '"servce.rule"'))
    assert result.ret not in (pytest.ExitCode.OK, pytest.ExitCode.INTERNAL_ERROR)
    result.stdout.fnmatch_lines(["*no fact 'servce.rule' in the fact list; near: service.rule*"])


def test_the_last_of_several_runs_judges_what_all_of_them_proved(suite: pytest.Pytester) -> None:
    one, other = COMPLETE.split('@pytest.mark.fact("service')
    assert run(suite, one, "--proofs=kept.json").ret == pytest.ExitCode.OK
    result = run(suite, f'@pytest.mark.fact("service{other}', "--proofs=kept.json", "--facts")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["facts: 3 listed, 3 proven"])


def test_a_failure_in_an_earlier_run_is_kept(suite: pytest.Pytester) -> None:
    failing = COMPLETE.replace("def test_service(): pass", "def test_service(): assert 0")
    assert run(suite, failing, "--proofs=kept.json").ret == pytest.ExitCode.TESTS_FAILED
    result = run(suite, COMPLETE, "--proofs=kept.json", "--facts")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["facts: 3 listed, 1 proven", "  service.rule: failed in *::test_service"])


def test_a_dry_run_is_not_judged(suite: pytest.Pytester) -> None:
    result = run(suite, COMPLETE, "--facts", "--collect-only")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*facts:*")


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
