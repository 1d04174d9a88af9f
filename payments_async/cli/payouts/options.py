"""What the options take: exact amounts, shares, durations. Each refuses nonsense before anything is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter, Token
from cyclopts.validators import Number

_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhd]?)")
_AMOUNT: Final = re.compile(r"[0-9]{1,40}(?:\.[0-9]{1,40})?")
_SHARE: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)(%?)")
_LONGEST: Final = 30 * 86400

StateName = Literal["new", "in-flight", "created", "rejected", "conflict", "in-doubt", "cancelled"]
FateName = Literal["completed", "failed", "pending", "unknown"]


def seconds_of(text: str) -> float:
    """Seconds in `90`, `90s`, `15m`, `2h` or `1d`. Raises ValueError, saying what is taken."""
    found = _DURATION.fullmatch(text)
    seconds = float(found[1]) * _SECONDS[found[2]] if found else None
    if seconds is None or seconds > _LONGEST:
        raise ValueError(f"{text!r} is no duration of 30 days at most: give 90, 90s, 15m, 2h or 1d")
    return seconds


def shortest(seconds: float | None) -> str | None:
    """As `seconds_of` takes it: `1h` for 3600."""
    if not seconds:
        return None
    size, unit = next((s, u) for u, s in reversed(_SECONDS.items()) if seconds % s == 0 and seconds >= s)
    return f"{seconds / size:g}{unit or 's'}"


def amount_of(text: str) -> Decimal:
    """An exact amount in major units, over 0. Raises ValueError."""
    if not _AMOUNT.fullmatch(text) or not (amount := Decimal(text)):
        raise ValueError(f"{text!r} is no amount: give plain digits over 0, such as 1200.50")
    return amount


def share_of(text: str) -> float:
    """A share from 0 to 1, or `0%` to `100%`. Raises ValueError."""
    found = _SHARE.fullmatch(text)
    share = float(found[1]) / (100 if found[2] else 1) if found else 2.0
    if share > 1:
        raise ValueError(f"{text!r} is no share: give 0 to 1, such as 0.05, or 5%")
    return share


def delimiter_of(text: str) -> str:
    """What separates cells: one sign, or a tab by its name. Raises ValueError."""
    sign = "\t" if text in ("tab", "\\t") else text
    if len(sign) != 1 or sign.isalnum() or sign in "\"'\r\n ":
        raise ValueError(f"{text!r} is no delimiter: give one sign, such as ';', or tab")
    return sign


def _delimiter(_: Any, tokens: Sequence[Token]) -> str:
    return delimiter_of(tokens[0].value)


def _seconds(_: Any, tokens: Sequence[Token]) -> float:
    return seconds_of(tokens[0].value)


def _amount(_: Any, tokens: Sequence[Token]) -> Decimal:
    return amount_of(tokens[0].value)


def _share(_: Any, tokens: Sequence[Token]) -> float:
    return share_of(tokens[0].value)


Flag = Annotated[bool, Parameter(negative="", show_default=False)]
Url = Annotated[str | None, Parameter(metavar="URL")]
Path = Annotated[str, Parameter(metavar="PATH")]
Duration = Annotated[float, Parameter(converter=_seconds, metavar="DURATION", show_default=shortest)]
Amount = Annotated[Decimal | None, Parameter(converter=_amount, metavar="AMOUNT")]
Delimiter = Annotated[str | None, Parameter(converter=_delimiter, metavar="SIGN")]
Share = Annotated[float | None, Parameter(converter=_share, metavar="SHARE")]
Rows = Annotated[int | None, Parameter(validator=Number(gte=1), metavar="N")]
Concurrency = Annotated[int, Parameter(validator=Number(gte=1, lte=1024), metavar="N")]
Totals = Annotated[list[str] | None, Parameter(metavar='"CUR AMOUNT"', negative="")]
RowNumbers = Annotated[
    list[Annotated[int, Parameter(validator=Number(gte=1))]] | None, Parameter(name="--row", negative="")
]
States = Annotated[list[StateName | FateName] | None, Parameter(name="--state", negative="")]
