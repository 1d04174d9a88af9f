"""New Relic's trace goes along to the loop: the shape of its agent, played by stand-ins in this process.

The agent itself is met in `tests/client/test_tracing.py`. It keeps the current trace by thread and by task;
`current_trace()` gives the caller's, and `ContextOf(trace=...)` puts one in force where it is entered.
"""

from __future__ import annotations

import sys
from types import ModuleType, TracebackType
from typing import Any

import pytest

from payments_sync import _blocking_call
from payments_sync._blocking_call import traced
from payments_sync._event_loop import Bridge

CALLERS = "the caller's trace"


class Agent:
    """What is in force where calls run, and whether the caller has a trace."""

    def __init__(self) -> None:
        self.trace: str | None = CALLERS
        self.in_force: list[str] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        agent = self

        class ContextOf:
            def __init__(self, trace: str) -> None:
                self._trace = trace

            def __enter__(self) -> None:
                agent.in_force.append(self._trace)

            def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
                agent.in_force.remove(self._trace)

        parts: dict[str, dict[str, Any]] = {
            "newrelic": {},
            "newrelic.agent": {"current_trace": lambda: self.trace},
            "newrelic.core": {},
            "newrelic.core.context": {"ContextOf": ContextOf},
        }
        for name, members in parts.items():
            module = ModuleType(name)
            vars(module).update(members)
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setattr(_blocking_call, "HAS_AGENT", True)


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Agent:
    agent = Agent()
    agent.install(monkeypatch)
    return agent


async def _nothing() -> None:
    """There is nothing to close."""


def test_a_call_runs_under_its_callers_trace_and_leaves_none_behind(agent: Agent) -> None:
    async def call(first: int, *, second: int) -> tuple[list[str], int]:
        return list(agent.in_force), first + second

    bridge = Bridge(_nothing)
    assert bridge.call(call, 1, second=2) == ([CALLERS], 3)
    assert agent.in_force == []
    bridge.close()


@pytest.mark.parametrize("missing", ["the trace", "the agent's part"])
def test_without_a_trace_or_where_the_agents_parts_are_elsewhere_a_call_is_made_as_it_is(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    if missing == "the trace":
        agent.trace = None
    else:
        monkeypatch.setitem(sys.modules, "newrelic.core.context", None)
    assert traced(_nothing) is _nothing
