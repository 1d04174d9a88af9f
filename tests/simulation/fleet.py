"""Fleets that share one limit, in virtual time, with processes, messages, clocks and stores that fail.

Every seed is two to three minutes of up to 16 processes (`tests/rate_limit/fleet.py`), judged by the fullest
sixty seconds wherever they begin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final
from unittest.mock import patch

from payments_async._rate_limit import store
from payments_async._rate_limit.store import LimitFigures
from tests.rate_limit.fleet import full_when_new, leaves_no_room, scheduled

from .command import Kind
from .schedule import Verdict


def play(seed: object) -> Verdict:
    """Play a seed's fleet to its end."""
    fullest = scheduled(int(str(seed))).fullest
    breach = f"{fullest:.2%} of the limit in one minute" if fullest > 1.0 else None
    return Verdict(breach, Counter(), 0)


CARELESS: Final = {
    "rate_leaves_room": (LimitFigures, "rate", leaves_no_room),
    "new_state_is_empty": (store, "reserve", full_when_new),
}
"""{promise: what is replaced to break it}."""


def breaches_without(promise: str, seeds: range) -> Iterator[tuple[int, str]]:
    """The seeds that go wrong without that one promise, and how."""
    for seed in seeds:
        with patch.object(*CARELESS[promise]):
            breach = play(seed).breach
        if breach is not None:
            yield seed, breach


FLEET = Kind("fleet", play, (), tuple(CARELESS), breaches_without, share_of=0, part=100)
