"""Keeps the findings of a sandbox once they are made, because the journal drops its oldest entries."""

from __future__ import annotations

import threading
from itertools import islice
from typing import TYPE_CHECKING, Final

import attrs

from ._evidence import Finding, evidence_from
from ._rules import READ_BACK_WITHIN, RULES, judge

if TYPE_CHECKING:
    from .._controls import SandboxControls

FINDINGS: Final = 500
"""The most findings of one rule; the latest are kept."""
EVIDENCE: Final = 100
"""The requests and deliveries of one finding that are given, the first ones."""
_OVERLAP: Final = 5_000
"""Entries before the new ones that are judged with them: a mistake lies between two requests."""


@attrs.define(eq=False)
class _KeptFinding:
    """A finding with all its evidence so far, in order."""

    finding: Finding
    requests: dict[str, None]
    webhooks: dict[str, None]

    def is_shown_by(self, finding: Finding) -> bool:
        """True if `finding` is the same one, made again or with more evidence."""
        is_alike = (self.finding.rule, self.finding.subject) == (finding.rule, finding.subject)
        shared = self.requests.keys() & finding.requests or self.webhooks.keys() & finding.webhooks
        return is_alike and bool(shared)


class Findings:
    """The findings in one sandbox. Callable from any thread."""

    def __init__(self) -> None:
        self._kept: list[_KeptFinding] = []
        self._lock = threading.Lock()
        self._seen = 0
        """The number of the newest entry that was judged."""

    def update(self, sandbox: SandboxControls, *, is_over: bool = False) -> list[Finding]:
        """Judge what is new in the journal, and give the findings so far, in the order of the rules.

        `is_over` says that the program has ended: no accepted webhook will be read back any more.
        """
        with self._lock:
            entries = sandbox.entries(max(0, self._seen - _OVERLAP))
            sandbox.journal.mark_read()
            self._seen = max(self._seen, entries[-1].seq if entries else 0)
            now = sandbox.clock.now() + (READ_BACK_WITHIN if is_over else 0.0)
            for finding in judge(evidence_from(entries, now)):
                self._keep(finding)
            order = [*RULES]
            return [
                attrs.evolve(
                    kept.finding,
                    requests=tuple(islice(kept.requests, EVIDENCE)),
                    webhooks=tuple(islice(kept.webhooks, EVIDENCE)),
                )
                for kept in sorted(self._kept, key=lambda kept: order.index(kept.finding.rule))
            ]

    def _keep(self, finding: Finding) -> None:
        requests, webhooks = dict.fromkeys(finding.requests), dict.fromkeys(finding.webhooks)
        for kept in self._kept:
            if kept.is_shown_by(finding):
                kept.requests |= requests
                kept.webhooks |= webhooks
                if finding.requests[:1] == kept.finding.requests[:1]:  # else it tells of its later part alone
                    kept.finding = finding
                return
        self._kept.append(_KeptFinding(finding, requests, webhooks))
        of_rule = [kept for kept in self._kept if kept.finding.rule == finding.rule]
        if len(of_rule) > FINDINGS:
            self._kept.remove(of_rule[0])


def findings_of(sandbox: SandboxControls) -> Findings:
    """The findings of a sandbox; `reset` forgets them."""
    found = sandbox.advice
    if not isinstance(found, Findings):
        found = sandbox.advice = Findings()
    return found
