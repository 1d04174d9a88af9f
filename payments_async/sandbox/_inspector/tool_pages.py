"""The pages of faults and of the clock."""

from __future__ import annotations

from .._common.operations import NAMES
from .._common.scenario_words import WORDS
from .._control_api.json_views import rule_view
from .page_request import Context, PageRequest

_MOST = 200  # rules of the page, those that are not used up first


def faults(page: PageRequest) -> Context:
    rules = sorted(page.sandbox.rules, key=lambda rule: rule.is_over)
    return {
        "rules": [rule_view(rule) for rule in rules[:_MOST]],
        "more": max(0, len(rules) - _MOST),
        "operations": NAMES,
        "words": WORDS,
    }


def clock(_: PageRequest) -> Context:
    return {"speeds": (("Freeze", 0), ("Real time", 1), ("×10", 10), ("×60", 60), ("×3600", 3600))}
