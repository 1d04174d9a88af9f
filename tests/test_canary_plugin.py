"""The canary plugin, run on small suites of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.canary import CANARY_KEY

ROOT = Path(__file__).parents[1]
HEAD = f"""
import logging, sys, warnings
import pytest
from payments_async.events import Emitter, RequestSent
KEY = {CANARY_KEY[:20]!r} + {CANARY_KEY[20:]!r}
"""
SILENT = "def test_silent(): logging.getLogger('x').warning('nothing to see')"
LEAKS = {
    "a log message": "def test_leak(): logging.getLogger('x').warning(KEY)",
    "a log argument": "def test_leak(): logging.getLogger('x').error('with %s', [KEY])",
    "printed text": "def test_leak(): print(KEY)",
    "an error's text": "@pytest.mark.xfail\ndef test_leak(): raise ValueError(KEY)",
    "a warning": "def test_leak(): warnings.warn(KEY)",
    "an event": "def test_leak(): Emitter(None).emit(RequestSent('x', 1, 'GET', KEY))",
}


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An empty project with the plugin."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini("[pytest]\naddopts = -p tests.canary_plugin -p no:cacheprovider")
    return pytester


def run(suite: pytest.Pytester, tests: str, *options: str) -> pytest.RunResult:
    """Run `tests` in a process of their own: this one has its own canary."""
    suite.makepyfile(HEAD + tests)
    return suite.runpytest_subprocess(*options)


def test_a_silent_run_passes(suite: pytest.Pytester) -> None:
    result = run(suite, SILENT)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*canary*")


@pytest.mark.shows_key("the inner run writes it")
@pytest.mark.parametrize("how", LEAKS)
def test_a_run_that_shows_the_key_fails_and_says_where(suite: pytest.Pytester, how: str) -> None:
    result = run(suite, f"{SILENT}\n{LEAKS[how]}")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["canary: the API key showed in *"])
    result.assert_outcomes(
        passed=1 if how == "an error's text" else 2,
        xfailed=int(how == "an error's text"),
        warnings=int(how == "a warning"),
    )


@pytest.mark.shows_key("the inner run writes it")
def test_a_test_may_show_it_on_purpose(suite: pytest.Pytester) -> None:
    result = run(suite, f"@pytest.mark.shows_key('why')\n{LEAKS['a log message']}\n{SILENT}")
    assert result.ret == pytest.ExitCode.OK
    suite.makepyfile(
        HEAD + f"@pytest.mark.shows_key('why')\ndef test_ok(): print(KEY)\n{LEAKS['printed text']}"
    )
    assert suite.runpytest_subprocess().ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.shows_key("the inner run writes it")
def test_workers_tell_the_controller(suite: pytest.Pytester) -> None:
    result = run(suite, LEAKS["a log message"], "-p", "xdist", "-n", "1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["canary: the API key showed in a log record of 'x' in *test_leak*"])
