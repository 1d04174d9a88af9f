"""Which address of a batch's page shows what, and to whom. Nothing can be changed through it."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs

from ..._extras import needs
from ..._loopback import server
from ..._loopback.access import is_of_another_page, is_of_another_site, under
from ..._loopback.page_files import PageFiles, console_headers
from ..._loopback.values import Reply, Request, Stream
from ...models._masking import clean
from ..ledger_errors import LedgerError
from . import view
from .access import PageAccess
from .feed import BatchFeed
from .source import PageElsewhere
from .ticket_form import OPEN

_HEADERS: Final = console_headers("'none'")
_ROW: Final = re.compile(r"/rows/([0-9]{1,9})", re.ASCII)
FILES: Final = PageFiles(view.FOLDER, "/assets/", {}, {})


async def serve(
    feed: BatchFeed, access: PageAccess, listener: socket.socket
) -> Callable[[], Awaitable[None]]:
    """Answer the visitors of a listening socket. Returns what ends that."""

    return await server.serve(
        listener, access.rules, server.answered_by(lambda request: answer(feed, access, request))
    )


async def answer(feed: BatchFeed, access: PageAccess, request: Request) -> Reply | Stream:
    """Answer a request that the rules of the server admit."""
    if refused := _refusal(access, request):
        return refused
    if request.path.startswith("/assets/") and (asset := FILES.asset(request.path.removeprefix("/assets/"))):
        headers, content = asset
        return Reply(200, {**_HEADERS, **headers}, content)
    query = {name: values[0] for name, values in parse_qs(request.query).items()}
    if _is_opening(request):
        ticket = parse_qs(request.body.decode("ascii", "replace")).get("ticket", [""])[0]
        return _exchange(feed, access, request, ticket)
    if request.path.startswith("/api/"):
        return await _command(feed, access, request, query)
    if "token" in query:
        return _exchange(feed, access, request, query["token"])
    if not request.is_trusted:
        return _closed(feed)
    try:
        return await _page(feed, request)
    except PageElsewhere as found:
        return Reply(303, {**_HEADERS, "Location": found.address}, b"")
    except LedgerError as error:
        return _text(503, f"{clean(str(error))}\n")
    except ModuleNotFoundError:
        return _text(503, needs("the page of a batch needs", "sandbox") + "\n")


def _is_opening(request: Request) -> bool:
    """True for the form of `ticket_form`, the only request that is no reading."""
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
    again = f"`{clean(feed.ledger.command('watch'))}`"
    return _text(403, f"A link to this page opens it once, within ten minutes.\n{again} makes another.\n")


def _exchange(feed: BatchFeed, access: PageAccess, request: Request, ticket: str) -> Reply:
    """The page for a one-time ticket. A program that looks where a link leads does not use it up."""
    if request.method == "HEAD":
        return _text(200, "")
    is_used = access.use(ticket)
    if not (is_used or request.is_trusted):
        return _closed(feed)
    place = request.path if _ROW.fullmatch(request.path) else "/"  # never `//host`
    root = request.root if request.is_trusted else access.rules.root
    return Reply(303, {**_HEADERS, "Location": root + place}, b"")


async def _page(feed: BatchFeed, request: Request) -> Reply | Stream:
    if request.path == "/events":
        return Stream({**_HEADERS, "Content-Type": "text/event-stream"}, feed.news())
    if request.path == "/":
        return _html(request, 200, "batch.html", view.batch_context(await feed.snapshot()))
    found = _ROW.fullmatch(request.path)
    if found is None:
        return _html(request, 404, "missing.html", view.missing_context(None))
    now = await feed.snapshot()  # before the row: what is said of the batch is never newer
    if (row := await feed.row(int(found[1]))) is None:
        return _html(request, 404, "missing.html", view.missing_context(int(found[1])))
    return _html(request, 200, "row.html", view.row_context(now, row))


async def _command(feed: BatchFeed, access: PageAccess, request: Request, query: Mapping[str, str]) -> Reply:
    """JSON for commands of the same user, which have the secret."""
    if not request.root:
        return _json(403, {"error": "the secret is missing or wrong"})
    if request.path == "/api/open":
        return _json(200, {"url": access.new_address()})
    if request.path == "/api/used":
        return _json(200, {"used": not access.is_open(query.get("ticket", ""))})
    if request.path != "/api/row":
        return _json(404, {"error": "there is no such address"})
    try:
        row = await feed.row(query.get("name", ""))
    except (LedgerError, PageElsewhere) as error:
        return _json(503, {"error": clean(str(error))})
    if row is None:
        return _json(404, {"error": "there is no such row"})
    return _json(200, {**row.facts(), "page": access.address_of(f"/rows/{row.number}")})


def _html(request: Request, status: int, template: str, context: Mapping[str, object]) -> Reply:
    html = under(request.root, FILES.render(template, context)).encode()
    return Reply(status, {**_HEADERS, "Content-Type": "text/html; charset=utf-8"}, html)


def _json(status: int, value: Mapping[str, Any]) -> Reply:
    return Reply(status, {**_HEADERS, "Content-Type": "application/json"}, json.dumps(value).encode())


def _text(status: int, text: str) -> Reply:
    return Reply(status, {**_HEADERS, "Content-Type": "text/plain; charset=utf-8"}, text.encode())
