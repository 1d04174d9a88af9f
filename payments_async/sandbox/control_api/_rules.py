"""Rules over the control API: faults and outcomes by words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._rule import Rule
from .._scenarios import parse
from ._call import ControlCall, Made, invalid
from ._guard import Refusal
from ._views import rule_view

if TYPE_CHECKING:
    from .._sandbox import Sandbox

_FIELDS = ("operation", "words", "as", "match", "times", "after", "api_key")


def listed(sandbox: Sandbox, _: ControlCall) -> object:
    """Every rule, the one that counts first in front."""
    return {"rules": [rule_view(rule) for rule in sandbox.rules]}


def add(sandbox: Sandbox, call: ControlCall) -> object:
    """A rule of words: faults disturb requests; an outcome with its timing decides how records end."""
    call.only(*_FIELDS)
    operation, words = call.text("operation"), call.text("words")
    faulty = _is_fault(words, call.text_or_none("as"))
    times = call.count_or_none("times", 1 if faulty else None)
    after = call.count_or_none("after", 0) or 0
    rule = sandbox.on(operation, api_key=call.text_or_none("api_key"), **_match(call))
    try:
        _fill(rule, words, faulty, times, after)
    except ValueError:
        sandbox.remove_rule(rule)
        raise
    return Made(rule_view(rule))


def _fill(rule: Rule, words: str, faulty: bool, times: int | None, after: int) -> None:
    if faulty:
        rule.respond(words, times=times, after=after)
    else:
        rule.outcome(words, times=times)


def _match(call: ControlCall) -> dict[str, object]:
    match = call.mapping("match")
    if any(name in ("operation", "api_key", "self") for name in match):
        raise invalid("match", "names of path, query and body values only")
    return match


def _is_fault(words: str, sense: str | None) -> bool:
    """Whether the words disturb requests; `hang` alone does unless it is said to be an outcome."""
    if sense not in (None, "fault", "outcome"):
        raise invalid("as", "must be 'fault' or 'outcome'")
    if sense is not None:
        return sense == "fault"
    scenario = parse(words, "fault")
    if scenario.faults and (scenario.outcome or scenario.timing):
        raise Refusal(422, "words: faults and outcomes go into two rules", {"field": "words"})
    return bool(scenario.faults)


def remove(sandbox: Sandbox, call: ControlCall) -> object:
    """Forget one rule."""
    sandbox.remove_rule(call.path["id"])
    return {"message": "removed"}


def clear(sandbox: Sandbox, _: ControlCall) -> object:
    """Forget every rule."""
    sandbox.clear_rules()
    return {"message": "removed"}
