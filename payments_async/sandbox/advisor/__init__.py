"""The Advisor: finds where an integration breaks the interface's guidance. Pure: journal in, findings out.

Two requests count as close only when they are so on the sandbox's clock and on the machine's: a frozen or
fast clock never makes a patient program look hasty. Where a log does not show whether something is a mistake
or allowed, there is no finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from .._journal import JournalEntry
from . import _accepted, _polling, _retries, _webhooks
from ._evidence import AdvisorEvidence, Finding, evidence_from

__all__ = ["Finding", "advise"]

HEADINGS: Mapping[str, str] = {
    "post_without_key": "A POST was sent again without an idempotency key",
    "two_keys": "One body was sent under several idempotency keys",
    "one_key": "One idempotency key was sent with several bodies",
    "paid_again": "Equal payouts were made without a reference to tell them apart",
    "early_retry": "A request came again before its Retry-After",
    "parallel_loops": "Tries of one transaction ran side by side",
    "polling_too_fast": "Polling was faster than every five seconds",
    "polling_after_final": "Polling went on after the end",
    "live_reads": "Live operations took the place of normal reads",
    "webhook_trusted": "A webhook was accepted, and its record never read back",
    "key_in_browser": "The secret key was used in a browser",
    "accepted_as_is": "A request was accepted, and perhaps not as it was meant",
}
"""The heading of a rule's findings."""

Rule = Callable[[AdvisorEvidence], Iterable[Finding]]

RULES: tuple[Rule, ...] = (
    _retries.repeated_without_key,
    _retries.one_body_under_two_keys,
    _retries.one_key_for_two_bodies,
    _retries.paid_again,
    _retries.before_retry_after,
    _retries.parallel_loops,
    _polling.too_fast,
    _polling.after_the_end,
    _polling.live_as_normal,
    _webhooks.webhook_not_read_back,
    _webhooks.key_in_a_browser,
    _accepted.accepted_as_it_is,
)


def advise(entries: Sequence[JournalEntry], now: float = 0.0) -> list[Finding]:
    """Every finding of every rule, those that endanger money first.

    `now` is the sandbox's time in seconds since 1970 (`sandbox.clock.now()`): an accepted webhook whose
    record was not read within 60 s is a finding. Without it the newest entry's time counts.
    """
    return judge(evidence_from(entries, now))


def judge(evidence: AdvisorEvidence) -> list[Finding]:
    """Judge evidence: find every break of every rule, those that endanger money first."""
    findings = [finding for rule in RULES for finding in rule(evidence)]
    return sorted(findings, key=lambda finding: (finding.severity != "money", finding.requests))
