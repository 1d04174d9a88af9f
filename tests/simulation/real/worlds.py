"""The model's worlds as the real code meets them: keys and addresses, crashes among its callbacks."""

from __future__ import annotations

import random

import attrs

from ..plan import CALM, HOME, Plan, Site, draw

_HOME, _ELSEWHERE = HOME.base_url, "https://elsewhere.example/v1"
SITES: dict[Site, tuple[str, str]] = {
    "home": ("sk_live_one", _HOME),
    "rotated key": ("sk_live_two", _HOME),
    "other project": ("sk_live_three", _HOME),
    "other environment": ("sk_sandbox_four", _HOME),
    "other address": ("sk_live_one", _ELSEWHERE),
}
CERTIFIED = attrs.evolve(CALM)
_CALLBACKS = 250
"""A crash or a stop comes within so many callbacks of a run, or not at all."""


def draw_real(seed: object) -> Plan:
    """The model's world for a seed, with crashes and stops spread over the callbacks of the real code."""
    plan, chance = draw(seed), random.Random(f"{seed}:callbacks")

    def spread(callbacks: int | None) -> int | None:
        return None if callbacks is None else int(5 + _CALLBACKS * chance.random())

    runs = [attrs.evolve(run, crash=spread(run.crash), drain=spread(run.drain)) for run in plan.runs]
    return attrs.evolve(plan, runs=tuple(runs))
