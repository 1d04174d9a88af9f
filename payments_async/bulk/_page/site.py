"""The one address of a batch's page, and who may ask for it. Nothing can be changed through it."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Final

from ..._loopback import Reply, Request
from ..._loopback.access import is_of_another_page, is_of_another_site
from ..._loopback.page_files import PageFiles, console_headers
from ...models._masking import clean
from ..errors import LedgerError
from . import view
from .feed import BatchFeed, PageFigures

_FILES: Final = PageFiles(Path(__file__).parent, "", {}, {})
_STYLE, _SCRIPT = (_FILES.assets[name].decode() for name in ("page.css", "page.js"))


def _policy() -> str:
    """The page loads nothing: its style and its script stand in it, and are known by their hashes."""
    style, script = (b64encode(sha256(text.encode()).digest()).decode() for text in (_STYLE, _SCRIPT))
    return (
        f"default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; connect-src 'self'; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    )


_HEADERS: Final = {**console_headers("'none'"), "Content-Security-Policy": _policy()}


async def answer(feed: BatchFeed, address: str, request: Request) -> Reply:
    """Answer a request that the rules of the server admit."""
    if request.method not in ("GET", "HEAD"):
        return _text(405, "This page can only be read.\n")
    is_visit = request.headers.get("sec-fetch-mode") == "navigate"
    if is_of_another_page(request, address) or (is_of_another_site(request) and not is_visit):
        return _text(403, "Ask for this page from no other page.\n")
    if not request.is_trusted:
        return _text(
            403, "Open this page by the link that its command printed: the token in it is missing.\n"
        )
    if request.path != "/":
        return _text(404, "There is no page here.\n")
    try:
        html = html_of(await feed.figures(), has_script=True)
    except LedgerError as error:
        return _text(503, f"{clean(str(error))}\n")
    return Reply(200, {**_HEADERS, "Content-Type": "text/html; charset=utf-8"}, html.encode())


def html_of(now: PageFigures, *, has_script: bool) -> str:
    """The page. `has_script`: it keeps itself up to date; a file cannot."""
    script = _SCRIPT if has_script else ""
    return _FILES.render("batch.html", {**view.batch_context(now), "style": _STYLE, "script": script})


def _text(status: int, text: str) -> Reply:
    return Reply(status, {**_HEADERS, "Content-Type": "text/plain; charset=utf-8"}, text.encode())
