"""The client's transport: straight into the model service, over a line and past gateways that lie."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any, NoReturn
from urllib.parse import parse_qsl, urlsplit

from multidict import CIMultiDict, CIMultiDictProxy

from payments_async._http.types import FailureKind, HTTPRequest, HTTPResponse, TransportError
from payments_async.bulk._protocol.attempts import AttemptReply
from payments_async.bulk._protocol.identifiers import PROOF_KEY

from ..loop import SimulatedLoop, settle
from ..service import EPOCH, Payment, Request, Service
from . import wire
from .books import Watched

_HTML = b"<html><body>A page of somebody else's.</body></html>"
_PAGES = (1, 2, 100)
_RESET = 0.04
"""Probability that the connection breaks before an answer."""


class Line:
    """What one process's client sends through."""

    def __init__(
        self,
        loop: SimulatedLoop,
        service: Service,
        seed: object,
        watched: Watched,
        *,
        ledger: str,
        dates: bool,
    ) -> None:
        self._loop, self._service, self._watched, self._ledger = loop, service, watched, ledger
        self._note, self._dates = watched.note, dates
        self._random = random.Random(f"{seed}:network").random
        self._most = _PAGES[int(len(_PAGES) * self._random())]
        """The service's own bound for a page."""

    async def aclose(self) -> None:
        """Nothing to close."""

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        """The answer; TransportFailure when none comes."""
        await self._leave(request)
        parts = urlsplit(request.url)
        path = parts.path.partition("/v1/")[2]
        if request.method == "POST" and path == "payouts":
            return await self._create(request)
        await self._travel()
        if request.method == "GET" and path == "payouts":
            return await self._disturbed(request, lambda: self._page(dict(parse_qsl(parts.query))))
        if request.method == "GET" and path.endswith("/sync"):
            return await self._disturbed(request, lambda: self._one(path.split("/")[1]))
        raise AssertionError(f"the engine has no business at {request.method} {path}")

    def _bad(self, probability: float) -> bool:
        return self._service.chance(probability)

    async def _leave(self, request: HTTPRequest) -> None:
        """Until the first byte has left, or does not."""
        for probability, kind, event in (
            (0.02, "connect", "not sent"),
            (0.01, "dns", "not sent"),
            (0.003, "tls", "tls name error"),
        ):
            if self._bad(probability):
                self._note(event)
                await self._pause(0.1)
                _fail(kind)  # type: ignore[arg-type] # a literal in the table above
        if request.is_withheld:
            self._note("withheld")
            _fail("withheld")
        request.sent = True

    async def _travel(self) -> None:
        await self._pause(0.01 + 0.1 * self._random())

    async def _pause(self, seconds: float) -> None:
        passed = self._loop.create_future()
        timer = self._service.later(seconds, settle, passed, None)
        try:
            await passed
        finally:
            timer.cancel()

    # Creations

    async def _create(self, request: HTTPRequest) -> HTTPResponse:
        assert request.body is not None
        body = wire.asked(request.body)
        fields = body.fields
        reference = fields["reference"]
        creation = Request(
            request.headers["X-Idempotency-Key"],
            reference,
            body,
            (fields.get("metadata") or {}).get(PROOF_KEY),
            (self._ledger, body.row, wire.generation_of(reference)),
        )
        self._watched.sending(creation)
        waiter: asyncio.Future[AttemptReply] = self._loop.create_future()
        self._put_on_line(creation, waiter)
        timers = [self._service.later(request.timeout, settle, waiter, "timeout")]
        if self._bad(_RESET):
            timers.append(self._service.later(2 * self._random(), settle, waiter, "reset"))
        try:
            reply: Any = await waiter
        finally:
            self._watched.ended(creation)
            for timer in timers:
                timer.cancel()
        if isinstance(reply, str):
            self._note(f"line: {reply}")
            _fail(reply)  # type: ignore[arg-type] # one of the two above
        return self._said(creation, reply)

    def _put_on_line(self, request: Request, waiter: asyncio.Future[AttemptReply]) -> None:
        service = self._service
        if self._bad(0.04):
            self._note("request lost")
        elif self._bad(0.05):
            self._note("abandoned request carried out later")
            service.later(30 + 750 * self._random() ** 0.5, service.arrive, request, waiter)
        else:
            service.later(0.005 + 0.05 * self._random(), service.arrive, request, waiter)

    def _said(self, request: Request, reply: AttemptReply) -> HTTPResponse:
        """The answer that the model service means."""
        self._watched.heard(request, reply)
        status = reply.status
        assert status is not None
        headers = {"X-Idempotent-Replayed": "true"} if reply.replayed else {}
        if 200 <= status < 300 and reply.record != "unreadable":
            payment = next(p for p in self._service.payments if p.id == reply.payout_id)
            return self._answer(status, {"message": "made", "data": self._odd(payment)}, headers)
        if 200 <= status < 300:
            return self._unreadable(status, headers)
        return self._refusal(status, headers)

    def _odd(self, payment: Payment) -> dict[str, Any]:
        """A payout as it is shown; at times one of its fields is not what it should be."""
        shown = wire.rendered(payment, self._loop.time())
        if self._bad(0.02):
            self._note("odd field")
            shown["created_at" if self._random() < 0.5 else "amount"] = ["?"]
        return shown

    def _unreadable(self, status: int, headers: Mapping[str, str]) -> HTTPResponse:
        draw = int(5 * self._random())
        self._note(("cut body", "html", "no object", "no data", "no id")[draw])
        if draw == 0:
            _fail("reset")
        bodies = (b"", _HTML, b'{"data": {"id": "po', b"{}", b'{"data": {}}')
        return self._bytes(status, bodies[draw], headers)

    def _refusal(self, status: int, headers: dict[str, str]) -> HTTPResponse:
        if status == 429 and self._random() < 0.8:
            headers["Retry-After"] = str((1, 30, 400)[int(3 * self._random())])
        if status == 302:
            headers["Location"] = "https://elsewhere.example/login"
        if status >= 500 and self._random() < 0.5:
            return self._bytes(status, _HTML, headers)
        errors = {"errors": {"amount": ["is refused"]}} if status == 422 else {}
        return self._answer(status, {"message": f"said {status}", **errors}, headers)

    # Readings

    async def _disturbed(self, request: HTTPRequest, read: Callable[[], HTTPResponse]) -> HTTPResponse:
        """A reading, or what comes instead of it."""
        for probability, event in (
            (0.03, "reset"),
            (0.02, "timeout"),
            (0.04, "500"),
            (0.02, "502"),
            (0.03, "429"),
            (0.02, "html"),
            (0.02, "cut"),
            (0.002, "401"),
            (0.002, "403"),
            (0.002, "404"),
        ):
            if self._bad(probability):
                self._note(f"list: {event}")
                return await self._instead(request, event)
        return read()

    async def _instead(self, request: HTTPRequest, event: str) -> HTTPResponse:
        if event == "timeout":
            await self._pause(request.timeout)
            _fail("timeout")
        if event == "reset":
            _fail("reset")
        if event in ("html", "cut"):
            return self._bytes(200, _HTML if event == "html" else b'{"data": [', {})
        return self._refusal(int(event), {})

    def _page(self, asked: Mapping[str, str]) -> HTTPResponse:
        """Newest first, as the list shows it now; a cursor is the place of the last payout shown."""
        service, now = self._service, self._loop.time()
        places = {id(payment): place for place, payment in enumerate(service.payments)}
        day = asked.get("created_at[gte]")
        since = None if day is None else datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
        before = int(asked["cursor"]) if "cursor" in asked else len(places)
        listed = [p for p in service.shown(since, asked.get("currency")) if places[id(p)] < before]
        size = min(int(asked.get("per_page", 10)), self._most)
        items, more = listed[:size], len(listed) > size
        if "cursor" in asked:
            self._note("list: another page")
        following = str(places[id(items[-1])]) if more else None
        data = [wire.rendered(payment, now) for payment in items]
        return self._answer(
            200, {"data": data, "pagination": {"next_cursor": following, "has_more_pages": more}}, {}
        )

    def _one(self, payout_id: str) -> HTTPResponse:
        for payment in self._service.payments:
            if payment.id == payout_id:
                return self._answer(200, {"data": wire.rendered(payment, self._loop.time())}, {})
        return self._refusal(404, {})

    # Answers

    def _answer(self, status: int, said: Mapping[str, Any], headers: Mapping[str, str]) -> HTTPResponse:
        return self._bytes(status, wire.encoded(said), headers, kind="application/json")

    def _bytes(
        self, status: int, body: bytes, headers: Mapping[str, str], kind: str = "text/html"
    ) -> HTTPResponse:
        said = {**headers, "Content-Type": kind}
        if self._dates:
            said["Date"] = formatdate(EPOCH + self._loop.time(), usegmt=True)
        return HTTPResponse(status, CIMultiDictProxy(CIMultiDict(said)), body)


def _fail(kind: FailureKind) -> NoReturn:
    raise TransportError(kind, "simulated")
