"""The figures a key may use, as values."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import get_args

import pytest

from payments_async._rate_limit.limits import BucketClass, LimitClass, RateLimits
from payments_async.errors import ConfigurationError


def test_the_defaults_are_the_services_figures() -> None:
    limits = RateLimits()
    figures = {bucket: limits.of(bucket) for bucket in get_args(BucketClass)}
    assert figures == {
        "write": 60_000,
        "read": 10_000,
        "diagnostic": 6_000,
        "refund_availability": 100,
        "record": 12,
    }


def test_every_class_of_operations_is_metered() -> None:
    assert set(get_args(LimitClass)) == set(get_args(BucketClass)) - {"record"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("writes", 0),
        ("writes", None),
        ("reads", -1),
        ("diagnostics", 1.5),
        ("diagnostics_per_record", "100"),
        ("refund_availability", True),
        ("burst", 0),
        ("burst", True),
    ],
)
def test_anything_but_a_whole_number_from_one_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=rf"RateLimits\.{name} must be a whole number"):
        RateLimits(**{name: value})  # type: ignore[arg-type]  # the wrong type is the point


def test_a_bucket_holds_one_seconds_worth_and_at_least_twelve() -> None:
    limits = RateLimits()
    capacities = {bucket: limits.capacity(bucket) for bucket in get_args(BucketClass)}
    assert capacities == {
        "write": 1_000,
        "read": 166,
        "diagnostic": 100,
        "refund_availability": 12,
        "record": 12,
    }


def test_a_bucket_never_holds_more_than_its_limit() -> None:
    assert RateLimits(reads=5).capacity("read") == 5
    limits = RateLimits(burst=1_000_000)
    assert [limits.capacity(bucket) for bucket in get_args(BucketClass)] == [60_000, 10_000, 6_000, 100, 12]


def test_a_burst_that_is_asked_for_is_the_capacity_of_each_class() -> None:
    assert RateLimits(burst=30).capacity("write") == 30
    assert RateLimits(burst=30).capacity("refund_availability") == 30


@pytest.mark.parametrize("eighth", [1 / 8, Fraction(1, 8), 0.125])
def test_a_share_divides_every_figure_and_leaves_at_least_one(eighth: float | Fraction) -> None:
    assert RateLimits(burst=80).share(eighth) == RateLimits(7_500, 1_250, 750, 1, 12, burst=10)


def test_a_share_without_a_burst_keeps_the_default_burst() -> None:
    assert RateLimits().share(0.5).burst is None


@pytest.mark.parametrize(("fraction", "writes"), [(0.7, 42_000), (1 / 3, 20_000), (1e-9, 1), (1, 60_000)])
def test_a_share_reads_a_float_as_the_ratio_that_was_meant(fraction: float, writes: int) -> None:
    assert RateLimits().share(fraction).writes == writes


def test_shares_together_never_exceed_the_whole() -> None:
    for parts in range(2, 60):
        assert RateLimits().share(Fraction(1, parts)).writes * parts <= 60_000


@pytest.mark.parametrize("fraction", [0, -0.5, 1.01, float("nan"), float("inf"), "1/8", None])
def test_a_share_outside_zero_to_one_is_refused(fraction: object) -> None:
    with pytest.raises(ConfigurationError, match="share of the limits"):
        RateLimits().share(fraction)  # type: ignore[arg-type]  # the wrong type is part of the point


def test_of_two_sets_the_lower_figure_of_each_class_wins() -> None:
    one = RateLimits(writes=100, reads=900, burst=50)
    other = RateLimits(writes=200, reads=800, burst=60)
    assert one.lower_of(other) == other.lower_of(one) == RateLimits(writes=100, reads=800, burst=50)


@pytest.mark.parametrize(("burst", "lower"), [(60_000, None), (5, 5)])
def test_the_default_burst_counts_as_the_thousand_writes_it_allows(burst: int, lower: int | None) -> None:
    assert RateLimits().lower_of(RateLimits(burst=burst)).burst == lower
    assert RateLimits(burst=burst).lower_of(RateLimits()).burst == lower


def test_limits_survive_a_pickle() -> None:
    limits = RateLimits(writes=7, burst=3)
    assert pickle.loads(pickle.dumps(limits)) == limits
