"""A secret that can be recognised wherever it turns up, and the most talkative ways to show things."""

from __future__ import annotations

import json
import pickle
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import attrs
from rich.traceback import Traceback

from payments_async._http.types import HTTPRequest, HTTPResponse
from tests.support.scripted import answer

CANARY_KEY = "sk_sandbox_CANARY0123456789abcdef"
LONG_CANARY_KEY = "sk_sandbox_" + "CANARY0123456789" * 12
"""Longer than what reporters show of a text before they shorten it."""
CANARY_ACCOUNT = "9876504321098"
NEEDLE = "CANARY0123456789"
"""What both keys hold."""
_HOME = str(Path(__file__).parents[2])


@attrs.define(eq=False)
class Scanner:
    """Looks for a secret in texts and notes where it was found; never the texts."""

    needle: str = NEEDLE
    found: list[str] = attrs.field(factory=list)

    def look(self, where: str, *texts: object) -> None:
        """Note the place if any of the texts holds the secret."""
        if any(self.needle in str(text) for text in texts) and where not in self.found:
            self.found.append(where)


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error with its causes and contexts, suppressed ones included."""
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        link = pending.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            pending += [link.__cause__, link.__context__]
            yield link


def told_by(error: BaseException) -> str:
    """An error as every reporter would show it, with the locals of all frames but the tests' own."""
    shown = []
    for link in chain(error):
        shown += [repr(link), str(link), repr(link.args), repr(vars(link)), *map(str, notes(link))]
        trace = without_tests(link.__traceback__)
        plain = traceback.TracebackException(type(link), link, trace, capture_locals=True)
        shown += plain.format(chain=False)
        # as rich prints it, but for the lines of source, whose colours take nine tenths of the time
        for stack in Traceback.extract(type(link), link, trace, show_locals=True).stacks:
            shown.append(stack.exc_value)
            shown += [
                f"{name} {node}" for frame in stack.frames for name, node in (frame.locals or {}).items()
            ]
    return "\n".join(shown)


def notes(error: BaseException) -> list[str]:
    return list(getattr(error, "__notes__", ()))


def without_tests(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of test code, which may know the secret."""
    kept: TracebackType | None = None
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    for link in reversed(frames):
        if not of_tests(link.tb_frame):
            kept = TracebackType(kept, link.tb_frame, link.tb_lasti, link.tb_lineno)
    return kept


def of_tests(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(f"{_HOME}/tests/")


def printed(value: Any) -> str:
    """A value as a careless program would print it."""
    return "\n".join([repr(value), str(value), f"{value}", repr(_held(value))])


def shown_by(value: Any) -> str:
    """The same for its attributes and theirs: account data may be in there, a key not even there."""
    return "\n".join([printed(value), *_attributes(value, 4)])


def _held(value: Any) -> dict[str, Any]:
    names = getattr(value, "__slots__", ())
    return getattr(value, "__dict__", None) or {name: getattr(value, name, None) for name in names}


def _attributes(value: Any, depth: int) -> Iterator[str]:
    held = _held(value)
    yield repr(held)
    for item in held.values() if depth else ():
        if type(item).__module__.startswith("payments_"):
            yield from _attributes(item, depth - 1)


def pickled(value: Any) -> str:
    """What a pickle of the value holds, and what comes out of it again."""
    raw = pickle.dumps(value)
    return raw.decode("latin-1") + shown_by(pickle.loads(raw))


def echoed(said: HTTPResponse, written: Callable[[str], str] = str) -> Callable[[HTTPRequest], HTTPResponse]:
    """The answer of a service that repeats the key it was given: in its words, its fields and its headers."""

    def step(request: HTTPRequest) -> HTTPResponse:
        request.sent = True
        key = written(str(request.headers["Authorization"]).removeprefix("Bearer "))
        headers = {**said.headers, "X-Debug": f"Bearer {key}", "X-Request-Id": key}
        try:
            tree = json.loads(said.body)
        except ValueError:
            return answer(said.status, said.body + key.encode(), headers)
        words = {
            "message": f"Invalid API key: {key}.",
            "errors": {key: [f"{key} is not active"], "key": [key]},
        }
        return answer(said.status, {**tree, **words}, headers)

    return step
