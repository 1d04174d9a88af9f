"""Answers control requests: origin check, route, function, JSON."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from ..._loopback.values import GUARDS
from .._common.json import JsonObject, decode_object, encode
from .._common.operations import CONTROL_API
from .._common.scenario_words import UnknownWord
from .._common.values import Answer, Request, Stream
from .arguments import ControlCall, Created, Refusal, check_origin, read_body
from .routes import ROUTES, Route

if TYPE_CHECKING:
    from .._controls import SandboxControls

_HEADERS = {"Content-Type": "application/json", **GUARDS}
REFUSALS_AS_200 = "refusals=200"
"""The query string of the inspector's buttons: refusals come as 200, so that the console stays clean."""

_NEAR = re.compile(r"\((?:near|there are): ([^()]*)\)")


def answer_control(sandbox: SandboxControls, request: Request) -> Answer | Stream:
    """Answer a request under `/_sandbox/api/`."""
    answer = _answer_or_refusal(sandbox, request)
    if isinstance(answer, Answer) and answer.status >= 400 and request.query == REFUSALS_AS_200:
        refusal: JsonObject = {"refused": answer.status, **decode_object(answer.body)}
        return _json_answer(200, refusal)
    return answer


def _answer_or_refusal(sandbox: SandboxControls, request: Request) -> Answer | Stream:
    try:
        check_origin(request, sandbox.origin)
        return _answer(sandbox, request)
    except Refusal as refusal:
        return _json_answer(
            refusal.status, {"message": refusal.message, **_near(refusal.message), **refusal.extra}
        )
    except UnknownWord as unknown:
        return _json_answer(400, {"message": str(unknown), **_near(str(unknown))})
    except LookupError as missing:
        return _json_answer(404, {"message": str(missing.args[0] if missing.args else missing)})
    except (ValueError, TypeError) as wrong:
        return _json_answer(422, {"message": str(wrong)})


def _answer(sandbox: SandboxControls, request: Request) -> Answer | Stream:
    route, values = _find(request.method, request.path.removeprefix(CONTROL_API))
    body = read_body(request) if request.method == "POST" else {}
    call = ControlCall(values, dict(parse_qsl(request.query, keep_blank_values=True)), body, request.headers)
    call.only(*route.names)
    answer = route.run(sandbox, call)
    if isinstance(answer, Stream):
        return answer
    return _json_answer(201, answer.value) if isinstance(answer, Created) else _json_answer(200, answer)


def _find(method: str, path: str) -> tuple[Route, dict[str, str]]:
    """The route of an address; `Refusal` 404, or 405 when it has other methods."""
    there = [(route, match) for route in ROUTES if (match := route.pattern.fullmatch(path))]
    for route, match in there:
        if route.method == method:
            return route, match.groupdict()
    if there:
        methods = ", ".join(sorted({route.method for route, _ in there}))
        raise Refusal(405, f"{method} is not possible here; {methods} is.")
    raise Refusal(
        404, f"There is nothing at {CONTROL_API}{path[:80]}; GET {CONTROL_API} lists what there is."
    )


def _near(message: str) -> dict[str, list[str]]:
    match = _NEAR.search(message)
    return {"near": match[1].split(", ")} if match else {}


def _json_answer(status: int, value: object) -> Answer:
    return Answer(status, _HEADERS, encode(value))
