"""What is between a process and the service: requests that get lost or come late, lists that lag."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import attrs

from payments_async._http.types import HTTPRequest, HTTPResponse, TransportError, withheld
from tests.support.scripted import altered
from tests.support.walks.processes import Process

if TYPE_CHECKING:
    from tests.support.walks.walk import Walk

FAULTS: Final = ("lost", "late", "late", "answer lost", "500 in vain")
"""On the way; `RULES` are the service's own."""
RULES: Final = ("http:500", "http:422", "http:409", "429:5", "reset", "lost_response", "cut_body", "bad_json")
_LATEST: Final = 880.0
"""Seconds after its time-out at which a late request may still be carried out (A6: 900)."""


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
