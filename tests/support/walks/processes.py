"""The processes of a walk, in one loop, and what is between each of them and the service.

Each has a client, a clock and a ledger of its own. It passes a gate before each transaction and request, and
before it looks at an answer. One that is stopped there does nothing at all, its timers included, until it
goes on; one that is killed never does. On the way requests get lost or come late, and lists lag.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import attrs

from payments_async._http.types import HTTPRequest, HTTPResponse, TransportError, withheld
from tests.support.jumping import JumpingRuntime
from tests.support.scripted import altered

if TYPE_CHECKING:
    from tests.support.walks.walk import Walk

FAULTS: Final = ("lost", "late", "late", "answer lost", "500 in vain")
"""On the way; `RULES` are the service's own."""
RULES: Final = ("http:500", "http:422", "http:409", "429:5", "reset", "lost_response", "cut_body", "bad_json")
_LATEST: Final = 880.0
"""Seconds after its time-out at which a late request may still be carried out (A6: 900)."""


class Clock(JumpingRuntime):
    """Jumps once nothing is ready, and no work outside the loop is under way; such work takes turns.

    So a walk is the same each time, however busy the machine is.
    """

    def __init__(self, seed: int, on_jump: Callable[[float], object]) -> None:
        super().__init__(seed, on_jump=on_jump)
        self._turn = asyncio.Lock()

    @contextmanager
    def standing(self) -> Iterator[None]:
        self.busy += 1
        try:
            yield
        finally:
            self.busy -= 1
            self._arm(asyncio.get_running_loop())

    @asynccontextmanager
    async def outside(self) -> AsyncIterator[None]:
        """Context of one piece of work outside the loop: a request, a transaction."""
        async with self._turn:
            with self.standing():
                yield

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop not in self._armed:
            self._armed.add(loop)
            loop.call_soon(self._look, loop)

    def _look(self, loop: Any) -> None:
        if self.busy or all(each.background or each.cancelled for _, _, each in self._timers):
            self._armed.discard(loop)
        elif loop._ready:
            loop.call_soon(self._look, loop)
        else:
            self._jump(loop, self.moves)


class Process:
    """One process: the `Runtime` of its client, what it has opened, and what it does."""

    client: Any
    batch: Any
    running: asyncio.Future[Any]

    def __init__(self, clock: Clock, lineage: int, key: str) -> None:
        self.clock, self.lineage, self.key = clock, lineage, key
        self.random, self.token, self.now = clock.random, clock.token, clock.now
        self.monotonic, self.boottime = clock.monotonic, clock.boottime
        self.stop_after, self.stop_before = 0, ""
        """At which of the next gates it stops, or before what."""
        self.is_dead = False
        self.stopped = asyncio.Event()
        self._going = asyncio.Event()
        self._going.set()
        self._parked: list[tuple[Any, Callable[[], object]]] = []

    async def gate(self, what: str) -> None:
        """Pass, or stop before a transaction, a request (by its method), or the look at an answer."""
        self.stop_after -= 1
        if self.stop_after == 0 or what == self.stop_before:
            self.stop_before = ""
            self._going.clear()
            self.stopped.set()
        await self._going.wait()
        if self.is_dead:
            raise asyncio.CancelledError

    def go_on(self) -> None:
        """Go on: timers that have come meanwhile run now."""
        self.stopped.clear()
        self._going.set()
        parked, self._parked = self._parked, []
        for timer, callback in parked:
            if not timer.cancelled:
                asyncio.get_running_loop().call_soon(callback)

    def call_later(self, delay: float, callback: Callable[[], object], *, background: bool = False) -> Any:
        def come() -> None:
            if self._going.is_set():
                callback()
            else:
                self._parked.append((timer, callback))

        timer = self.clock.call_later(delay, come, background=background)
        return timer

    sleep: Any = JumpingRuntime.sleep


def at_gates(attempt: Callable[..., Any], note: Callable[[str], object]) -> Callable[..., Any]:
    """A database's transaction, before which its process passes a gate; it is counted."""

    async def attempted(database: Any, work: Any, **options: Any) -> Any:
        process: Process = database._runtime
        await process.gate("transaction")
        note(work.__qualname__.partition(".<")[0])
        async with process.clock.outside():
            return await attempt(database, work, **options)

    return attempted


@attrs.frozen
class Late:
    """A request that the service carries out after its sender has given it up."""

    due: float
    sent_at: float
    lineage: int
    """Of the ledger that sent it."""
    request: HTTPRequest


@attrs.frozen
class Line:
    """A process's transport. `walk.faults` are those of rows, by their descriptions."""

    walk: Walk
    process: Process

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        walk, process = self.walk, self.process
        await process.gate(request.method)
        if request.body is None:
            return self._shown(await self._passed(request))
        asked = json.loads(request.body)
        faults, sent_at = walk.faults.get(asked["description"]), walk.now
        fault = faults.pop(0) if faults else None
        walk.note("creations", fault or "passed on")
        if fault in ("lost", "late"):
            if request.is_withheld:
                raise withheld()
            request.sent = True
            if fault == "late":
                due = sent_at + request.timeout + walk.chance.uniform(1.0, _LATEST)
                walk.late.append(Late(due, sent_at, process.lineage, request))
            await self._time_out(request)
        answer = await self._passed(request)
        walk.note("answers", str(answer.status))
        if answer.status == 422:
            walk.refused.add(asked["reference"])
        await process.gate("answer")
        if fault == "answer lost":
            await self._time_out(request)
        return altered(answer, status=500, body=b"{}") if fault == "500 in vain" else answer

    async def _passed(self, request: HTTPRequest) -> HTTPResponse:
        """The service's answer. What is on its way arrives, even if its sender is cancelled or killed."""
        passing = asyncio.ensure_future(self._pass(request))
        try:
            return await asyncio.shield(passing)
        except asyncio.CancelledError:
            await asyncio.gather(passing, return_exceptions=True)
            raise

    async def _pass(self, request: HTTPRequest) -> HTTPResponse:
        walk, process, sent_at = self.walk, self.process, self.walk.now
        async with walk.clock.outside():
            if process.is_dead:
                raise asyncio.CancelledError
            try:
                answer: HTTPResponse = await walk.wire.send(request)
                return answer
            finally:
                if request.body is not None:
                    walk.note_sent(json.loads(request.body)["reference"], process.lineage, sent_at)

    async def _time_out(self, request: HTTPRequest) -> None:
        await self.process.sleep(request.timeout)
        raise TransportError("timeout", "no answer came")

    def _shown(self, answer: HTTPResponse) -> HTTPResponse:
        """A page of the list without what is not shown yet."""
        if answer.status != 200 or not (self.walk.lag or self.walk.hidden):
            return answer
        page = json.loads(answer.body)
        page["data"] = [each for each in page["data"] if self._is_shown(each)]
        return altered(answer, body=json.dumps(page).encode())

    def _is_shown(self, payout: dict[str, Any]) -> bool:
        made = datetime.fromisoformat(payout["created_at"]).timestamp()
        return payout["id"] not in self.walk.hidden and made <= self.walk.now - self.walk.lag

    async def aclose(self) -> None:
        pass
