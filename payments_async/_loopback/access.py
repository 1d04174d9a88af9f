"""Who may reach a server of this machine: one set of rules for the sandbox, a batch's page and the listener.

Every user and every web page of a machine can send requests to 127.0.0.1. So a request must name this machine
(a web page can have a name of its own resolved to it), and it must come from the server's own user. Where the
kernel does not say which user that is, a secret decides: a segment at the beginning of the path. It is no
cookie, as a browser sends cookies to every port, and so to the servers of others.

A server bound to a network is asked by other machines, under names that it does not know: there the secret
decides alone. A web page with a name of its own does not know it. What is made to be passed on to others, as
the addresses of payers' pages are, has a secret of its own, which makes nobody trusted.
"""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import attrs

from . import Request

_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
_ROOT: Final = 0
_METHODS: Final = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"


class AccessRefused(Exception):
    """A request is not answered, and why."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers: Mapping[str, str] = headers or {}


@attrs.frozen
class Access:
    secret: str = attrs.field(repr=False)  # random text that fits into a path
    passed_on: str | None = attrs.field(default=None, repr=False)  # another, for addresses that others get
    is_shared: bool = False  # True if every user of this machine may reach it
    is_bound: bool = False  # True if other machines reach it: then nobody is trusted without the secret
    shared_by: str = ""  # the option that opens it to them; empty where there is none

    @property
    def root(self) -> str:
        """What stands before a path and opens it."""
        return f"/{self.secret}"

    def admit(self, uid: int | None, method: str, path: str, headers: Mapping[str, str]) -> tuple[str, bool]:
        """What stands before the path, and whether it is known whose the request is, or it has the secret.

        `uid` is the user it comes from, None where that is not known. With the secret that is passed on, it
        is for the caller to say what that opens. Raises AccessRefused.
        """
        if method == "TRACE":  # it would return the caller's headers, the key among them
            raise AccessRefused(405, "TRACE is not possible here.", {"Allow": _METHODS})
        root = self._root_of(path)
        if self.is_bound:
            return root, root == self.root
        if not names_this_machine(headers):
            raise AccessRefused(
                403, "This Host is not this server's own; ask for it as 127.0.0.1 or localhost."
            )
        if uid is not None and not self.is_shared and not is_own(uid):
            raise AccessRefused(403, self._not_yours(uid))
        return root, self.is_shared or uid is not None or root == self.root

    def _root_of(self, path: str) -> str:
        first, slash, _ = path[1:].partition("/")
        given = first.encode("utf-8", "replace")
        secrets = filter(None, (self.secret, self.passed_on) if slash else ())
        found = [one for one in secrets if hmac.compare_digest(one.encode(), given)]
        return f"/{found[0]}" if found else ""

    def _not_yours(self, uid: int) -> str:
        way_out = f"; `{self.shared_by}` opens it to every user of this machine" if self.shared_by else ""
        return f"This server answers user {os.geteuid()} alone, and you are user {uid}{way_out}."


def is_own(uid: int) -> bool:
    """True for this process's user, and for root, who can read everything of that user anyway."""
    return uid in (os.geteuid(), _ROOT)


def names_this_machine(headers: Mapping[str, str]) -> bool:
    """True if Host names this machine, with whatever port (it may be forwarded).

    Browsers always send Host; what sends none is a program.
    """
    host = headers.get("host")
    if host is None:
        return True
    name, colon, port = host.lower().rpartition(":")
    return (name if colon and port.isdecimal() else host.lower()) in _NAMES


def is_of_another_page(request: Request, origin: str) -> bool:
    """True if Origin names another page than those of the server at `origin`.

    A page that knows the secret is the server's own under whatever name it was asked for.
    """
    sender = request.headers.get("origin")
    own = {f"http://{request.headers.get('host')}".lower()} if request.root else set[str]()
    return sender is not None and sender.lower() not in _own_origins(origin) | own


def is_of_another_site(request: Request) -> bool:
    """True if the browser says that a page of another site, or of another port, has sent it."""
    return request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


def _own_origins(origin: str) -> set[str]:
    """The server's origin under each of its names."""
    port = urlsplit(origin).port
    return {origin, *(f"http://{name}:{port}" if port else f"http://{name}" for name in _NAMES)}


def under(root: str, html: str) -> str:
    """A page whose own addresses begin with `root`."""
    return re.sub(r'( (?:href|src|action|data-page)=")/', rf"\1{root}/", html) if root else html
