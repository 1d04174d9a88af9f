"""From an address below `/_sandbox/` to a page or an asset."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from ..common.operations import CONSOLE
from ..common.values import Answer, Request
from .pages import PAGES, PageRequest
from .rendering import render

if TYPE_CHECKING:
    from .._controls import SandboxControls

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_ASSETS = {
    "assets/inspector.css": "text/css; charset=utf-8",
    "assets/inspector.js": "text/javascript; charset=utf-8",
    "assets/icon.svg": "image/svg+xml",
}


def answer_page(sandbox: SandboxControls, request: Request) -> Answer:
    """Answer a request for a page or an asset of the inspector."""
    if request.method not in ("GET", "HEAD"):
        return _plain(405, "Pages are read; what changes something is at /_sandbox/api/.")
    path = request.path.removeprefix(CONSOLE)
    if path in _ASSETS:
        return Answer(200, {**_HEADERS, "Content-Type": _ASSETS[path]}, _assets()[path])
    _assets()
    return _page(sandbox, request, path)


def _page(sandbox: SandboxControls, request: Request, path: str) -> Answer:
    look = PageRequest(sandbox, dict(parse_qsl(request.query)), request.headers.get("host"))
    for page in PAGES:
        found = page.pattern.fullmatch(path)
        if found is None:
            continue
        try:
            context = page.context(look, **found.groupdict())
        except LookupError as missing:
            return _html(404, render("missing.html", look.common("", "Not here") | {"told": missing.args[0]}))
        return _html(200, render(page.template, look.common(page.name, page.title) | context))
    told = "There is no such page."
    return _html(404, render("missing.html", look.common("", "Not here") | {"told": told}))


def _html(status: int, text: str) -> Answer:
    return Answer(status, {**_HEADERS, "Content-Type": "text/html; charset=utf-8"}, text.encode())


def _plain(status: int, text: str) -> Answer:
    return Answer(status, {**_HEADERS, "Content-Type": "text/plain; charset=utf-8"}, text.encode())


@lru_cache
def _assets() -> dict[str, bytes]:
    """All of them at once: a script that an upgrade changed would not fit the pages of the running code."""
    folder = files(__package__)
    return {path: folder.joinpath(path).read_bytes() for path in _ASSETS}
