"""Every Python block of README.md and docs/ runs as it stands, against a sandbox of its own.

A block may use `await` at the top level, as if in a coroutine; its `test_…` functions are called.
"""

from __future__ import annotations

import ast
import asyncio
import gc
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from payments_async.sandbox import Sandbox
from tests.docs.pages import GUIDES
from tests.docs.snippets import Snippet, all_snippets


def run(snippet: Snippet) -> None:
    """Run a block in a fresh namespace, then its test functions."""
    names: dict[str, Any] = {"__name__": "snippet"}
    tree = ast.parse(snippet.code, snippet.file)
    ast.increment_lineno(tree, snippet.line - 1)
    code = compile(tree, snippet.file, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    finish(eval(code, names))
    for name, value in list(names.items()):
        if name.startswith("test_"):
            finish(value())


def finish(value: Any) -> None:
    if inspect.iscoroutine(value):
        asyncio.run(value)


SNIPPETS = all_snippets()
RUN = [snippet for snippet in SNIPPETS if snippet.info == "python"]


def takes_fixtures(snippet: Snippet) -> bool:
    """Whether it holds tests for pytest, with our plugin's fixtures."""
    return re.search(r"^(async )?def test_\w+\([^)]", snippet.code, re.MULTILINE) is not None


@pytest.mark.parametrize("snippet", [s for s in RUN if takes_fixtures(s)], ids=str)
def test_the_tests_of_the_snippet_pass(
    snippet: Snippet, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # looking for what is installed takes a second
    plugins = ("-p", "pytest_asyncio.plugin", "-p", "payments_async.testing._plugin")
    ini = "asyncio_mode = auto\nasyncio_default_fixture_loop_scope = function"
    pytester.makeini(f"[pytest]\n{ini}\naddopts = -p no:cacheprovider -W error")
    pytester.makepyfile(snippet.code)
    count = len(re.findall(r"^(?:async )?def test_", snippet.code, re.MULTILINE))
    pytester.runpytest_inprocess(*plugins).assert_outcomes(passed=count)


def every_change(snippet: Snippet) -> Any:
    """A parameter; of the first pages for every run, of the others a slow one."""
    is_first = snippet.file in ("README.md", "docs/getting-started.md", "docs/tutorial.md")
    return pytest.param(snippet, id=str(snippet), marks=() if is_first else pytest.mark.slow)


@pytest.mark.parametrize("snippet", [every_change(s) for s in RUN if not takes_fixtures(s)])
def test_the_snippet_does_what_it_says(
    snippet: Snippet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if "PAYMENTS_LEDGER" in snippet.code:
        monkeypatch.setenv("PAYMENTS_LEDGER", request.getfixturevalue("database"))
    # A seed of its own gives each snippet a key, and with it rate limits, that no other test knows.
    # A scenario, and no rule: rules come before what a snippet asks for.
    with Sandbox(seed=900_000 + SNIPPETS.index(snippet), scenario="complete immediate") as sandbox:
        monkeypatch.setenv("PAYMENTS_API_KEY", sandbox.api_key)
        monkeypatch.setenv("PAYMENTS_BASE_URL", sandbox.base_url)
        monkeypatch.setenv("WEBHOOK_SECRET", "for the pages alone, and more than 32 bytes")
        monkeypatch.chdir(tmp_path)
        run(snippet)
    gc.collect()  # Python 3.13 warns of a connection that is left open: here, and not in a later test


def test_every_block_is_run() -> None:
    assert [str(snippet) for snippet in SNIPPETS if snippet.info != "python"] == []


def test_readme_and_every_guide_have_snippets() -> None:
    assert set(GUIDES) <= {s.file for s in SNIPPETS}
