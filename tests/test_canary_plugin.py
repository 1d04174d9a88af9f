"""The canary plugin, run on small suites of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.canary import CANARY_KEY

ROOT = Path(__file__).parents[1]
HEAD = f"""
import logging, sys, warnings
import pytest
from payments_async._emitter import Emitter
from payments_async.events import RequestSent
KEY = {CANARY_KEY[:20]!r} + {CANARY_KEY[20:]!r}
"""
SILENT = "def test_silent(): logging.getLogger('x').warning('nothing to see')"
LEAKS = {
    "log_message": ("def test_log_message(): logging.getLogger('x').warning(KEY)", "a log record of 'x'"),
    "log_argument": (
        "def test_log_argument(): logging.getLogger('x').error('%s', [KEY])",
        "a log record of 'x'",
    ),
    "print": ("def test_print(): print(KEY)", "the call report"),
    "error": ("@pytest.mark.xfail\ndef test_error(): raise ValueError(KEY)", "the call report"),
    "event": (
        "def test_event(): Emitter(None).emit(RequestSent('x', 1, 'GET', KEY, ''))",
        "the event RequestSent",
    ),
}
"""How a test shows the key, and where that is found."""
LOGGED, PRINTED = LEAKS["log_message"][0], LEAKS["print"][0]


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
def test_a_run_that_shows_the_key_fails_and_says_in_which_test_and_where(suite: pytest.Pytester) -> None:
    result = run(suite, "\n".join([SILENT, *(leak for leak, _ in LEAKS.values())]))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    for name, (_, place) in LEAKS.items():
        result.stdout.fnmatch_lines_random([f"canary: the API key showed in {place} in *::test_{name}"])
    result.stdout.no_fnmatch_line("canary*test_silent")
    result.assert_outcomes(passed=len(LEAKS), xfailed=1)


@pytest.mark.shows_key("the inner run writes it")
def test_a_test_may_show_it_on_purpose(suite: pytest.Pytester) -> None:
    result = run(suite, f"@pytest.mark.shows_key('why')\n{LOGGED}\n{SILENT}")
    assert result.ret == pytest.ExitCode.OK
    suite.makepyfile(HEAD + f"@pytest.mark.shows_key('why')\ndef test_ok(): print(KEY)\n{PRINTED}")
    assert suite.runpytest_subprocess().ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.shows_key("the inner run writes it")
def test_workers_tell_the_controller(suite: pytest.Pytester) -> None:
    result = run(suite, LOGGED, "-p", "xdist", "-n", "1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["canary: the API key showed in a log record of 'x' in *test_log_message*"])
