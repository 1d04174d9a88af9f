"""Answers requests to the control API: check of the origin, route, arguments, function, JSON."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from ..._loopback import GUARDS
from ..._loopback.access import is_of_another_page, is_of_another_site
from .._common.json import JsonObject, decode_object, encode
from .._common.operations import CONTROL_API
from .._common.scenario_words import UnknownWord
from .._common.values import Answer, Request, RequestRefused
from .._controls import SandboxControls
from .routes import ROUTES, Route
from .values import Refusal

_HEADERS: Final = {"Content-Type": "application/json", **GUARDS}
LARGEST: Final = 65_536  # bytes of a request body

_NAMED: Final = re.compile(r"(?:`\$\.|field `)(\w+)")
_NEAR: Final = re.compile(r"\((?:near|there are): ([^()]*)\)")


def answer_control(sandbox: SandboxControls, request: Request) -> Answer:
    """Answer a request under `/_sandbox/api/`."""
    try:
        return _answer(sandbox, request)
    except Refusal as refusal:
        return _refused(refusal)
    except UnknownWord as unknown:
        return _refused(Refusal(400, str(unknown)))
    except LookupError as missing:
        return _refused(Refusal(404, str(missing.args[0])))
    except (ValueError, TypeError) as wrong:
        return _refused(Refusal(422, str(wrong)))


def _answer(sandbox: SandboxControls, request: Request) -> Answer:
    if is_of_another_page(request, sandbox.origin) or is_of_another_site(request):
        raise Refusal(403, "Another site's page may not control the sandbox.")
    route, ids = _find(request.method, request.path.removeprefix(CONTROL_API))
    is_body = request.method == "POST"
    given = _body(request) if is_body else dict(parse_qsl(request.query, keep_blank_values=True))
    try:
        arguments = msgspec.convert({**given, **ids}, route.arguments, strict=False)  # "20" is 20
    except msgspec.ValidationError as wrong:
        names = _NAMED.findall(str(wrong))
        raise Refusal(422, str(wrong), names[-1] if names else None) from None
    answer = route.run(sandbox, **msgspec.structs.asdict(arguments))
    return Answer(route.status, _HEADERS, encode({"message": "Done."} if answer is None else answer))


def _find(method: str, path: str) -> tuple[Route, dict[str, str]]:
    """The route of an address; `Refusal` 404, or 405 when it has other methods."""
    matches = {route.method: (route, match) for route in ROUTES if (match := route.pattern.fullmatch(path))}
    if method in matches:
        route, match = matches[method]
        return route, match.groupdict()
    if matches:
        raise Refusal(405, f"{method} is not possible here; {', '.join(sorted(matches))} is.")
    raise Refusal(
        404, f"There is nothing at {CONTROL_API}{path[:80]}; GET {CONTROL_API} lists what there is."
    )


def _body(request: Request) -> JsonObject:
    """The JSON object that a POST carries, empty when it carries none; `Refusal` 413, 415 or 400."""
    if len(request.body) > LARGEST:
        raise Refusal(413, f"The body may be {LARGEST:,} bytes at most.")
    # JSON is asked for even of an empty body: a form of another site cannot send that type
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, "Send Content-Type: application/json.")
    try:
        return decode_object(request.body) if request.body.strip() else {}
    except RequestRefused as unreadable:
        raise Refusal(400, unreadable.message) from unreadable


def _refused(refusal: Refusal) -> Answer:
    value: JsonObject = {"message": refusal.message}
    if match := _NEAR.search(refusal.message):
        value["near"] = match[1].split(", ")
    if refusal.field is not None:
        value["field"] = refusal.field
    return Answer(refusal.status, _HEADERS, encode(value))
