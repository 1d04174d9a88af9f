"""Numbers, times and sums of money in words, and totals as a person writes them: `GHS 1200.50`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from ...models.common import amount_text
from .._protocol.outcomes import as_text

Money = Mapping[str, Decimal]  # {currency: sum, major units}
_AMOUNT: Final = re.compile(r"[0-9]{1,40}(?:\.[0-9]{1,40})?")
_TYPED: Final = re.compile(r"\s*([A-Za-z]{3,10})\s+(\S+)\s*")


def counted(number: int, noun: str) -> str:
    """`1 row`, `2,000 rows`, `2 batches`, `2 processes`, `2 retries`."""
    if number != 1:
        many_es = noun.endswith(("ch", "ss"))
        noun = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}es" if many_es else f"{noun}s"
    return f"{number:,} {noun}"


def duration_text(seconds: float) -> str:
    """`42 s`, `3 min 20 s`, `2 h 05 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def rate_text(per_second: float) -> str:
    """`1,135 a second`; below ten with a tenth."""
    return f"{per_second:,.1f} a second" if per_second < 10 else f"{per_second:,.0f} a second"


def moment(at: float) -> str:
    """Date and time, UTC: `2026-06-30 21:19:26`."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"


def time_text(at: datetime) -> str:
    """A time of the service's: `2026-06-30 21:19:26 UTC`."""
    with suppress(OverflowError):  # the first day of all times, east of Greenwich
        at = at.astimezone(UTC)
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def plain_sums(totals: Money) -> dict[str, str]:
    """For programs: `{"XOF": "1200.50"}`."""
    return {currency: as_text(amount) for currency, amount in sorted(totals.items())}


def money_text(totals: Money) -> str:
    """For people: `GHS 3.07, XOF 1,200.50`."""
    return ", ".join(amount_text(currency, total) for currency, total in sorted(totals.items())) or "nothing"


# Totals, as they are typed


def amount_of(text: str) -> Decimal:
    """An exact amount in major units, over 0. Raises ValueError."""
    if not _AMOUNT.fullmatch(text) or not (amount := Decimal(text)):
        raise ValueError(f"{text!r} is not an amount: give plain digits over 0, such as 1200.50")
    return amount


def parsed(texts: Iterable[str]) -> dict[str, Decimal]:
    """{currency: amount} of texts such as `XOF 1200.50`. Raises ValueError."""
    found: dict[str, Decimal] = {}
    for text in texts:
        typed = _TYPED.fullmatch(text)
        if typed is None:
            raise ValueError(f'{text!r} is not a currency and an amount, such as "XOF 1200.50"')
        currency, amount = typed[1].upper(), amount_of(typed[2])
        if currency in found:
            raise ValueError(f"{currency} is given twice")
        found[currency] = amount
    return found
