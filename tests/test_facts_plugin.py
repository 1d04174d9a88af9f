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
FAILING = COMPLETE.replace("def test_service(): pass", "def test_service(): assert 0")
SKIPPED = COMPLETE.replace("def test_service(): pass", 'def test_service(): pytest.skip("later")')
OK, FAILED = pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    ("tests", "code", "said"),
    [
        (COMPLETE, OK, "facts: 3 listed, 3 proven"),
        (
            "def test_unrelated(): pass",
            FAILED,
            "  client.rule: lacks async, sync|  both.rule: lacks async, sync, service",
        ),
        (ONLY_ASYNC, FAILED, "facts: 3 listed, 1 proven|  client.rule: lacks sync|  both.rule: lacks sync"),
        (SKIPPED, FAILED, "  service.rule: lacks service"),
        (FAILING, FAILED, "  service.rule: lacks service"),
    ],
)
@pytest.mark.parametrize("workers", ["", "2"])
def test_a_strict_run_says_what_each_fact_lacks(
    suite: pytest.Pytester, tests: str, code: pytest.ExitCode, said: str, workers: str
) -> None:
    """`said` has bars between its lines."""
    suite.makepyfile(SURFACES + tests)  # workers find the plugin on the path of a fresh process only
    run = suite.runpytest_subprocess if workers else suite.runpytest
    result = run("--facts", *(("-p", "xdist", "-n", workers) if workers else ()))
    assert result.ret == code
    result.stdout.fnmatch_lines(said.split("|"))


def test_a_claim_of_no_fact_is_a_collection_error(suite: pytest.Pytester) -> None:
    suite.makepyfile('import pytest\n@pytest.mark.fact("clint.rule")\ndef test_typo(): pass')
    result = suite.runpytest()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*::test_typo: no fact 'clint.rule' in the fact list; near: client.rule*"])


def test_the_last_of_several_runs_judges_what_all_of_them_proved(suite: pytest.Pytester) -> None:
    one, other = COMPLETE.split('@pytest.mark.fact("service')
    suite.makepyfile(SURFACES + one)
    assert suite.runpytest("--proofs=kept.json").ret == OK
    suite.makepyfile(f'import pytest\n@pytest.mark.fact("service{other}')
    result = suite.runpytest("--proofs=kept.json", "--facts")
    assert result.ret == OK
    result.stdout.fnmatch_lines(["facts: 3 listed, 3 proven"])
