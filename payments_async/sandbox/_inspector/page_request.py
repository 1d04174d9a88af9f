"""A request for a page of the inspector, and what every page shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import attrs

from .._common.operations import CONSOLE, PREFIX
from .._control_api.clock import clock_view

if TYPE_CHECKING:
    from .._controls import SandboxControls

Context = dict[str, object]

NAV = (
    ("", "Log"),
    ("payments", "Payments"),
    ("payouts", "Payouts"),
    ("webhooks", "Webhooks"),
    ("faults", "Faults"),
    ("clock", "Clock"),
)


@attrs.frozen
class PageRequest:
    """A request for a page: its query, and the name of the host that it used."""

    sandbox: SandboxControls
    query: Mapping[str, str]
    host: str | None = None
    path: str = ""  # below `/_sandbox/`

    @property
    def find(self) -> str:
        """The text that is searched for; empty for none."""
        return self.query.get("find", "").strip()

    @property
    def before(self) -> str:
        """The entry or record below which the page begins; empty for the newest."""
        return self.query.get("before", "")

    def link(self, **changes: str) -> str:
        given = {**self.query, "before": "", "try": "", **changes}
        wanted = {name: text for name, text in given.items() if text}
        return f"{CONSOLE}{self.path}?{urlencode(wanted)}" if wanted else CONSOLE + self.path

    def common(self, name: str, title: str) -> Context:
        with self.sandbox.reading():
            changes = self.sandbox.journal.changes
        origin = f"http://{self.host}" if self.host else self.sandbox.origin
        return {
            "nav": NAV,
            "here": name,
            "title": title,
            "base_url": origin + PREFIX,
            "profile": self.sandbox.profile.name,
            "clock": clock_view(self.sandbox),
            "changes": changes,
            "link": self.link,
            "find": self.find,
            "is_first": not self.before,
        }
