"""Keeps findings once they are made, because the journal drops its oldest entries."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from .._common.clock import real_seconds
from .._journal import JournalEntry, LoggedExchange, WebhookTried
from . import judge
from ._evidence import Finding, evidence_from, ids_of
from ._webhooks import READ_BACK_WITHIN, watched

if TYPE_CHECKING:
    from .._controls import SandboxControls

FINDINGS = 500
"""The most findings of one rule; the latest are kept."""

EVIDENCE = 1_000
"""The most requests and deliveries kept of one finding; its count has no bound."""

_HEAD = 50
"""How many of these are the first ones."""

Positions = Mapping[str, tuple[int, float]]
"""The number in the journal and the time of each request and delivery."""

_OVERLAP = 5_000
"""Entries before the new ones that are judged with them: a mistake lies between two requests."""

_JUDGE_EVERY = 1.0
"""Seconds of the machine's time between two judgements for a page's badge: they keep the service waiting."""


@attrs.define(eq=False)
class KeptFinding:
    """A finding with all its evidence so far. Times are seconds since 1970, of the sandbox."""

    id: str
    finding: Finding
    first_at: float
    last_at: float
    count: int = 0
    """How many requests and deliveries have shown it."""
    titled: int = 0
    """How many of them its title counts: those of one judgement."""
    _newest: int = 0
    """The journal's number of the newest of them: a clock may stand still, numbers grow."""
    _dismissed: int = 0
    """`_newest` when it was dismissed."""

    @property
    def mistake(self) -> tuple[str, str]:
        """The rule and the reason, which it shares with findings about other records."""
        return self.finding.rule, self.finding.why

    @property
    def is_dismissed(self) -> bool:
        """True once it was dismissed, until there is new evidence."""
        return self._dismissed >= self._newest

    def dismiss(self) -> None:
        """Show it no more, until there is new evidence."""
        self._dismissed = self._newest

    def is_shown_by(self, finding: Finding) -> bool:
        """True if `finding` is the same one, made again or with more evidence."""
        return not set(ids_of(self.finding)).isdisjoint(ids_of(finding))

    def add(self, finding: Finding, positions: Positions) -> None:
        """Add the evidence of the same finding, made again; count what is new."""
        known = set(ids_of(self.finding))
        new = {one for one in ids_of(finding) if one not in known and positions[one][0] > self._newest}
        self.count += len(new)
        self._newest = max([self._newest, *(positions[one][0] for one in new)])
        self.last_at = max([self.last_at, *(positions[one][1] for one in new)])
        longest = finding if len(ids_of(finding)) >= self.titled else self.finding
        self.titled = max(self.titled, len(ids_of(finding)))
        self.finding = attrs.evolve(
            longest,
            requests=_bounded([*self.finding.requests, *(one for one in finding.requests if one in new)]),
            webhooks=_bounded([*self.finding.webhooks, *(one for one in finding.webhooks if one in new)]),
        )


class Findings:
    """The findings in one sandbox. Callable from any thread."""

    def __init__(self) -> None:
        self._kept: list[KeptFinding] = []
        self._lock = threading.Lock()
        self._made = 0
        self._seen = 0
        """The number of the newest entry that was judged."""
        self._judged_at = -math.inf
        """When that was, in seconds of the machine's own clock."""
        self.requests: int = 0
        """How many requests were judged."""
        self.watched: int = 0
        """How many accepted webhooks may still be read back in time, so that they are no findings yet."""

    def update(self, sandbox: SandboxControls, *, is_over: bool = False) -> list[KeptFinding]:
        """Judge what is new in the journal, and give the findings, those that endanger money first.

        Those that were dismissed are left out. `is_over` says that the program has ended: no accepted webhook
        will be read back any more.
        """
        with self._lock:
            self._judge(sandbox, READ_BACK_WITHIN if is_over else 0.0)
            return self._shown()

    def recent(self, sandbox: SandboxControls) -> list[KeptFinding]:
        """Give the findings as `update` does, but judge at most once in `_JUDGE_EVERY` seconds."""
        with self._lock:
            is_new = sandbox.journal.last != self._seen or self.watched
            if is_new and real_seconds() - self._judged_at >= _JUDGE_EVERY:
                self._judge(sandbox, 0.0)
            return self._shown()

    def dismiss(self, finding_id: str) -> None:
        """Leave out a finding, and all of the same mistake, until there is new evidence; `LookupError`."""
        with self._lock:
            meant = next((kept for kept in self._kept if kept.id == finding_id), None)
            if meant is None:
                raise LookupError(f"no finding {finding_id!r}")
            for kept in self._kept:
                if kept.mistake == meant.mistake:
                    kept.dismiss()

    def _shown(self) -> list[KeptFinding]:
        return sorted(
            (attrs.evolve(kept) for kept in self._kept if not kept.is_dismissed),
            key=lambda kept: (kept.finding.severity != "money", kept.first_at, kept.finding.requests),
        )

    def _judge(self, sandbox: SandboxControls, later: float) -> None:
        """Judge as if it were `later` by so many seconds."""
        entries = sandbox.entries(max(0, self._seen - _OVERLAP))
        sandbox.journal.mark_read()
        self._add(entries, sandbox.clock.now() + later)
        self._judged_at = real_seconds()

    def _add(self, entries: Sequence[JournalEntry], now: float) -> None:
        self.requests += sum(
            isinstance(entry.item, LoggedExchange) for entry in entries if entry.seq > self._seen
        )
        self._seen = max(self._seen, entries[-1].seq if entries else 0)
        evidence = evidence_from(entries, now)
        self.watched = watched(evidence)
        if findings := judge(evidence):
            positions = dict(_positions(entries))
            for finding in findings:
                self._keep(finding, positions)

    def _keep(self, finding: Finding, positions: Positions) -> None:
        alike = (kept for kept in self._kept if _name(kept.finding) == _name(finding))
        kept = next((kept for kept in alike if kept.is_shown_by(finding)), None)
        if kept is not None:
            kept.add(finding, positions)
            return
        numbers, moments = zip(*(positions[one] for one in ids_of(finding)), strict=True)
        bounded = attrs.evolve(
            finding, requests=_bounded(finding.requests), webhooks=_bounded(finding.webhooks)
        )
        self._made += 1
        self._kept.append(
            KeptFinding(
                f"finding_{self._made}",
                bounded,
                min(moments),
                max(moments),
                len(moments),
                len(moments),
                max(numbers),
            )
        )
        of_rule = [one for one in self._kept if one.finding.rule == finding.rule]
        if len(of_rule) > FINDINGS:
            self._kept.remove(min(of_rule, key=lambda one: one.last_at))


def _name(finding: Finding) -> tuple[str, str]:
    return finding.rule, finding.subject


def _bounded(names: Sequence[str]) -> tuple[str, ...]:
    """The first and the latest of them."""
    if len(names) <= EVIDENCE:
        return tuple(names)
    return (*names[:_HEAD], *names[_HEAD - EVIDENCE :])


def _positions(entries: Iterable[JournalEntry]) -> Iterable[tuple[str, tuple[int, float]]]:
    """The number and time of each request and tried delivery."""
    for entry in entries:
        if isinstance(entry.item, LoggedExchange):
            yield entry.item.log.request_id, (entry.seq, entry.item.log.at)
        elif isinstance(entry.item, WebhookTried):
            yield entry.item.webhook_id, (entry.seq, entry.item.at)


def findings_of(sandbox: SandboxControls) -> Findings:
    """The findings of a sandbox; `reset` forgets them."""
    found = sandbox.advice
    if not isinstance(found, Findings):
        found = sandbox.advice = Findings()
    return found
