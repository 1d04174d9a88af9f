"""Many schedules: do any break the protocol, does everything happen sometimes, is every rule needed?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import attrs

from payments_async.bulk._protocol.attempts import Kind
from payments_async.bulk._protocol.matching import Match
from payments_async.bulk._protocol.rows_in_doubt import NextStep

from .ablation import without
from .schedule import Verdict, run_schedule

SEEDS = 1_000
"""Within so many schedules the lack of a rule must show."""

EVENTS = (
    # Machines, disks, clocks
    *("crash", "crash with rows in flight", "drained", "disk full at intent", "disk full at outcome"),
    *("error of commit", "clock back", "clock forward", "second process, same ledger"),
    *("second process, copied ledger", "another worker was faster", "another encoding: not sent"),
    # Network and service
    *("not sent", "tls name error", "request lost", "answer lost", "answer cut short"),
    *("another record came back", "abandoned request carried out later", "slow"),
    *(f"gate {status}" for status in (200, 302, 401, 403, 404, 408, 429, 500)),
    *("5xx in the middle", "5xx after the commit", "409 in flight"),
    *(f"replayed {status}" for status in (201, 409, 422, 429, 500, 502)),
    *("moody about a payout that exists", "foreign payout"),
    *(f"answer: {kind}" for kind in Kind if kind is not Kind.WITHHELD),
    # Operators
    *("ledger deleted", "row edited before it was sent", "row corrected", "edited back"),
    *("rejected row asked for again", "edit refused: row under way", "row cancelled", "cancel refused"),
    *("retried after final failure", "went on with a rotated key", "refused: environment"),
    *("refused: base_url", "refused: project"),
    # Decisions
    *("sent again at once", "posted again after a back-off", "key over 23 hours", "intent renewed"),
    *("rejected", "refused in doubt", "rejected after proven absence", "next epoch made it"),
    "scan cut short",
    *(f"found: {match}" for match in Match),
    *(f"resolution: {step}" for step in NextStep),
    *(f"exit {code}" for code in (0, 1, 3, 75)),
)
"""What must happen sometimes."""


@attrs.frozen
class Campaign:
    """What many schedules came to."""

    schedules: int
    steps: int
    breaches: dict[int, str]
    """By seed."""
    sometimes: Counter[str]

    def plus(self, other: Campaign) -> Campaign:
        """Both together."""
        return Campaign(
            self.schedules + other.schedules,
            self.steps + other.steps,
            self.breaches | other.breaches,
            self.sometimes + other.sometimes,
        )

    def rare(self, events: Iterable[str], most: int = 100) -> dict[str, int]:
        """Events that happened too seldom for the campaign to say anything of them, unless `most` times."""
        enough = min(most, self.schedules // 200)
        return {event: self.sometimes[event] for event in events if self.sometimes[event] < enough}


def run_campaign(seeds: range, play: Callable[[object], Verdict] = run_schedule) -> Campaign:
    """Play these seeds with all rules."""
    steps, breaches, sometimes = 0, dict[int, str](), Counter[str]()
    for seed in seeds:
        verdict = play(seed)
        steps += verdict.steps
        sometimes.update(verdict.sometimes)
        if verdict.breach is not None:
            breaches[seed] = verdict.breach
    return Campaign(len(seeds), steps, breaches, sometimes)


def breaches_without(
    rule: str, seeds: range, play: Callable[[object], Verdict] = run_schedule
) -> Iterator[tuple[int, str]]:
    """The seeds that go wrong without that one rule, and how."""
    for seed in seeds:
        with without(rule):
            breach = play(seed).breach
        if breach is not None:
            yield seed, breach
