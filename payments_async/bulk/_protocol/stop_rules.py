"""Rules for a whole batch: the account that it may pay from, and what pauses it. Pure."""

from __future__ import annotations

from typing import Final

import attrs


@attrs.frozen
class Account:
    environment: str  # `live` or `sandbox`
    base_url: str
    key: str  # a fingerprint of the API key, never the key


_ENOUGH: Final = 20


def too_many_failures(rate: float | None, decided: int, failed: int) -> str | None:
    """Give the reason why a batch is paused, by what this process has seen; None while it may go on.

    `rate`: the largest share of rows that may be rejected; applied from twenty rows on.
    """
    if rate is None or decided < _ENOUGH or failed <= decided * rate:
        return None
    return f"{failed} of {decided} rows rejected, more than --max-failure-rate allows"
