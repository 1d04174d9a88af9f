"""Rules over the control API: faults, outcomes and what becomes of webhooks, by words."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from .._common.json import JsonObject
from .._common.scenario_words import MOST_TIMES, parse
from .._controls import SandboxControls
from .json_views import rule_view
from .values import Refusal

Count = Annotated[int, Meta(ge=0, le=MOST_TIMES)]
Operation = Annotated[str, Meta(description="the requests that it meets: payouts.create, payouts.*")]
Words = Annotated[str, Meta(description="such as lost_response, or fail:INVALID_RECIPIENT after=10s")]
Match = Annotated[dict[str, Any], Meta(description='path, query and body values: {"reference": "r-1"}')]


def rules(sandbox: SandboxControls) -> JsonObject:
    """The fault rules that are set, and how often each has been used."""
    return {"rules": [rule_view(rule) for rule in sandbox.rules]}


def add_rule(
    sandbox: SandboxControls,
    operation: Operation,
    words: Words,
    match: Match | None = None,
    times: Count | UnsetType | None = UNSET,
    after: Count = 0,
    sense: Literal["fault", "outcome"] = "fault",
    api_key: str | None = None,
) -> JsonObject:
    """Make requests of an operation fail or end otherwise, to see how the program takes it. Words are faults
    (http:503, 429:10s, lost_response, slow:2s), outcomes (fail:INVALID_RECIPIENT, hang) or what becomes of
    webhooks (drop, duplicate); a word that is not known is answered with those near it. A fault hits one
    request and the others all records, unless `times` says how many (null: all); `after` requests go by
    before it. `hang` is a fault, unless `sense` is "outcome".
    """
    groups: dict[str, list[str]] = {}
    for word in words.replace(",", " ").replace(";", " ").split() or [""]:
        scenario = parse(word, sense)
        about = "fault" if scenario.faults else "webhook" if scenario.hooks else "outcome"
        groups.setdefault(about, []).append(word)
    given = {about: " ".join(alike) for about, alike in groups.items()}
    if {"operation", "api_key", "self"} & (match or {}).keys():
        raise Refusal(422, "match: names of path, query and body values only", "match")
    rule = sandbox.on(operation, api_key=api_key, **(match or {}))
    records = None if times is UNSET else times
    try:
        if "fault" in given:  # once, unless it is said how often
            rule.respond(given["fault"], times=1 if times is UNSET else times, after=after)
        if "outcome" in given:
            rule.outcome(given["outcome"], times=records)
        if "webhook" in given:
            rule.webhook(given["webhook"], times=records)
    except ValueError:
        sandbox.remove_rule(rule)
        raise
    return rule_view(rule)


def remove_rule(sandbox: SandboxControls, id: str) -> None:
    """Forget a fault rule."""
    sandbox.remove_rule(id)
