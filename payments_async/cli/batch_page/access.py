"""Who may see the page of a batch: one-time tickets for browsers, then a cookie; a token for commands."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Final

import attrs

from ..._loopback import HOST
from ..._runtime import SYSTEM

_MOST: Final = 32
"""Tickets that are kept until they are used; of more, the oldest are void."""


def _secret() -> str:
    return SYSTEM.token(32).hex()


@attrs.define(eq=False)
class PageAccess:
    """The secrets of one page. None of them is in a repr."""

    port: int
    token: str = attrs.field(factory=_secret, repr=False)
    """Commands of the same user read it from the file beside the ledger."""
    _session: str = attrs.field(factory=_secret, repr=False)
    _tickets: list[str] = attrs.field(factory=list, repr=False)

    @property
    def origin(self) -> str:
        """The page's address, without a secret."""
        return f"http://{HOST}:{self.port}"

    def new_address(self) -> str:
        """An address that opens the page once: it may stay in a history, or be seen among the processes."""
        ticket = _secret()
        self._tickets = [*self._tickets, ticket][-_MOST:]
        return f"{self.origin}/?token={ticket}"

    def cookie_for(self, ticket: str) -> str | None:
        """The `Set-Cookie` for an unused ticket, which is used by this; None for any other."""
        kept = [each for each in self._tickets if not _same(each, ticket)]
        if len(kept) == len(self._tickets):
            return None
        self._tickets = kept
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
