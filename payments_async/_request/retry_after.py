"""Reads `Retry-After`: seconds or a date, and whether the service can mean it. Pure (Errors, rule 1)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from .._rate_limit.limits import LONGEST_CLOSURE
from .key_age import http_date

_SECONDS = r"[0-9]{1,20}(?:\.[0-9]{1,6})?"


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that `Retry-After` asks for: digits by ASCII rules or an HTTP date; None when unreadable."""
    text = headers.get("Retry-After", "").strip()
    if re.fullmatch(_SECONDS, text):
        return float(text)
    moment = http_date(text)
    if moment is None:
        return None
    return max(0.0, (moment - (http_date(headers.get("Date", "")) or now)).total_seconds())


def is_mistaken(retry_after: float | None) -> bool:
    """Return whether a `Retry-After` is longer than the service can mean."""
    return retry_after is not None and retry_after > LONGEST_CLOSURE
