"""The Advisor: where an integration breaks the interface's guidance. Pure: the journal in, findings out.

Two requests count as close only when they are so on the sandbox's clock and on the machine's: a frozen or
fast clock never makes a patient program look hasty. Where a log cannot tell a mistake from a habit that is
allowed, nothing is said: a finding is worth reading only when it is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from .._journal import Entry
from . import _polling_advice, _retry_advice, _trust_advice
from ._evidence import Finding, Scene, scene_of

__all__ = ["HEADINGS", "Finding", "advise", "judge"]

HEADINGS: Mapping[str, str] = {
    "post_without_key": "A POST was sent again without an idempotency key",
    "two_keys": "One body was sent under several idempotency keys",
    "one_key": "One idempotency key was sent with several bodies",
    "early_retry": "A request came again before its Retry-After",
    "parallel_loops": "Tries of one transaction ran side by side",
    "polling_too_fast": "Polling was faster than every five seconds",
    "polling_after_final": "Polling went on after the end",
    "live_reads": "Live operations took the place of normal reads",
    "webhook_trusted": "A webhook was accepted, and its record never read back",
    "key_in_browser": "The secret key was used in a browser",
}
"""What a rule's findings have in common."""


Rule = Callable[[Scene], Iterable[Finding]]

RULES: tuple[Rule, ...] = (
    _retry_advice.repeated_without_key,
    _retry_advice.one_thing_under_two_keys,
    _retry_advice.one_key_for_two_things,
    _retry_advice.before_retry_after,
    _retry_advice.parallel_loops,
    _polling_advice.too_fast,
    _polling_advice.after_the_end,
    _polling_advice.live_as_normal,
    _trust_advice.webhook_not_read_back,
    _trust_advice.key_in_a_browser,
)


def advise(entries: Sequence[Entry], now: float = 0.0) -> list[Finding]:
    """Every finding of every rule, those that endanger money first.

    `now` is the sandbox's time in seconds since 1970 (`sandbox.clock.now()`): an accepted webhook whose
    record nobody has read 60 s later is a finding. Without it the newest entry's time counts.
    """
    return judge(scene_of(entries, now))


def judge(scene: Scene) -> list[Finding]:
    """The same of a scene."""
    found = [finding for rule in RULES for finding in rule(scene)]
    return sorted(found, key=lambda finding: (finding.severity != "money", finding.requests))
