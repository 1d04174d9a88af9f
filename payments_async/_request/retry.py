"""What is retried, after how long, and when to stop. Pure (Errors, rule 1).

A 429 is not waited for here: `pipeline` closes the rate limiter, and the next attempt waits there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from .. import _assumptions
from .._rate_limit.limits import LONGEST_CLOSURE

BASE = 0.5
"""Seconds: the bound of the first back-off, doubled for each next one."""
CAP = 8.0
"""Seconds: the bound of any back-off."""
JITTER = 1.0
"""Seconds added to a `Retry-After` at most."""

_SECONDS = r"[0-9]{1,20}(?:\.[0-9]{1,6})?"


def backoff(retry: int, chance: float) -> float:
    """Seconds before the retry of that number (1 is the first): exponential with full jitter."""
    return chance * min(CAP, BASE * 2.0 ** min(retry - 1, 10))


def pause(retry: int, retry_after: float | None, chance: float) -> float:
    """Seconds for which a 429 closes a limiter: what the service asked plus jitter, or a back-off."""
    if retry_after is None:
        return BASE + backoff(retry, chance)
    return retry_after + chance * min(JITTER, 0.1 + retry_after / 10)


def is_mistaken(retry_after: float | None) -> bool:
    """Whether a `Retry-After` asks for longer than the service can mean."""
    return retry_after is not None and retry_after > LONGEST_CLOSURE


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that `Retry-After` asks for: digits by ASCII rules or an HTTP date; None when unreadable."""
    text = headers.get("Retry-After", "").strip()
    if re.fullmatch(_SECONDS, text):
        return float(text)
    moment = http_date(text)
    if moment is None:
        return None
    return max(0.0, (moment - (http_date(headers.get("Date", "")) or now)).total_seconds())


def http_date(text: str) -> datetime | None:
    """The moment that an HTTP date names; None for anything else."""
    if not text.isascii() or not 16 <= len(text) <= 40:
        return None
    try:
        moment = parsedate_to_datetime(text)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def retried_status(status: int) -> bool:
    """Whether an answer with this status is worth another try with the same bytes and key (gap Q)."""
    return status == 429 or (status >= 500 and status not in _assumptions.NEVER_RETRIED)


class RetryBudget:
    """A key's allowance of retries, so that a failing service is not stormed.

    500 tokens; a retry takes 5, one after a timeout 10; a success gives 1 back. A 429 costs nothing: the
    limiter it closes lets out one request at a time.
    """

    FULL = 500

    def __init__(self) -> None:
        self.tokens: int = self.FULL

    def spend(self, reason: str) -> bool:
        """Take the tokens of a retry after a failure of that kind; False when there are not enough."""
        price = 10 if reason == "timeout" else 5
        if self.tokens < price:
            return False
        self.tokens -= price
        return True

    def earn(self) -> None:
        """A call succeeded."""
        if self.tokens < self.FULL:
            self.tokens += 1
