"""Which scenario a request falls under: control rule, header, metadata or magic number; first match wins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Protocol

import attrs

from ._call import Call
from ._magic import magic_scenario
from ._operations import NAMES, OPERATIONS, Operation
from ._records import Plan
from ._scenarios import NOTHING, Fault, Outcome, Scenario, Sense, Timing, UnknownWord, near, parse
from ._values import Refused

HEADER = "x-sandbox-scenario"
METADATA = "sandbox_scenario"

END_AFTER = 5.0
"""Seconds from a creation to its end when nothing else is said."""

_BY_ITSELF = Timing("after", seconds=END_AFTER)
_NEVER = Timing("manual")
_UNTIMED = frozenset({"hang", "action", "expire"})
"""Outcomes that do not come by themselves: nothing ends, the payer acts, or the record's own expiry comes."""


class Source(Protocol):
    """A scenario with its count of the requests it has met."""

    scenario: Scenario

    def turn(self) -> int:
        """How many requests it has met before this one; counts this one."""

    def accept(self) -> bool:
        """Whether its outcome may be taken for one more record; counts it when it may."""


@attrs.define(eq=False)
class Rule:
    """What `sandbox.on(...)` gives back: a matcher with what should happen. Callable from any thread.

    A rule is used up once its faults have all been applied and an outcome with `times` has been taken so
    often.
    """

    operation: str
    """Name or glob, such as `payouts.*`."""
    match: Mapping[str, object]
    tenant: str | None
    """Fingerprint of the only API key it holds for."""
    id: str = ""
    """Names it within its sandbox."""
    scenario: Scenario = NOTHING
    used: int = 0
    """Requests it has met with its faults, and records it has given its outcome."""
    _turns: int = attrs.field(default=0, init=False)
    _outcomes_left: int | None = attrs.field(default=None, init=False)

    def respond(self, words: str, *, times: int | None = 1, after: int = 0) -> Rule:
        """Disturb the requests that match, e.g. `respond("http:503", times=2)`.

        `times` and `after` hold for a single word without `*n` and `@k`; `times=None` means every time.
        `ValueError` for a word that is not a fault.
        """
        parsed = parse(words, "fault")
        if not parsed.faults or parsed.outcome or parsed.timing:
            raise UnknownWord(f"{words!r} is not a fault; outcomes and timings go into outcome(...)")
        if len(parsed.faults) == 1 and not {"*", "@"} & set(words):
            parsed = Scenario((attrs.evolve(parsed.faults[0], times=times, after=after),))
        self.scenario = attrs.evolve(self.scenario, faults=(*self.scenario.faults, *parsed.faults))
        return self

    def outcome(self, words: str, *, times: int | None = None) -> Rule:
        """Decide how and when the records that match end, e.g. `outcome("fail:NO_FUNDS after=10s")`.

        `times` is for how many records, None for all. `ValueError` for a word that is not an outcome or a
        timing, and for an outcome that the operation cannot have.
        """
        parsed = parse(words, "outcome")
        if parsed.faults:
            raise UnknownWord(f"{words!r} holds a fault; faults go into respond(...)")
        if parsed.outcome is not None and not self._possible(parsed.outcome):
            raise UnknownWord(f"{self.operation} cannot end with {parsed.outcome.kind!r}")
        self.scenario = attrs.evolve(self.scenario, outcome=parsed.outcome, timing=parsed.timing)
        self._outcomes_left = times
        return self

    @property
    def is_used_up(self) -> bool:
        """Whether all it was to do a given number of times has been done, and the rest at least once."""
        ends = [fault.end for fault in self.scenario.faults]
        return (
            self.used > 0
            and all(end is None or self._turns >= end for end in ends)
            and not self._outcomes_left
        )

    @property
    def remaining(self) -> int | None:
        """How many more requests or records it will still touch; None for all that come."""
        ends = [fault.end for fault in self.scenario.faults]
        if None in ends or (self._outcomes_left is None and (self.scenario.outcome or self.scenario.timing)):
            return None
        return max([self._outcomes_left or 0, *(end - self._turns for end in ends if end is not None)])

    def applies(self, call: Call) -> bool:
        """Whether a request matches."""
        if self.tenant is not None and self.tenant != call.tenant.fingerprint:
            return False
        return fnmatchcase(call.operation.name, self.operation) and all(
            _equal(call.value(name), expected) for name, expected in self.match.items()
        )

    def turn(self) -> int:
        """How many requests it has met before this one; counts this one."""
        self._turns += 1
        self.used += 1
        return self._turns - 1

    def accept(self) -> bool:
        """Whether its outcome may be taken for one more record; counts it when it may."""
        if self._outcomes_left == 0:
            return False
        if self._outcomes_left is not None:
            self._outcomes_left -= 1
        self.used += 1
        return True

    def _possible(self, outcome: Outcome) -> bool:
        return any(
            outcome.kind in operation.outcomes
            for operation in OPERATIONS
            if fnmatchcase(operation.name, self.operation)
        )


