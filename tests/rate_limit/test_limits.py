"""The figures a key may use, as values."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import get_args, get_type_hints

import pytest

from payments_async import RateLimits
from payments_async.errors import ConfigurationError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("writes", 0),
        ("writes", None),
        ("reads", -1),
        ("diagnostics", 1.5),
        ("diagnostics_per_record", "100"),
        ("refund_availability", True),
    ],
)
def test_anything_but_a_whole_number_from_one_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=rf"RateLimits\.{name} must be a whole number"):
        RateLimits(**{name: value})  # type: ignore[arg-type]  # the wrong type is the point


def test_a_bucket_holds_one_seconds_worth_and_at_least_twelve() -> None:
    limits = RateLimits()
    classes = get_args(get_type_hints(RateLimits.capacity)["kind"])
    capacities = {bucket: limits.capacity(bucket) for bucket in classes}
    assert capacities == {
        "write": 1_000,
        "read": 166,
        "diagnostic": 100,
        "refund_availability": 12,
        "record": 12,
    }


def test_a_bucket_never_holds_more_than_its_limit() -> None:
    assert RateLimits(reads=5).capacity("read") == 5


@pytest.mark.parametrize("eighth", [1 / 8, Fraction(1, 8), 0.125])
def test_a_share_divides_every_figure_and_leaves_at_least_one(eighth: float | Fraction) -> None:
    assert RateLimits().share(eighth) == RateLimits(7_500, 1_250, 750, 1, 12)


@pytest.mark.parametrize(("fraction", "writes"), [(0.7, 42_000), (1 / 3, 20_000), (1e-9, 1), (1, 60_000)])
def test_a_share_reads_a_float_as_the_ratio_that_was_meant(fraction: float, writes: int) -> None:
    assert RateLimits().share(fraction).writes == writes


@pytest.mark.parametrize("fraction", [0, -0.5, 1.01, float("nan"), float("inf"), "1/8", None])
def test_a_share_outside_zero_to_one_is_refused(fraction: object) -> None:
    with pytest.raises(ConfigurationError, match="share of the limits"):
        RateLimits().share(fraction)  # type: ignore[arg-type]  # the wrong type is part of the point


def test_limits_survive_a_pickle() -> None:
    limits = RateLimits(writes=7)
    assert pickle.loads(pickle.dumps(limits)) == limits
