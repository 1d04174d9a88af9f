"""aioresponses answers on the newest aiohttp: the adaptor, and the plugin that applies it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from payments_async.testing import adapt_aioresponses

OWN = ("-p", "payments_async.testing._plugin", "-p", "no:cacheprovider", "-W", "error")
PLAIN = Path(__file__).parents[1] / "standins" / "plain_aioresponses.py"


@pytest.fixture(autouse=True)
def _unadapted(monkeypatch: pytest.MonkeyPatch) -> None:
    """aioresponses as it is installed, not imported yet; and no plugin that is not named."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "aioresponses"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_tests_of_users_need_no_shim(pytester: pytest.Pytester) -> None:
    lines = ["[pytest]", "asyncio_mode = auto", "asyncio_default_fixture_loop_scope = function"]
    pytester.makeini("\n".join(lines))
    pytester.makepyfile(PLAIN.read_text(encoding="utf-8"))
    run = pytester.runpytest_inprocess(*OWN, "-p", "pytest_asyncio.plugin", "-k", "answer or callback")
    run.assert_outcomes(passed=2, deselected=7)


def test_a_project_without_it_does_not_load_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import sys\n\ndef test_absent():\n    assert 'aioresponses' not in sys.modules")
    pytester.runpytest_inprocess(*OWN).assert_outcomes(passed=1)


def test_an_aioresponses_with_other_inner_parts_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    core: Any = SimpleNamespace(ClientResponse=object)
    monkeypatch.setitem(sys.modules, "aioresponses.core", core)
    adapt_aioresponses()
    assert core.ClientResponse is object


def test_an_aioresponses_that_can_answer_is_left_as_it_is() -> None:
    core: Any = importlib.import_module("aioresponses.core")
    adapt_aioresponses()
    adapted = core.ClientResponse
    adapt_aioresponses()
    assert core.ClientResponse is adapted
