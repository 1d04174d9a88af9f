"""Rules, as `sandbox.on(...)` returns them, and the default scenario for requests that no rule matches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Final, Literal, Protocol

import attrs

from .._common.operations import NAMES, OPERATIONS
from .._common.scenario_words import NOTHING, Scenario, UnknownWord, near, parse
from .call import ServiceCall

RecordPart = Literal["outcome", "hooks"]


class ScenarioSource(Protocol):
    """A scenario with its count of the requests it has met."""

    scenario: Scenario

    def turn(self) -> int:
        """How many requests it has met before this one; counts this one."""

    def accept(self, part: RecordPart) -> bool:
        """True if its outcome, or its webhook words, may be taken for one more record; counts it then."""


@attrs.define(eq=False)
class Rule:
    """The result of `sandbox.on(...)`: a matcher and its effects. Callable from any thread.

    A rule is used up once its faults have all been applied, and an outcome and webhook words with `times`
    have been taken so often.
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
    _left: dict[RecordPart, int | None] = attrs.field(factory=dict, init=False)
    """For how many more records its outcome and its webhook words may be taken; None for all."""

    def respond(self, words: str, *, times: int | None = 1, after: int = 0) -> Rule:
        """Disturb the requests that match, e.g. `respond("http:503", times=2)`.

        `times` and `after` hold for a single word without `*n` and `@k`; `times=None` means every time.
        `ValueError` for a word that is not a fault.
        """
        parsed = parse(words, "fault")
        if not parsed.faults or parsed.outcome or parsed.timing or parsed.hooks:
            raise UnknownWord(
                f"{words!r} is not a fault; outcomes and timings go into outcome(...), "
                "webhook words into webhook(...)"
            )
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
        if parsed.faults or parsed.hooks:
            raise UnknownWord(
                f"{words!r} holds a fault or a webhook word; they go into respond(...) and webhook(...)"
            )
        met = (operation for operation in OPERATIONS if fnmatchcase(operation.name, self.operation))
        if parsed.outcome is not None and not any(parsed.outcome.kind in each.outcomes for each in met):
            raise UnknownWord(f"{self.operation} cannot end with {parsed.outcome.kind!r}")
        self.scenario = attrs.evolve(self.scenario, outcome=parsed.outcome, timing=parsed.timing)
        self._left["outcome"] = times
        return self

    def webhook(self, words: str, *, times: int | None = None) -> Rule:
        """Decide what becomes of the deliveries of the records that match, e.g. `webhook("duplicate:3")`.

        `times` is for how many records, None for all. `ValueError` for what is not a webhook word, and for an
        operation that creates nothing.
        """
        parsed = parse(words, "fault")
        if not parsed.hooks or parsed.faults or parsed.outcome or parsed.timing:
            raise UnknownWord(f"{words!r} is not all webhook words; faults go into respond(...)")
        if not any(one.creates for one in OPERATIONS if fnmatchcase(one.name, self.operation)):
            raise UnknownWord(f"{self.operation} creates no record and so has no deliveries")
        self.scenario = attrs.evolve(self.scenario, hooks=parsed.hooks)
        self._left["hooks"] = times
        return self

    @property
    def is_used_up(self) -> bool:
        """True if all counted effects are used up, and the others were applied at least once."""
        ends = [fault.end for fault in self.scenario.faults]
        return (
            self.used > 0
            and all(end is None or self._turns >= end for end in ends)
            and not any(self._left.values())
        )

    @property
    def is_over(self) -> bool:
        """True if all effects are used up; never for a rule without an end."""
        return self.used > 0 and self.remaining == 0

    @property
    def remaining(self) -> int | None:
        """How many more requests or records it will still touch; None for all that come."""
        ends = [fault.end for fault in self.scenario.faults]
        if None in ends or None in self._left.values():
            return None
        left = [end - self._turns for end in ends if end is not None]
        return max([0, *left, *(count or 0 for count in self._left.values())])

    def applies(self, call: ServiceCall) -> bool:
        """True if a request matches."""
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

    def accept(self, part: RecordPart) -> bool:
        """True if its outcome, or its webhook words, may be taken for one more record; counts it then."""
        left = self._left.get(part)
        if left == 0:
            return False
        if left is not None:
            self._left[part] = left - 1
        self.used += 1
        return True


def check_operation(name: str) -> None:
    """`ValueError`, naming what is near, unless an operation has this name or matches this glob."""
    if not any(fnmatchcase(known, name) for known in NAMES):
        raise UnknownWord(f"no operation {name!r} ({near(name, NAMES)})")


_NUMBER: Final = re.compile(r"\d+\.\d+", re.ASCII)


def _equal(actual: object, expected: object) -> bool:
    if isinstance(expected, str) and isinstance(actual, (int, Decimal)) and _NUMBER.fullmatch(expected):
        expected = Decimal(expected)  # a batch sends 10.50 as 10.5
    if isinstance(expected, (int, Decimal)) and isinstance(actual, (int, Decimal)):
        return actual == expected
    if actual is not None and isinstance(expected, str) and "*" in expected:
        return _fits(str(actual), expected)
    return actual is not None and str(actual) == str(expected)


def _fits(text: str, pattern: str) -> bool:
    r"""Whether a text fits: `*` stands for any characters, `\*` for a star, all others for themselves."""
    plain = pattern.replace("[", "[[]").replace("?", "[?]").replace(r"\*", "[*]")
    return fnmatchcase(text, plain)


def default_scenario(words: str | None) -> Rule | None:
    """The rule for what nothing else decides; `UnknownWord` for words that are none.

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
