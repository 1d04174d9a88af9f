"""Which address of a batch's page shows what, and to whom. Nothing can be changed through it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs

from ..._loopback.access import is_of_another_page, is_of_another_site, under
from ..._loopback.page_files import PageFiles, console_headers
from ..._loopback.values import Reply, Request, Stream
from ...models._masking import clean
from ..errors import LedgerError
from . import view
from .access import PageAccess
from .browser import OPEN
from .feed import BatchFeed

_HEADERS: Final = console_headers("'none'")
_ROW: Final = re.compile(r"/rows/([0-9]{1,9})", re.ASCII)
FILES: Final = PageFiles(Path(__file__).parent, "/assets/", {}, {})


async def answer(feed: BatchFeed, access: PageAccess, request: Request) -> Reply | Stream:
    """Answer a request that the rules of the server admit."""
    if refused := _refusal(access, request):
        return refused
    if request.path.startswith("/assets/") and (asset := FILES.asset(request.path.removeprefix("/assets/"))):
        headers, content = asset
        return Reply(200, {**_HEADERS, **headers}, content)
    if _is_opening(request):
        return _exchange(feed, access, request, parse_qs(request.body.decode("ascii", "replace")), "ticket")
    query = parse_qs(request.query)
    if "token" in query:
        return _exchange(feed, access, request, query, "token")
    if not request.is_trusted:
        return _closed(feed)
    try:
        return await _page(feed, request)
    except LedgerError as error:
        return _text(503, f"{clean(str(error))}\n")


def _is_opening(request: Request) -> bool:
    """True for the form of `browser`, the only request that is no reading."""
    return (request.method, request.path) == ("POST", OPEN)


def _refusal(access: PageAccess, request: Request) -> Reply | None:
    """What another page asks for gets no answer; the form comes from a file, whose Origin is `null`."""
    if request.method not in ("GET", "HEAD") and not _is_opening(request):
        return _text(405, "This page can only be read.\n")
    is_file = _is_opening(request) and request.headers.get("origin") == "null"
    is_foreign = is_of_another_page(request, access.origin) and not is_file
    is_visit = request.headers.get("sec-fetch-mode") == "navigate"
    if is_foreign or (is_of_another_site(request) and not is_visit):
        return _text(403, "Ask for this page from no other page.\n")
    return None


def _closed(feed: BatchFeed) -> Reply:
    """Where it is not known whose a request is, and the secret is missing: what opens the page."""
    again = f"`{clean(feed.ledger.command('watch', '--page'))}`"
    return _text(403, f"A link to this page opens it once, within ten minutes.\n{again} makes another.\n")


def _exchange(
    feed: BatchFeed, access: PageAccess, request: Request, fields: dict[str, list[str]], name: str
) -> Reply:
    """The page for a one-time ticket. A program that looks where a link leads does not use it up."""
    if request.method == "HEAD":
        return _text(200, "")
    is_used = access.use(fields.get(name, [""])[0])
    if not (is_used or request.is_trusted):
        return _closed(feed)
    root = request.root if request.is_trusted else access.rules.root
    return Reply(303, {**_HEADERS, "Location": f"{root}/"}, b"")


async def _page(feed: BatchFeed, request: Request) -> Reply | Stream:
    if request.path == "/events":
        return Stream({**_HEADERS, "Content-Type": "text/event-stream"}, feed.news())
    if request.path == "/":
        return _html(request, 200, "batch.html", view.batch_context(await feed.figures()))
    found = _ROW.fullmatch(request.path)
    if found is None:
        return _html(request, 404, "missing.html", view.missing_context(None))
    now = await feed.figures()  # before the row: what is said of the batch is never newer
    if (row := await feed.row(int(found[1]))) is None:
        return _html(request, 404, "missing.html", view.missing_context(int(found[1])))
    return _html(request, 200, "row.html", view.row_context(now, row))


def _html(request: Request, status: int, template: str, context: view.Context) -> Reply:
    html = under(request.root, FILES.render(template, context)).encode()
    return Reply(status, {**_HEADERS, "Content-Type": "text/html; charset=utf-8"}, html)


def _text(status: int, text: str) -> Reply:
    return Reply(status, {**_HEADERS, "Content-Type": "text/plain; charset=utf-8"}, text.encode())
