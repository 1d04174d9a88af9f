"""Idempotency keys as values: their form, their memory, and their age when clocks lie."""

from __future__ import annotations

import math

import pytest

from tests.support.pure_calls import key_age, pending


def test_the_oldest_keys_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "_MOST_USED", 2)
    keys = pending.PendingRequests()
    first, *others, last = [("https://pay.test/v1", "fingerprint", key) for key in "abc"]
    for identity in (first, *others, last):
        keys.first_use(identity, b"{}", 0.0)
    assert keys.first_use(first, b'{"a": 1}', 0.0).body == b'{"a": 1}'
    assert keys.first_use(last, b'{"a": 1}', 0.0).body == b"{}"


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (b'{"a": 1}', b'{"a": 1.0}', "a differs"),
        (b'{"a": 1}', b'{"a": true}', "a differs"),
        (b'{"a": 1}', b'{"a": "1"}', "a differs"),
        (b'{"a": 0.1}', b'{"a": 0.10}', "a differs"),
        (b'{"a": 1}', b'{"a": 1, "b": null}', "b differs"),
        (b'{"a": 1, "b": 1, "c": 1}', b'{"d": 1}', "a, b, c and d differ"),
        (b'{"a": 1, "b": 1}', b'{"b": 1, "a": 1}', None),
        (rb'{"\u001b": 1}', b"{}", "\\x1b differs"),
    ],
)
def test_what_differs_is_named_and_shows_no_value(one: bytes, other: bytes, told: str | None) -> None:
    assert pending.difference(one, other) == told


HOUR = 3600.0
ENDED = key_age.Timestamps(wall=1e9, monotonic=100.0, session="a", server=2e9)


@pytest.mark.parametrize(
    ("now", "age"),
    [
        (key_age.Timestamps(1e9 + 60, 160.0, "a", 2e9 + 60), 70.0),
        (key_age.Timestamps(1e9 + 60, 160.0, "a"), 70.0),
        (key_age.Timestamps(1e9 + 21 * HOUR, 0.0, "b", 2e9 + 26 * HOUR), 26 * HOUR + 10),
        (key_age.Timestamps(1e9 + 60, 0.0, "b", 2e9 - key_age.CLOCK_TOLERANCE - 1), math.inf),
        (key_age.Timestamps(1e9 - key_age.CLOCK_TOLERANCE - 1, 160.0, "a", 2e9 + 60), math.inf),
    ],
)
def test_the_clock_that_gives_the_most_counts_forwards(now: key_age.Timestamps, age: float) -> None:
    assert key_age.key_age(1e9 - 10, ENDED, 10.0, now) == age
