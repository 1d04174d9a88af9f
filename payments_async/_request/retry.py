"""Closes the limiters after a 429, and decides whether and when a failed attempt is retried.

A 429 closes the rate limiters (`close_limiters`). The next attempt waits there, unless the caller does not
want to wait so long (`refuse_long_wait`). Other failures are tried again after a back-off (`before_retry`),
while the key's `RetryBudget` lasts. An attempt's result (`outcome`) says whether it is worth another try.
"""

from __future__ import annotations

from .._http.types import withheld
from .._rate_limit.key_limiter import Grants, KeyLimiter
from .._rate_limit.limiter import RateLimiter
from .._rate_limit.limits import LONGEST_CLOSURE
from .._runtime import Runtime
from ..errors import ConfigurationError, LimitReached, LimitStoreUnavailable, PaymentsError, RateLimitedError
from . import notify
from .call import AttemptResult, Call
from .error_responses import is_mistaken
from .key_state import RetryBudget
from .outcome import read_failure
from .settings import Settings

BASE = 0.5  # seconds: the most of the first back-off, doubled for each next one
CAP = 8.0  # seconds: the most of any back-off
JITTER = 1.0  # the most seconds added to a `Retry-After`
OUTAGE_PATIENCE = 30.0
"""Seconds for which a call waits, in all its attempts, for a limit store that cannot be reached."""
BULK_PATIENCE = 60.0
"""Seconds of an outage after which bulk calls wait for the store no longer."""


def close_limiters(
    limiter: KeyLimiter,
    grants: Grants,
    call: Call,
    result: AttemptResult,
    settings: Settings,
    now: float,
    chance: float,
) -> None:
    """Close the limiters that a 429 went through, for the time that the service asks for plus jitter."""
    longest = min(settings.max_retry_after, LONGEST_CLOSURE)
    asked = longest if is_mistaken(result.retry_after) else result.retry_after
    seconds = pause(call.retries + 1, asked, chance)
    limiter.close_after_429(grants, now, seconds)
    notify.closed(settings.emitter, call, seconds)


def refuse_long_wait(
    limiter: RateLimiter, call: Call, settings: Settings, now: float, *, waited: float
) -> None:
    """Raise LimitReached when the caller does not want to wait at a limiter, or not this long.

    `waited`: seconds. A limiter's store has time to answer first; raises ConfigurationError for one that
    cannot be used.
    """
    asked = waited >= limiter.lag
    _refuse_outage(limiter, call, settings, now, asked=asked)
    name, closed = call.operation.name, limiter.snapshot(now).closed_for
    if closed > settings.max_retry_after + JITTER:
        reason = f"{name}: the service's 429 closed the rate limit for {closed:.3g} s"
        error = LimitReached(f"{reason}; this try was not sent", retry_after=closed)
        raise call.conclusion(error)
    if settings.on_limit == "raise" and (asked or closed):
        wait = limiter.wait(now)
        reason = f"{name}: the rate limit has no room for {wait:.3g} s"
        raise call.conclusion(LimitReached(f"{reason}; this try was not sent", retry_after=wait))


def _refuse_outage(limiter: RateLimiter, call: Call, settings: Settings, now: float, *, asked: bool) -> None:
    """Raise when the limiter's store is refused, or a call may not or should not wait for it any longer."""
    outage, name = limiter.outage, call.operation.name
    if outage is None:
        return
    if outage.is_refusal:
        raise call.conclusion(ConfigurationError(f"{name}: {outage.reason}"))
    if call.may_send is not None and not call.may_send():
        result = read_failure(call, withheld(), sent=False)
        call.note(result, now, now)
        assert result.error is not None
        raise call.conclusion(result.error)
    if settings.fails_closed or call.priority == "bulk":
        is_over = asked and now - outage.since >= BULK_PATIENCE
    else:
        patience = limiter.lag if settings.on_limit == "raise" else OUTAGE_PATIENCE
        is_over = limiter.part is None and call.store_waited >= patience
    if is_over:
        text = f"{name}: {outage.reason}; the call needs it, and this try was not sent"
        raise call.conclusion(LimitStoreUnavailable(text, retry_after=1.0))


def wait_until(limiter: RateLimiter, settings: Settings, since: float, now: float) -> float:
    """Time until which a caller, there since `since`, waits before it looks at a limiter's state again."""
    if settings.on_limit == "raise":
        return since + limiter.lag
    return now + max(settings.max_retry_after, 60.0)


def before_retry(
    budget: RetryBudget,
    call: Call,
    result: AttemptResult,
    error: PaymentsError,
    settings: Settings,
    runtime: Runtime,
) -> float:
    """Seconds until the next attempt; raises the call's error when there is none."""
    allowed = settings.max_retries if call.max_retries is None else call.max_retries
    if not result.again or _is_unwanted_wait(error, settings):
        raise call.conclusion(error)
    if call.is_late(runtime.monotonic):
        raise call.out_of_time(error)
    limited = result.status == 429  # the wait is at the limiter, which then opens for one request at a time
    if call.retries >= allowed or not (limited or budget.spend(result.reason)):
        raise call.conclusion(error)
    call.retries += 1
    delay = 0.0 if limited else backoff(call.retries, runtime.random())
    if call.is_late(runtime.monotonic, after=delay):
        raise call.out_of_time(error)
    notify.retrying(settings.emitter, call, delay, result.reason)
    return delay


def _is_unwanted_wait(error: PaymentsError, settings: Settings) -> bool:
    """Return whether the caller's options forbid waiting after a 429, or waiting this long."""
    if not isinstance(error, RateLimitedError):
        return False
    return settings.on_limit == "raise" or (error.retry_after or 0.0) > settings.max_retry_after


def backoff(retry: int, chance: float) -> float:
    """Seconds before a retry (1 is the first): exponential with full jitter."""
    return chance * min(CAP, BASE * 2.0 ** min(retry - 1, 10))


def pause(retry: int, retry_after: float | None, chance: float) -> float:
    """Seconds for which a 429 closes a limiter: what the service asked plus jitter, or a back-off."""
    if retry_after is None:
        return BASE + backoff(retry, chance)
    return retry_after + chance * min(JITTER, 0.1 + retry_after / 10)
