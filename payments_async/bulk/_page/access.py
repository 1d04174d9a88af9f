"""Links that open the page of a batch, with one-time tickets; `_loopback/access.py` lets in."""

from __future__ import annotations

from typing import Final

import attrs

from ..._loopback import HOST
from ..._loopback.access import Access, is_same
from ..._runtime import SYSTEM, Runtime

_MOST: Final = 32
"""Tickets that are kept until they are used; of more, the oldest are void."""
_VALID: Final = 600.0
"""Seconds in which a ticket can be used."""


@attrs.define(eq=False)
class PageAccess:
    """The secrets of one page. None of them is in a repr."""

    port: int
    rules: Access = attrs.field(factory=lambda: Access(SYSTEM.token(32).hex()))
    """Who may reach it."""
    _tickets: dict[str, float] = attrs.field(factory=dict, repr=False)
    """{ticket: until when it can be used}, the oldest first."""
    _runtime: Runtime = attrs.field(default=SYSTEM, repr=False)

    @property
    def origin(self) -> str:
        """The page's address, without a secret."""
        return f"http://{HOST}:{self.port}"

    def new_ticket(self) -> str:
        """A ticket that opens the page where the secret is needed, once: it may stay in a history."""
        ticket = SYSTEM.token(16).hex()  # a terminal of 80 columns does not break the link
        tickets = [*self._tickets.items(), (ticket, self._runtime.monotonic() + _VALID)]
        self._tickets = dict(tickets[-_MOST:])
        return ticket

    def link(self, ticket: str) -> str:
        """The page's address with a ticket."""
        return f"{self.origin}/?token={ticket}"

    def is_open(self, ticket: str) -> bool:
        """True for a ticket that can still be used."""
        now = self._runtime.monotonic()
        return any(is_same(kept, ticket) for kept, until in self._tickets.items() if until > now)

    def use(self, ticket: str) -> bool:
        """Use up a ticket; False if it cannot be used."""
        is_open = self.is_open(ticket)
        self._tickets = {kept: until for kept, until in self._tickets.items() if not is_same(kept, ticket)}
        return is_open
