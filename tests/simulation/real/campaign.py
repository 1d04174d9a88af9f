"""Many schedules of the real code: does any break, does everything happen, does a missing rule show?"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import reduce
from multiprocessing import get_context

from payments_async.bulk._protocol.attempts import Kind
from payments_async.bulk._protocol.matching import Match
from payments_async.bulk._protocol.rows_in_doubt import NextStep

from ..ablation import without
from ..campaign import Campaign
from .play import play_schedule

SEEDS = 300
"""Within so many schedules the lack of one of these rules must show."""
_CHUNK = 25

ABLATED = (
    "silence_is_doubt",
    "server_error_is_doubt",
    "unreadable_success_is_doubt",
    "echo_is_compared",
    "replayed_error_is_stuck",
    "conflict_is_not_success",
    "conflict_is_not_failure",
    "refusal_needs_no_doubt",
    "credentials_halt",
    "wrong_address_halts",
    "throttling_keeps_row",
    "doubt_outlives_crash",
    "key_names_epoch",
    "epoch_waits_for_abandoned",
)
"""Rules whose absence shows in the real engine."""

_OF_ABSENCE = (NextStep.SCAN_AGAIN, NextStep.SCAN_EVERYWHERE, NextStep.WAIT, NextStep.NEXT_EPOCH)
"""What follows when a scan of the list does not show a row's payout; one it shows is counted as found."""

EVENTS = (
    # Machines, disks, clocks
    "posted again after a back-off",
    "crash",
    "crash with rows in flight",
    "drained",
    "disk full at intent",
    "disk full at outcome",
    "the ballast made room",
    "error of commit",
    "clock back",
    "clock forward",
    "second process, same ledger",
    "second process, copied ledger",
    "second process, fresh ledger",
    # Network and service
    "not sent",
    "tls name error",
    "request lost",
    "answer lost",
    "line: timeout",
    "line: reset",
    "cut body",
    "html",
    "no object",
    "no data",
    "no id",
    "odd field",
    "another record came back",
    "abandoned request carried out later",
    "slow",
    *(f"gate {status}" for status in (200, 302, 401, 403, 404, 408, 429, 500)),
    "5xx in the middle",
    "5xx after the commit",
    "409 in flight",
    *(f"replayed {status}" for status in (201, 409, 422, 429, 500)),
    "moody about a payout that exists",
    "foreign payout",
    "list: another page",
    *(f"list: {fault}" for fault in ("reset", "timeout", "500", "502", "429", "html", "cut", "401")),
    *(f"answer: {kind}" for kind in Kind if kind is not Kind.WITHHELD),
    # Operators
    "ledger deleted",
    "row edited before it was sent",
    "row corrected",
    "rejected rows asked for again",
    "edit refused: row under way",
    "row cancelled",
    "cancel refused",
    "edit accepted",
    "edit taken back",
    "retried after final failure",
    "nothing to retry",
    "nothing retried: the list cannot be read",
    "reconciled",
    "went on with a rotated key",
    "ended: LedgerLocked",
    "ended: LedgerOfAnotherAddress",
    "ended: LedgerOfAnotherEnvironment",
    "ended: LedgerOfAnotherKey",
    "ended: LedgerOfAnotherInput",
    "ended: OutcomesUnrecorded",
    # Decisions
    "next epoch",
    *(f"found: {match}" for match in Match),
    *(f"resolution: {step}" for step in _OF_ABSENCE),
    "IN_DOUBT to CREATED",
    "IN_DOUBT to CONFLICT",
    *(f"exit {code}" for code in (0, 1, 3, 75)),
)
"""What must happen in a campaign of two thousand schedules."""
_ENOUGH_SCHEDULES = 2000


def quiet() -> None:
    """Keep the client's warnings off the terminal."""
    logging.getLogger("payments").addHandler(logging.NullHandler())


def run_part(seeds: range) -> Campaign:
    """Play these seeds."""
    quiet()
    steps, breaches, sometimes = 0, dict[int, str](), Counter[str]()
    for seed in seeds:
        verdict = play_schedule(seed)
        steps += verdict.steps
        sometimes.update(verdict.sometimes)
        if verdict.breach is not None:
            breaches[seed] = verdict.breach
    return Campaign(len(seeds), steps, breaches, sometimes)


def run_parts(seeds: range, jobs: int) -> Iterator[Campaign]:
    """The same in so many processes at a time, in order."""
    parts = [
        range(first, min(first + _CHUNK, seeds.stop)) for first in range(seeds.start, seeds.stop, _CHUNK)
    ]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run_part, parts)


def summed(parts: list[Campaign]) -> Campaign:
    """All together."""
    return reduce(Campaign.plus, parts)


def missing(campaign: Campaign) -> list[str]:
    """Events that did not happen, in a campaign long enough to say so."""
    if campaign.schedules < _ENOUGH_SCHEDULES:
        return []
    return [event for event in EVENTS if not campaign.sometimes[event]]


def first_breach_without(rule: str, seeds: range) -> tuple[int, str] | None:
    """The first seed that goes wrong without that rule, and how; None when none does."""
    with without(rule):
        for seed in seeds:
            breach = play_schedule(seed).breach
            if breach is not None:
                return seed, breach
    return None


def breach_without(task: tuple[str, int]) -> tuple[str, tuple[int, str] | None]:
    """The same for a pool of processes: the rule and how many seeds it is given."""
    quiet()
    rule, seeds = task
    return rule, first_breach_without(rule, range(seeds))
