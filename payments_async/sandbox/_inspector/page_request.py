"""A request for a page of the inspector, and what every page shows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import attrs

from .._common.operations import CONSOLE, PREFIX
from .._common.timestamps import read_timestamp
from .._control_api.clock import clock_view
from ..advisor._findings import findings_of

if TYPE_CHECKING:
    from .._controls import SandboxControls

Context = dict[str, object]

NAV = (
    ("", "Overview"),
    ("payments", "Payments"),
    ("payouts", "Payouts"),
    ("webhooks", "Webhooks"),
    ("phone", "Phone"),
    ("faults", "Faults"),
    ("clock", "Clock"),
    ("limits", "Limits"),
    ("advisor", "Advisor"),
    ("assumptions", "Assumptions"),
)


@attrs.frozen
class PageRequest:
    """A request for a page: its query, and the name of the host that it used."""

    sandbox: SandboxControls
    query: Mapping[str, str]
    host: str | None = None
    path: str = ""
    """Below `/_sandbox/`."""

    @property
    def origin(self) -> str:
        """The address that the reader's browser uses."""
        return f"http://{self.host}" if self.host else self.sandbox.origin

    def link(self, **changes: str) -> str:
        """The address of the page with changes of its query, `before` left out; so is an empty text."""
        wanted = {name: text for name, text in {**self.query, "before": "", **changes}.items() if text}
        return f"{CONSOLE}{self.path}?{urlencode(wanted)}" if wanted else CONSOLE + self.path

    @property
    def before(self) -> str:
        """The entry or record below which the page begins; empty for the newest."""
        return self.query.get("before", "")

    @property
    def span(self) -> tuple[float, float]:
        """The times in which to look: seconds since 1970."""
        since, until = (read_timestamp(self.query.get(name, "")) for name in ("from", "to"))
        return -math.inf if since is None else since, math.inf if until is None else until

    @property
    def has_span(self) -> bool:
        """True if not all times are looked at."""
        return self.span != (-math.inf, math.inf)

    def common(self, name: str, title: str) -> Context:
        """The context of every page."""
        with self.sandbox.reading():
            changes = self.sandbox.journal.changes
        findings = findings_of(self.sandbox).recent(self.sandbox)
        return {
            "findings": len({kept.mistake for kept in findings}),
            "money_at_risk": any(kept.finding.severity == "money" for kept in findings),
            "nav": NAV,
            "here": name,
            "title": title,
            "base_url": self.origin + PREFIX,
            "profile": self.sandbox.profile.name,
            "clock": clock_view(self.sandbox),
            "changes": changes,
            "link": self.link,
            "is_first": not self.before,
        }
