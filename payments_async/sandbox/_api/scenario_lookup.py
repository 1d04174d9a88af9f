"""Finds the scenario of a request: by control rule, header, metadata or magic number; first match wins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from .._common.operations import ServiceOperation
from .._common.scenario_words import (
    Fault,
    HookWords,
    Scenario,
    ScenarioOutcome,
    Sense,
    UnknownWord,
    magic_scenario,
    parse,
)
from .._common.values import RequestRefused
from .._records.records import Plan, plan_for
from .call import ServiceCall
from .fault_rules import RecordPart, Rule, ScenarioSource

HEADER = "x-sandbox-scenario"
METADATA = "sandbox_scenario"


@attrs.define(eq=False)
class _Text:
    """A scenario that came with the request. Its turns are counted by request, so that retries move on."""

    call: ServiceCall
    words: str
    scenario: Scenario

    def turn(self) -> int:
        counter = (self.words, self.call.identity)
        turns = self.call.tenant.turns
        turns[counter] = turns.get(counter, 0) + 1
        return turns[counter] - 1

    def accept(self, part: RecordPart) -> bool:
        return True


def find_sources(call: ServiceCall, rules: Sequence[Rule], *, magic: bool) -> list[ScenarioSource]:
    """The scenarios of a request, the strongest first; `RequestRefused` with 400 for an unknown word."""
    sources: list[ScenarioSource] = [rule for rule in rules if rule.applies(call)]
    header = call.request.headers.get(HEADER)
    if header is not None:
        sources.append(_read(call, header, "fault"))
    if call.operation.creates:
        sources.extend(_from_body(call, magic=magic))
    return sources


_NUMBERS = (
    ("instrument", "phone_number"),
    ("instrument", "account_number"),
    ("attempt", "phone", "number"),
    ("restriction", "phone", "number"),
)
"""Where the number of a payer or a recipient stands."""


def _from_body(call: ServiceCall, *, magic: bool) -> Iterator[ScenarioSource]:
    words = _member(call.body, ("metadata", METADATA))
    if words is not None:
        if not isinstance(words, str):
            raise RequestRefused(400, f"metadata.{METADATA} must be a string.")
        yield _read(call, words, "outcome")
    for path in _NUMBERS if magic else ():
        number = _member(call.body, path)
        if isinstance(number, str) and (scenario := magic_scenario(number)) is not None:
            yield _Text(call, number, scenario)


def _member(value: object, path: tuple[str, ...]) -> object:
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _read(call: ServiceCall, words: str, sense: Sense) -> ScenarioSource:
    try:
        scenario = parse(words, sense)
    except UnknownWord as unknown:
        raise RequestRefused(400, f"Sandbox scenario: {unknown}.") from unknown
    outcome, possible = scenario.outcome, call.operation.outcomes
    if outcome is not None and possible and outcome.kind not in possible:
        raise RequestRefused(
            400, f"Sandbox scenario: {call.operation.name} cannot end with {outcome.kind!r}."
        )
    return _Text(call, words, scenario)


def pick_fault(sources: Sequence[ScenarioSource]) -> Fault | None:
    """Choose the fault for this request: of the first scenario whose script has one for this turn."""
    for source in sources:
        if source.scenario.faults:
            turn = source.turn()
            for fault in source.scenario.faults:
                if fault.after <= turn and (fault.end is None or turn < fault.end):
                    return fault
    return None


def pick_plan(sources: Sequence[ScenarioSource], operation: ServiceOperation) -> Plan | None:
    """Choose the plan of a new record: of the first scenario with an outcome or a timing, or None."""
    for source in sources:
        scenario = source.scenario
        outcome = scenario.outcome or ScenarioOutcome("complete")
        if not (scenario.outcome or scenario.timing) or outcome.kind not in operation.outcomes:
            continue
        if source.accept("outcome"):
            return plan_for(outcome, scenario.timing)
    return None


def pick_hooks(sources: Sequence[ScenarioSource]) -> HookWords:
    """Choose the webhook words of a new record's deliveries: of the first scenario that has any."""
    for source in sources:
        if source.scenario.hooks and source.accept("hooks"):
            return source.scenario.hooks
    return ()
