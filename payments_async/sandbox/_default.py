"""The scenario of requests and records that nothing else decides."""

from __future__ import annotations

import attrs

from .api.rule import Rule
from .common.scenario_words import parse


def default_scenario(words: str | None) -> Rule | None:
    """A rule that stands behind everything else; `UnknownWord` for words that are none.

    Fault words hold for every request unless one of them says how often (`http:503*2`): then they are a
    script, as elsewhere. `hang` is an outcome here.
    """
    if words is None:
        return None
    scenario = parse(words, "outcome")
    if "*" not in words:
        faults = tuple(attrs.evolve(fault, times=None) for fault in scenario.faults)
        scenario = attrs.evolve(scenario, faults=faults)
    return Rule("*", {}, None, "default", scenario)
