"""Which address of a batch's page shows what, and to whom. Nothing can be changed through it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs

from ..._extras import needs
from ...bulk.ledger_errors import LedgerError
from ...models._masking import clean
from ...sandbox.common.host_check import own_hosts, refuse_foreign
from ...sandbox.common.values import Answer, Request, Stream
from ...sandbox.http.templates import PageFiles, console_headers
from . import view
from .access import PageAccess
from .feed import BatchFeed
from .source import PageElsewhere

_HEADERS: Final = console_headers("'none'")
_ROW: Final = re.compile(r"/rows/([0-9]{1,9})", re.ASCII)
FILES: Final = PageFiles(view.FOLDER, "/assets/", {}, {})


async def answer(feed: BatchFeed, access: PageAccess, request: Request) -> Answer | Stream:
    """Answer a request."""
    if refused := _refusal(access, request):
        return refused
    if request.path.startswith("/assets/") and (asset := FILES.asset(request.path.removeprefix("/assets/"))):
        return Answer(asset.status, {**_HEADERS, **asset.headers}, asset.body)
    query = {name: values[0] for name, values in parse_qs(request.query).items()}
    if request.path.startswith("/api/"):
        return await _command(feed, access, request, query)
    if "token" in query:
        return _exchange(feed, access, request, query["token"])
    if not access.is_visitor(request.headers):
        return _closed(feed)
    try:
        return await _page(feed, request)
    except PageElsewhere as found:
        return Answer(303, {**_HEADERS, "Location": found.address}, b"")
    except LedgerError as error:
        return _text(503, f"{clean(str(error))}\n")
    except ModuleNotFoundError:
        return _text(503, needs("the page of a batch needs", "sandbox") + "\n")


def _refusal(access: PageAccess, request: Request) -> Answer | None:
    """What comes from another page, or under another name, gets no answer."""
    if request.method not in ("GET", "HEAD"):
        return _text(405, "This page can only be read.\n")
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "none")
    hosts = own_hosts(access.origin)
    is_foreign = origin is not None and origin.partition("://")[2] not in hosts
    is_foreign |= site not in ("none", "same-origin") and request.headers.get("sec-fetch-mode") != "navigate"
    if is_foreign or "host" not in request.headers or refuse_foreign(request, access.origin):
        return _text(403, "Ask for this page as 127.0.0.1 or localhost, and from no other page.\n")
    return None


def _closed(feed: BatchFeed) -> Answer:
    """For a browser without the cookie: what opens the page."""
    again = f"`{clean(feed.ledger.command('watch'))}`"
    return _text(403, f"A link to this page opens it once, within ten minutes.\n{again} makes another.\n")


def _exchange(feed: BatchFeed, access: PageAccess, request: Request, ticket: str) -> Answer:
    """The cookie for a one-time ticket; a browser that has it already just goes on."""
    cookie = access.cookie_for(ticket)
    if cookie is None and not access.is_visitor(request.headers):
        return _closed(feed)
    place = request.path if _ROW.fullmatch(request.path) else "/"  # never `//host`
    headers = {**_HEADERS, "Location": place} | ({"Set-Cookie": cookie} if cookie else {})
    return Answer(303, headers, b"")


async def _page(feed: BatchFeed, request: Request) -> Answer | Stream:
    if request.path == "/events":
        return Stream({**_HEADERS, "Content-Type": "text/event-stream"}, feed.news())
    if request.path == "/":
        return _html(200, "batch.html", view.batch_context(await feed.snapshot()))
    found = _ROW.fullmatch(request.path)
    number = int(found[1]) if found else None
    row = None if number is None else await feed.row(number)
    if row is None:
        return _html(404, "missing.html", view.missing_context(number))
    return _html(200, "row.html", view.row_context(await feed.snapshot(), row))


async def _command(feed: BatchFeed, access: PageAccess, request: Request, query: Mapping[str, str]) -> Answer:
    """JSON for commands of the same user, which have the token."""
    if not access.is_command(request.headers):
        return _json(403, {"error": "the token is missing or wrong"})
    if request.path == "/api/open":
        return _json(200, {"url": access.new_address()})
    if request.path != "/api/row":
        return _json(404, {"error": "there is no such address"})
    try:
        row = await feed.row(query.get("name", ""))
    except (LedgerError, PageElsewhere) as error:
        return _json(503, {"error": clean(str(error))})
    if row is None:
        return _json(404, {"error": "there is no such row"})
    return _json(200, {**row.facts(), "page": f"{access.origin}/rows/{row.number}"})


def _html(status: int, template: str, context: Mapping[str, object]) -> Answer:
    html = FILES.render(template, context).encode()
    return Answer(status, {**_HEADERS, "Content-Type": "text/html; charset=utf-8"}, html)


def _json(status: int, value: Mapping[str, Any]) -> Answer:
    return Answer(status, {**_HEADERS, "Content-Type": "application/json"}, json.dumps(value).encode())


def _text(status: int, text: str) -> Answer:
    return Answer(status, {**_HEADERS, "Content-Type": "text/plain; charset=utf-8"}, text.encode())
