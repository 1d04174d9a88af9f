"""Rules over the control API: faults and outcomes by words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._api.rule import Rule
from .._api.rule_fields import MisspeltField
from .._common.scenario_words import parse
from .arguments import ControlCall, Created, Refusal, invalid
from .json_views import rule_view

if TYPE_CHECKING:
    from .._controls import SandboxControls


def list_rules(sandbox: SandboxControls, _: ControlCall) -> object:
    """The fault rules that are set, and how often each has been used."""
    return {"rules": [rule_view(rule) for rule in sandbox.rules]}


def add(sandbox: SandboxControls, call: ControlCall) -> object:
    """Make requests of an operation fail or end otherwise, to see how the program takes it. Words are faults
    (http:503, 429:10s, lost_response, slow:2s), outcomes (fail:INVALID_RECIPIENT, hang) or what becomes of
    webhooks (drop, duplicate); a word that is not known is answered with those near it.
    """
    operation = call.text("operation")
    words = _sorted(call.text("words"), call.text_or_none("as"))
    times, after = call.count_or_none("times", None), call.count_or_none("after", 0) or 0
    rule = _made(sandbox, operation, call.text_or_none("api_key"), _match(call))
    try:
        if "fault" in words:  # once, unless it is said how often
            rule.respond(words["fault"], times=times if "times" in call.body else 1, after=after)
        if "outcome" in words:
            rule.outcome(words["outcome"], times=times)
        if "webhook" in words:
            rule.webhook(words["webhook"], times=times)
    except ValueError:
        sandbox.remove_rule(rule)
        raise
    return Created(rule_view(rule))


def _match(call: ControlCall) -> dict[str, object]:
    match = call.mapping("match")
    if any(name in ("operation", "api_key", "self") for name in match):
        raise invalid("match", "names of path, query and body values only")
    return match


def _made(sandbox: SandboxControls, operation: str, api_key: str | None, match: dict[str, object]) -> Rule:
    """A rule without words; `Refusal` 422 for a name that is nearly a field of the operation."""
    try:
        return sandbox.on(operation, api_key=api_key, **match)
    except MisspeltField as misspelt:
        raise Refusal(422, str(misspelt), {"field": f"match.{misspelt.name}"}) from misspelt


def _sorted(text: str, sense: str | None) -> dict[str, str]:
    """The words by kind: fault, outcome, webhook; `hang` is a fault unless `as` says outcome."""
    if sense not in (None, "fault", "outcome"):
        raise invalid("as", "must be 'fault' or 'outcome'")
    groups: dict[str, list[str]] = {}
    for word in text.replace(",", " ").replace(";", " ").split() or [""]:
        scenario = parse(word, "outcome" if sense == "outcome" else "fault")
        about = "fault" if scenario.faults else "webhook" if scenario.hooks else "outcome"
        groups.setdefault(about, []).append(word)
    return {about: " ".join(words) for about, words in groups.items()}


def remove(sandbox: SandboxControls, call: ControlCall) -> object:
    """Forget a fault rule."""
    sandbox.remove_rule(call.path["id"])
    return {"message": "removed"}


def clear(sandbox: SandboxControls, _: ControlCall) -> object:
    """Forget every rule."""
    sandbox.clear_rules()
    return {"message": "removed"}
