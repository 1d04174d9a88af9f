"""What the service says to one harmless read: an answer, its clock and its limits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final

from ..._request.clocks import http_date
from ..._runtime import SYSTEM
from ...client import AsyncPayments
from ...errors import APIStatusError, PaymentsError
from ...models import RateLimit, ResponseInfo
from .checks import Check, failed

MOST_SKEW: Final = 30.0
"""Seconds by which this machine's clock may differ from the service's."""


async def service(client: AsyncPayments) -> AsyncIterator[Check]:
    """Read one payout, and look at the answer."""
    try:
        page = await client.payouts.list(page_size=1)
    except PaymentsError as error:
        yield failed("Read", error)
        if isinstance(error, APIStatusError):
            yield _clock(error.headers)
        return
    answer = page.response
    assert answer is not None
    seconds = answer.attempts[-1].elapsed
    facts = {"status": answer.status, "seconds": round(seconds, 3), "request_id": answer.request_id}
    named = f", request {answer.request_id}" if answer.request_id else ""
    yield Check("Read", f"GET /payouts: {answer.status} in {seconds * 1000:.0f} ms{named}", facts=facts)
    yield _clock(answer.headers)
    yield _limits(client, answer)


def _clock(headers: Mapping[str, str]) -> Check:
    said = http_date(headers.get("date", ""))
    if said is None:
        return Check("Clock", "the service sent no Date to compare with", None, facts={"skew": None})
    skew = round((SYSTEM.now() - said).total_seconds())
    if abs(skew) <= MOST_SKEW:
        return Check("Clock", f"{abs(skew)} s from the service's", facts={"skew": skew})
    way = "ahead of" if skew > 0 else "behind"
    text = f"{abs(skew):,} s {way} the service's: set this machine's clock, by which the age of keys is told"
    return Check("Clock", text, False, facts={"skew": skew})


def _limits(client: AsyncPayments, answer: ResponseInfo) -> Check:
    own = {kind: state.limit for kind, state in client.limits_snapshot().items()}
    kept = ", ".join(f"{kind.replace('_', ' ')} {limit:,}" for kind, limit in own.items())
    facts = {"limit": answer.rate_limit.limit, "remaining": answer.rate_limit.remaining, "client": own}
    if answer.rate_limit == RateLimit():
        text = f"this answer had no limit headers (a 429 has); the client keeps to, a minute: {kept}"
        return Check("Limits", text, None, facts=facts)
    said = f"{answer.rate_limit.remaining} of {answer.rate_limit.limit} a minute left"
    return Check("Limits", f"the service says {said}; the client keeps to, a minute: {kept}", facts=facts)
