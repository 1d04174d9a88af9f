"""The limits of a secret key, requests a minute, as values.

`limiter` counts requests against them, and lets them through or makes them wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Rational
from typing import TYPE_CHECKING, Any, Final, Literal

import attrs

from .. import _assumptions
from .._attrs import ValueMixin
from ..errors import ConfigurationError

if TYPE_CHECKING:
    from fractions import Fraction

LimitClass = Literal["write", "read", "diagnostic", "refund_availability"]
"""Limit that an operation counts against (`docs/interface.md`, Rate limits; refund availability: gap Z)."""

BucketClass = Literal["write", "read", "diagnostic", "refund_availability", "record"]
"""Kinds of buckets: the classes, and "record" for each attempt, intent or payout."""

Priority = Literal["interactive", "bulk"]  # bulk calls wait behind interactive ones

WINDOW: Final = 60.0
"""Seconds over which the service counts (`docs/interface.md`, Rate limits)."""
SMALL_BURST: Final = 12
"""Least capacity of a bucket, even above one second's worth, so that twelve reads need no pacing."""

LONGEST_CLOSURE: Final = 3600.0
"""Seconds: limits are by the minute, so a longer `Retry-After` is a mistake; no limiter closes for longer."""


def _check_rate(_: object, attribute: attrs.Attribute[int], value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(f"RateLimits.{attribute.name} must be a whole number from 1, not {value!r}")


@attrs.frozen(eq=False, repr=False)
class RateLimits(ValueMixin):
    """Requests a minute for one secret key; whole numbers from 1, else `ConfigurationError`.

    The defaults are the service's (`docs/interface.md`, Rate limits; refund availability: gap Z).
    """

    writes: int = attrs.field(default=60_000, validator=_check_rate)
    """Creations and changes: checkouts, intents, payouts."""
    reads: int = attrs.field(default=10_000, validator=_check_rate)
    """Lists and records read from stored state."""
    diagnostics: int = attrs.field(default=6_000, validator=_check_rate)
    """Requery, inspect and sync together."""
    diagnostics_per_record: int = attrs.field(default=12, validator=_check_rate)
    """Requery, inspect and sync of one attempt, intent or payout."""
    refund_availability: int = attrs.field(
        default=_assumptions.REFUND_AVAILABILITY_LIMIT, validator=_check_rate
    )
    """Refund availability, which also counts as a read."""
    is_share: bool = attrs.field(default=False, init=False, eq=False, repr=False)
    """True for a process's part of the limits (`share`)."""

    def of(self, kind: BucketClass) -> int:
        """The limit of one class in requests a minute."""
        return int(getattr(self, _FIELDS[kind]))

    def capacity(self, kind: BucketClass) -> int:
        """Requests of one class that may be sent at once after a pause: a second's worth, at least twelve."""
        limit = self.of(kind)
        return min(limit, max(limit // 60, SMALL_BURST))

    def share(self, fraction: Rational | float) -> RateLimits:
        """Multiply every limit by a fraction, rounded down, at least 1: for processes that share a key.

        `fraction` lies in (0, 1], else `ConfigurationError`; `RateLimits().share(1 / 8)` suits eight workers.
        """
        ratio = _ratio(fraction)
        return _made((max(1, int(self.of(kind) * ratio)) for kind in _FIELDS), is_share=True)

    def lower_of(self, other: RateLimits) -> RateLimits:
        """The lower limit of each class."""
        lower = (min(self.of(kind), other.of(kind)) for kind in _FIELDS)
        return _made(lower, is_share=self.is_share or other.is_share)


_FIELDS: Final[dict[BucketClass, str]] = {
    "write": "writes",
    "read": "reads",
    "diagnostic": "diagnostics",
    "refund_availability": "refund_availability",
    "record": "diagnostics_per_record",
}


def _made(figures: Iterable[int], *, is_share: bool) -> RateLimits:
    """Limits with figures in the order of `_FIELDS`."""
    limits = RateLimits(**dict(zip(_FIELDS.values(), figures, strict=True)))
    object.__setattr__(limits, "is_share", is_share)
    return limits


def _ratio(fraction: Any) -> Fraction:
    is_number = isinstance(fraction, float | Rational)
    if not is_number or not 0 < fraction <= 1:
        raise ConfigurationError(f"a share of the limits lies above 0 and up to 1, not {fraction!r}")
    from fractions import Fraction  # most programs have no share

    return Fraction(fraction).limit_denominator(1_000_000)  # 0.7 means 7/10, not the nearest double


@attrs.frozen(eq=False)
class Outage:
    """A time in which the store of a fleet's limit cannot be reached."""

    since: float  # monotonic seconds
    reason: str  # what happened, without the store's password
    is_refusal: bool = False
    """True if the store was reached, and cannot be used as it is set up."""


@attrs.frozen(eq=False, repr=False)
class LimitSnapshot(ValueMixin):
    """One class of `limits_snapshot()` at one moment (`docs/interface.md`, Rate limits)."""

    limit: int
    """Requests a minute."""
    used: int
    """Requests that count against the limit now: under way, or answered less than a minute ago."""
    available: int
    """Requests that could be sent at once."""
    closed_for: float
    """Seconds until the class may be tried again after a 429; 0.0 when it is open."""