def check_operation(name: str) -> None:
    """`ValueError`, naming what is near, unless an operation has this name or matches this glob."""
    if not any(fnmatchcase(known, name) for known in NAMES):
        raise UnknownWord(f"no operation {name!r} ({near(name, NAMES)})")


def _equal(actual: object, expected: object) -> bool:
    if isinstance(expected, (int, Decimal)) and isinstance(actual, (int, Decimal)):
        return actual == expected
    return actual is not None and str(actual) == str(expected)


@attrs.define(eq=False)
class _Text:
    """A scenario that came with the request. Its turns are counted by request, so that retries move on."""

    call: Call
    words: str
    scenario: Scenario

    def turn(self) -> int:
        place = (self.words, self.call.identity)
        turns = self.call.tenant.turns
        turns[place] = turns.get(place, 0) + 1
        return turns[place] - 1

    def accept(self) -> bool:
        return True


def find_sources(call: Call, rules: Sequence[Rule], *, magic: bool) -> list[Source]:
    """The scenarios of a request, the one that counts most first; `Refused` with 400 for an unknown word."""
    sources: list[Source] = [rule for rule in rules if rule.applies(call)]
    header = call.request.headers.get(HEADER)
    if header is not None:
        sources.append(_read(call, header, "fault"))
    if call.operation.creates:
        sources.extend(_from_body(call, magic=magic))
    return sources


def _from_body(call: Call, *, magic: bool) -> Iterator[Source]:
    words = call.value(f"metadata.{METADATA}")
    if words is not None:
        if not isinstance(words, str):
            raise Refused(400, f"metadata.{METADATA} must be a string.")
        yield _read(call, words, "outcome")
    for number in _numbers(call) if magic else ():
        scenario = magic_scenario(number)
        if scenario is not None:
            yield _Text(call, number, scenario)


def _numbers(call: Call) -> Iterator[str]:
    for path in (
        "instrument.phone_number",
        "instrument.account_number",
        "attempt.phone.number",
        "restriction.phone.number",
    ):
        number = call.value(path)
        if isinstance(number, str):
            yield number


def _read(call: Call, words: str, sense: Sense) -> Source:
    try:
        scenario = parse(words, sense)
    except UnknownWord as unknown:
        raise Refused(400, f"Sandbox scenario: {unknown}.") from unknown
    outcome, possible = scenario.outcome, call.operation.outcomes
    if outcome is not None and possible and outcome.kind not in possible:
        raise Refused(400, f"Sandbox scenario: {call.operation.name} cannot end with {outcome.kind!r}.")
    return _Text(call, words, scenario)


def pick_fault(sources: Sequence[Source]) -> Fault | None:
    """The fault for this request: of the first scenario whose script has one for this turn."""
    for source in sources:
        if source.scenario.faults:
            turn = source.turn()
            for fault in source.scenario.faults:
                if fault.after <= turn and (fault.end is None or turn < fault.end):
                    return fault
    return None


def pick_plan(sources: Sequence[Source], operation: Operation) -> Plan | None:
    """How a new record ends: as the first scenario with an outcome or a timing says; None when none has."""
    for source in sources:
        scenario = source.scenario
        outcome = scenario.outcome or Outcome("complete")
        if not (scenario.outcome or scenario.timing) or outcome.kind not in operation.outcomes:
            continue
        if source.accept():
            return plan_for(outcome, scenario.timing)
    return None


def plan_for(outcome: Outcome, timing: Timing | None = None) -> Plan:
    """An outcome with its time; without one, five seconds for those that come by themselves."""
    if outcome.kind == "hang" or (timing is None and outcome.kind in _UNTIMED):
        return Plan(outcome, _NEVER)
    return Plan(outcome, timing or _BY_ITSELF)


USUAL_PLAN = plan_for(Outcome("complete"))
