"""Many schedules of the real code: does any break, does everything happen, does a missing rule show?"""

from __future__ import annotations

from functools import partial

from payments_async.bulk._protocol import attempts
from payments_async.bulk._protocol.matching import Match
from payments_async.bulk._protocol.rows_in_doubt import NextStep

from ..campaign import breaches_without
from ..command import Kind
from .play import play_schedule

ABLATED = (
    *("silence_is_doubt", "server_error_is_doubt", "unreadable_success_is_doubt", "echo_is_compared"),
    *("replayed_error_is_stuck", "conflict_is_not_success", "conflict_is_not_failure"),
    *("refusal_needs_no_doubt", "credentials_halt", "wrong_address_halts", "throttling_keeps_row"),
    *("doubt_outlives_crash", "key_names_epoch", "epoch_waits_for_abandoned"),
)
"""Rules whose absence shows in the real engine."""

_OF_ABSENCE = (NextStep.SCAN_AGAIN, NextStep.SCAN_EVERYWHERE, NextStep.WAIT, NextStep.NEXT_EPOCH)
"""What follows when a scan of the list does not show a row's payout; one it shows is counted as found."""

EVENTS = (
    # Machines, disks, clocks
    *("posted again after a back-off", "crash", "crash with rows in flight", "drained"),
    *("disk full at intent", "disk full at outcome", "the ballast made room", "error of commit"),
    *("clock back", "clock forward", "second process, same ledger", "second process, copied ledger"),
    "second process, fresh ledger",
    # Network and service
    *("not sent", "tls name error", "request lost", "answer lost", "line: timeout", "line: reset"),
    *("cut body", "html", "no object", "no data", "no id", "odd field", "another record came back"),
    *("abandoned request carried out later", "slow"),
    *(f"gate {status}" for status in (200, 302, 401, 403, 404, 408, 429, 500)),
    *("5xx in the middle", "5xx after the commit", "409 in flight"),
    *(f"replayed {status}" for status in (201, 409, 422, 429, 500)),
    *("moody about a payout that exists", "foreign payout", "list: another page"),
    *(f"list: {fault}" for fault in ("reset", "timeout", "500", "502", "429", "html", "cut", "401")),
    *(f"answer: {kind}" for kind in attempts.Kind if kind is not attempts.Kind.WITHHELD),
    # Operators
    *("ledger deleted", "row edited before it was sent", "row corrected", "rejected rows asked for again"),
    *("edit refused: row under way", "row cancelled", "cancel refused", "edit accepted", "edit taken back"),
    *("retried after final failure", "nothing to retry", "nothing retried: the list cannot be read"),
    *("reconciled", "went on with a rotated key", "ended: LedgerLocked", "ended: LedgerOfAnotherAddress"),
    *("ended: LedgerOfAnotherEnvironment", "ended: LedgerOfAnotherKey", "ended: LedgerOfAnotherInput"),
    "ended: OutcomesUnrecorded",
    # Decisions
    "next epoch",
    *(f"found: {match}" for match in Match),
    *(f"resolution: {step}" for step in _OF_ABSENCE),
    *("IN_DOUBT to CREATED", "IN_DOUBT to CONFLICT"),
    *(f"exit {code}" for code in (0, 1, 3, 75)),
)
"""What must happen in a campaign of two thousand schedules."""


def traced(seed: object) -> tuple[list[str], str | None]:
    """Play a seed: everything that happened, in order, and the breach."""
    trace = list[str]()
    return trace, play_schedule(seed, trace=trace).breach


CODE = Kind(
    "code",
    play_schedule,
    EVENTS,
    ABLATED,
    partial(breaches_without, play=play_schedule),
    traced,
    often=1,
    seeds=300,
    share_of=0,
    part=25,
)
