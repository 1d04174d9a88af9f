"""The parts of the client that are measured by themselves: the one place here that knows its inside."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from multidict import CIMultiDict, CIMultiDictProxy

from benchmarks.bodies import ARGUMENTS, UNPACED
from benchmarks.wire import BARE_ANSWER, LATER_ANSWER, PAGE_ANSWER, PAYOUT_ANSWER, PAYOUT_ID, REFUSAL
from payments_async import Page, Payout
from payments_async._http.types import HTTPRequest, HTTPResponse
from payments_async._rate_limit.limiter import RateLimiter, TokenBucket
from payments_async._request.call import AttemptResult, Call
from payments_async._request.outcome import read_answer
from payments_async._request.prepare import reading
from payments_async.params import operations

URL = "http://127.0.0.1:9/v1"
HEADERS = CIMultiDictProxy(
    CIMultiDict({"Content-Type": "application/json", "Date": "Sat, 21 Nov 2026 10:00:00 GMT"})
)
ONE, LATER, BARE, PAGE = (
    HTTPResponse(200, HEADERS, body) for body in (PAYOUT_ANSWER, LATER_ANSWER, BARE_ANSWER, PAGE_ANSWER)
)
CREATED = HTTPResponse(201, HEADERS, PAYOUT_ANSWER)
REFUSED = HTTPResponse(422, HEADERS, REFUSAL)
READ_ONE = reading(operations.PAYOUTS_SYNC, {}, {"payout_id": PAYOUT_ID})
READ_PAGE = reading(operations.PAYOUTS_LIST, {})


class Stub:
    """A transport that has the answer at hand."""

    def __init__(self, answer: HTTPResponse) -> None:
        self._answer = answer

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        """The answer."""
        request.sent = True
        return self._answer

    async def aclose(self) -> None:
        """Nothing is open."""


def now() -> datetime:
    """A wall clock that stands."""
    return datetime(2026, 11, 21, tzinfo=UTC)


def read(call: Call, answer: HTTPResponse) -> Any:
    """What the pipeline makes of an answer."""
    found: AttemptResult = read_answer(call, answer, now)
    assert found.error is None, found.error
    return found.value


def gate() -> RateLimiter:
    """A gate nobody ever waits at."""
    return RateLimiter(TokenBucket(UNPACED.writes, UNPACED.capacity("write")))


def check() -> None:
    """That what is measured does what it should."""
    one, later, page = read(READ_ONE, ONE), read(READ_ONE, LATER), read(READ_PAGE, PAGE)
    assert isinstance(one, Payout)
    assert later.extra == {"carrier": "MTN"}
    assert isinstance(page, Page)
    assert len(page.items) == 100
    assert one.amount is not None
    assert one.amount.value == ARGUMENTS["amount"]
    assert one.id == json.loads(PAYOUT_ANSWER)["data"]["id"]
