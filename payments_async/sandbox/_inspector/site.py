"""Routes an address below `/_sandbox/` to a page or an asset."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import attrs

from ..._loopback.access import under
from ..._loopback.page_files import PageFiles, console_headers
from .._common.operations import CONSOLE
from .._common.values import Answer, Request
from .filters import FILTERS
from .page_request import PageRequest
from .pages import PAGES

if TYPE_CHECKING:
    from .._controls import SandboxControls

_HEADERS = console_headers("'self'")
_ASSETS = "assets/"
FILES = PageFiles(Path(__file__).parent, CONSOLE + _ASSETS, {}, FILTERS)


def answer_page(sandbox: SandboxControls, request: Request) -> Answer:
    """Answer a request for a page or an asset of the inspector."""
    if request.method not in ("GET", "HEAD"):
        text = "Pages can only be read; requests that change something go to /_sandbox/api/."
        return Answer(405, {**_HEADERS, "Content-Type": "text/plain; charset=utf-8"}, text.encode())
    path = request.path.removeprefix(CONSOLE)
    if path.startswith(_ASSETS) and (asset := FILES.asset(path.removeprefix(_ASSETS))):
        headers, content = asset
        return Answer(200, {**_HEADERS, **headers}, content)
    return _page(sandbox, request, path)


def _page(sandbox: SandboxControls, request: Request, path: str) -> Answer:
    """A page, whose links lead on under the secret that it was asked with."""
    answer = _plain_page(sandbox, request, path)
    if not request.root:
        return answer
    if answer.status == 303:
        return attrs.evolve(
            answer, headers={**answer.headers, "Location": request.root + answer.headers["Location"]}
        )
    return attrs.evolve(answer, body=under(request.root, answer.body.decode()).encode())


def _plain_page(sandbox: SandboxControls, request: Request, path: str) -> Answer:
    asked = PageRequest(sandbox, dict(parse_qsl(request.query)), request.headers.get("host"), path)
    found = ((page, page.pattern.fullmatch(path)) for page in PAGES)
    page, match = next(((page, match) for page, match in found if match), (None, None))
    if page is None or match is None:
        return _missing(asked, "There is no such page.")
    try:
        context = page.context(asked, **match.groupdict())
    except LookupError as missing:
        return _missing(asked, str(missing.args[0]))
    if isinstance(context, str):
        return Answer(303, {**_HEADERS, "Location": context}, b"")
    return _html(200, page.template, asked.common(page.name, page.title) | context)


def _missing(asked: PageRequest, text: str) -> Answer:
    return _html(404, "missing.html", asked.common("", "Page not found") | {"text": text})


def _html(status: int, template: str, context: Mapping[str, object]) -> Answer:
    html = FILES.render(template, context)
    return Answer(status, {**_HEADERS, "Content-Type": "text/html; charset=utf-8"}, html.encode())
