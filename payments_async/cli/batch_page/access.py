"""Who may see the page of a batch: one-time tickets for browsers, then a cookie; a token for commands."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Final

import attrs

from ..._loopback import HOST
from ..._runtime import SYSTEM, Runtime

_MOST: Final = 32
"""Tickets that are kept until they are used; of more, the oldest are void."""
_VALID: Final = 600.0
"""Seconds in which a ticket can be used."""


def _secret() -> str:
    return SYSTEM.token(32).hex()


@attrs.define(eq=False)
class PageAccess:
    """The secrets of one page. None of them is in a repr."""

    port: int
    token: str = attrs.field(factory=_secret, repr=False)
    """Commands of the same user read it from the file beside the ledger."""
    _session: str = attrs.field(factory=_secret, repr=False)
    _tickets: dict[str, float] = attrs.field(factory=dict, repr=False)
    """{ticket: until when it can be used}, the oldest first."""
    _runtime: Runtime = attrs.field(default=SYSTEM, repr=False)

    @property
    def origin(self) -> str:
        """The page's address, without a secret."""
        return f"http://{HOST}:{self.port}"

    def new_address(self) -> str:
        """An address that opens the page once: it may stay in a history, or be seen among the processes."""
        ticket = _secret()
        tickets = [*self._tickets.items(), (ticket, self._runtime.monotonic() + _VALID)]
        self._tickets = dict(tickets[-_MOST:])
        return f"{self.origin}/?token={ticket}"

    def cookie_for(self, ticket: str) -> str | None:
        """The `Set-Cookie` for an unused ticket, which is used by this; None for any other."""
        now = self._runtime.monotonic()
        valid = {each: until for each, until in self._tickets.items() if until > now}
        self._tickets = {each: until for each, until in valid.items() if not _same(each, ticket)}
        if len(self._tickets) == len(valid):
            return None
        return f"{self._cookie_name}={self._session}; HttpOnly; SameSite=Strict; Path=/"

    def is_visitor(self, headers: Mapping[str, str]) -> bool:
        """True if a request has the cookie. `headers` has its names in lower case."""
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie_name)
        except CookieError:
            return False
        return cookie is not None and _same(self._session, cookie.value)

    def is_command(self, headers: Mapping[str, str]) -> bool:
        """True if a request has the token."""
        return _same(f"Bearer {self.token}", headers.get("authorization", ""))

    @property
    def _cookie_name(self) -> str:
        """Cookies know no ports: each page has a name of its own."""
        return f"payments_page_{self.port}"


def _same(secret: str, given: str) -> bool:
    return hmac.compare_digest(secret.encode(), given.encode("utf-8", "replace"))
