"""New Relic's trace goes along to the loop: its agent, met in `tests/client/test_tracing.py`, is played here.

It keeps the current trace by thread and by task. `current_trace()` gives the caller's, and
`ContextOf(trace=...)` puts one in force where it is entered.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from tests.sync.conftest import Bridge
from tests.sync.scenes import nothing


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The trace of the calling thread, and those that are in force."""
    agent = SimpleNamespace(trace="the caller's trace", in_force=[])

    @contextmanager
    def context_of(trace: str) -> Iterator[None]:
        agent.in_force.append(trace)
        yield
        agent.in_force.remove(trace)

    for name, members in {
        "newrelic": {},
        "newrelic.agent": {"current_trace": lambda: agent.trace},
        "newrelic.core": {},
        "newrelic.core.context": {"ContextOf": context_of},
    }.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**members))
    monkeypatch.setattr("payments_sync._blocking_call.HAS_AGENT", True)
    return agent


def test_a_call_runs_under_its_callers_trace_and_leaves_none_behind(agent: SimpleNamespace) -> None:
    async def call(first: int, *, second: int) -> tuple[list[str], int]:
        return list(agent.in_force), first + second

    bridge = Bridge(nothing)
    assert bridge.call(call, 1, second=2) == (["the caller's trace"], 3)
    assert agent.in_force == []
    bridge.close()


def test_without_a_trace_or_where_the_agents_parts_are_elsewhere_a_call_is_made_as_it_is(
    agent: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def call() -> list[str]:
        return list(agent.in_force)

    bridge = Bridge(nothing)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "newrelic.core.context", None)
        assert bridge.call(call) == []
    agent.trace = None
    assert bridge.call(call) == []
    bridge.close()
