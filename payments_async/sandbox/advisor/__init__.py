"""The Advisor: finds where a program's handling of money breaks the interface's guidance. Pure.

One set of rules, for the sandbox and for the pytest plugin. Where a log does not show whether something is a
mistake or allowed, there is no finding.

_evidence    the journal, sorted for the rules
_rules       the rules, in one table
"""

from __future__ import annotations

from collections.abc import Sequence

from .._journal import JournalEntry
from ._evidence import Finding, evidence_from
from ._rules import judge

__all__ = ["Finding", "advise"]


def advise(entries: Sequence[JournalEntry], now: float = 0.0) -> list[Finding]:
    """Every break of every rule, as far as the log reaches.

    `now` is the sandbox's time in seconds since 1970 (`sandbox.clock.now()`): an accepted webhook whose
    record was not read within 60 s is a finding. Without it the newest entry's time counts.
    """
    return judge(evidence_from(entries, now))
