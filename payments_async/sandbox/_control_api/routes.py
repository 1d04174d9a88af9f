"""The table of the control API: a method and path, the function that answers it, and its name as a tool."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, Final, get_type_hints

import attrs
import msgspec

from .._common.json import JsonObject
from .._controls import SandboxControls
from . import clock, records, requests, rules, try_it

_ID: Final = r"(?P<\1>[A-Za-z0-9_-]{1,128})"


@attrs.frozen
class Route:
    """One method and path below `/_sandbox/api/`."""

    method: str
    path: str
    run: Callable[..., Any]
    """A method of the handle, or a function of it. The first paragraph of its docstring says what it does."""
    tool: str = ""
    """Its name among the tools for coding agents; empty for a route that is none."""
    status: int = 200
    pattern: re.Pattern[str] = attrs.field(init=False, repr=False)
    arguments: type[msgspec.Struct] = attrs.field(init=False, repr=False)
    """What it takes: the ids of its path, and members of the query string of a GET or the body of a POST."""

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "pattern", re.compile(re.sub(r"\{(\w+)\}", _ID, self.path), re.ASCII))
        object.__setattr__(self, "arguments", _arguments(self))

    @property
    def what(self) -> str:
        """What it does."""
        return " ".join((self.run.__doc__ or "").partition("\n\n")[0].split())

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        (whole,) = msgspec.json.schema(self.arguments)["$defs"].values()
        return {**whole, "additionalProperties": False}


def _arguments(route: Route) -> type[msgspec.Struct]:
    """The function's parameters after the first, as a struct that msgspec reads and describes."""
    hints = get_type_hints(route.run, include_extras=True)
    _, *parameters = inspect.signature(route.run).parameters.values()
    fields = [
        (one.name, hints[one.name]) if one.default is one.empty else (one.name, hints[one.name], one.default)
        for one in parameters
    ]
    # a page adds names to a query; an unknown one in a body is a misspelt one
    return msgspec.defstruct(
        route.path or "index", fields, forbid_unknown_fields=route.method != "GET", kw_only=True
    )


def _index(_: SandboxControls) -> JsonObject:
    """This list."""
    lines = [
        {"method": one.method, "path": one.path, "what": one.what, "takes": one.arguments.__struct_fields__}
        for one in ROUTES
    ]
    return {"routes": lines}


ROUTES: Final[tuple[Route, ...]] = (
    Route("GET", "", _index),
    Route("GET", "state", clock.state, tool="state"),
    Route("GET", "requests", requests.requests, tool="requests"),
    Route("GET", "requests/{id}", requests.request, tool="request"),
    Route("GET", "requests/{id}/code", requests.code),
    Route("GET", "advice", clock.advice, tool="advice"),
    Route("GET", "payouts", records.payouts, tool="payouts"),
    Route("GET", "payouts/{id}", records.payout, tool="payout"),
    Route("GET", "payments", records.payments, tool="payments"),
    Route("GET", "payments/{id}", records.payment, tool="payment"),
    Route("POST", "payments/{id}/pay", records.pay, tool="pay"),
    Route("POST", "payments/{id}/refund", records.refund, tool="refund", status=201),
    Route("POST", "records/{record_id}/settle", SandboxControls.settle, tool="settle"),
    Route("GET", "webhooks", records.webhooks, tool="webhooks"),
    Route("GET", "webhooks/{id}", records.webhook),
    Route("POST", "webhooks/{id}/resend", records.resend, status=201),
    Route("POST", "webhooks/forge", records.forge, status=201),
    Route("GET", "books", records.books, tool="books"),
    Route("GET", "rules", rules.rules, tool="rules"),
    Route("POST", "rules", rules.add_rule, tool="set_rule", status=201),
    Route("DELETE", "rules", SandboxControls.clear_rules),
    Route("DELETE", "rules/{id}", rules.remove_rule, tool="remove_rule"),
    Route("POST", "clock/advance", clock.advance, tool="advance_clock"),
    Route("POST", "clock/speed", clock.speed),
    Route("POST", "keys", clock.new_key, status=201),
    Route("POST", "reset", SandboxControls.reset),
    Route("POST", "try/checkout", try_it.checkout, status=201),
    Route("POST", "try/payout", try_it.payout, status=201),
)
"""In the order in which an agent needs its tools."""
