"""For tests of waiting: a service on a clock that the client's waits move, and what it was asked when."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from payments_async._http.transport import AiohttpTransport
from payments_async._runtime import SYSTEM
from payments_async.sandbox import Sandbox
from tests.support.jumping import JumpingRuntime


@attrs.define(eq=False)
class Watched:
    """A sandbox, its clients, and what happens in it at which second of a wait."""

    sandbox: Sandbox
    connect: Callable[..., Any]
    seconds: float = 0.0
    plans: list[tuple[float, Callable[[], object]]] = attrs.field(factory=list)

    def client(self, **options: Any) -> Any:
        runtime = JumpingRuntime(on_jump=self._pass)
        transport = runtime.wrap(AiohttpTransport(runtime=SYSTEM))
        return self.connect(self.sandbox, runtime=runtime, transport=transport, **options)

    def after(self, seconds: float, act: Callable[[], object]) -> None:
        self.plans.append((seconds, act))

    def reads(self) -> Iterator[tuple[float, str]]:
        """When the service was read, in seconds since its clock's start, and what was read."""
        start = self.sandbox.requests[0].at
        return ((r.at - start, str(r.operation)) for r in self.sandbox.requests if r.method == "GET")

    def _pass(self, seconds: float) -> None:
        self.seconds += seconds
        self.sandbox.advance(seconds)
        due = [act for at, act in self.plans if at <= self.seconds]
        self.plans = [(at, act) for at, act in self.plans if at > self.seconds]
        for act in due:
            act()


def gaps(moments: list[float]) -> list[float]:
    return [later - earlier for earlier, later in itertools.pairwise(moments)]
