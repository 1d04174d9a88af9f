"""The tools for agents, made from the control API's table of routes. Pure: a call in, a request out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

import attrs

from ...sandbox._control_api.routes import ROUTES, Route
from ...sandbox._records.records import PAYMENT_STATES, PAYOUT_STATES

_SHOWN: Final = 20
_LONGEST: Final = 4_000
"""Characters of an argument as JSON, as of a scenario."""

_NOT_OFFERED: Final = frozenset({"reveal", "api_key", "phone", "as"})
"""None reveals account data or takes a key, so answers are masked as the inspector's."""


def _text(what: str) -> Mapping[str, Any]:
    return {"type": "string", "maxLength": _LONGEST, "description": what}


def _count(what: str) -> Mapping[str, Any]:
    return {"type": "integer", "minimum": 0, "description": what}


_SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "request id": _text("the id of a request, as `requests` lists it"),
    "payout id": _text("the id of a payout"),
    "payment id": _text("the id of a payment, or of its checkout session"),
    "pay id": _text("the id of a payment, or of its checkout session"),
    "remove_rule id": _text("the id of a rule, such as rule_1"),
    "requests operation": _text("only requests of this operation, such as payouts.create"),
    "set_rule operation": _text("the requests that it meets: payouts.create, payouts.*"),
    "payouts status": _text(f"only these: {', '.join(PAYOUT_STATES)}"),
    "payments status": _text(f"only these: {', '.join(PAYMENT_STATES)}"),
    "limit": {"type": "integer", "minimum": 1, "maximum": 500, "default": _SHOWN},
    "words": _text("such as lost_response, or fail:INVALID_RECIPIENT after=10s"),
    "match": {"type": "object", "description": 'path, query and body values: {"reference": "r-1"}'},
    "times": _count("how many requests; a fault hits one unless given"),
    "after": _count("how many requests to leave alone first"),
    "by": _text("a duration such as 30s, 5m or 24h"),
    "method": _text("sandbox_mobile unless given"),
    "country": _text("two letters"),
    "outcome": _text("complete unless given; fail:CUSTOMER_DECLINED, action:collect_otp, expire"),
}
"""Each argument, after the name of its tool where it differs between tools."""


@attrs.frozen
class ControlTool:
    """One tool: a route of the control API."""

    route: Route

    @property
    def name(self) -> str:
        """Its name."""
        return self.route.tool

    @property
    def writes(self) -> bool:
        """True if it changes the sandbox."""
        return self.route.method != "GET"

    @property
    def required(self) -> tuple[str, ...]:
        """The arguments that a call must have."""
        return (*self.route.pattern.groupindex, *self.route.needs)

    @property
    def arguments(self) -> Mapping[str, Mapping[str, Any]]:
        """The JSON Schema of each argument, the required ones first."""
        names = (*self.required, *self.route.takes)
        return {
            name: _SCHEMAS.get(f"{self.name} {name}") or _SCHEMAS[name]
            for name in names
            if name not in _NOT_OFFERED
        }

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        return {
            "type": "object",
            "properties": dict(self.arguments),
            "required": [*self.required],
            "additionalProperties": False,
        }


@attrs.frozen
class ControlRequest:
    """A request to the control API."""

    method: str
    path: str
    """Below `/_sandbox/api/`, with the query string."""
    body: bytes | None = None


TOOLS: Final = sorted((ControlTool(route) for route in ROUTES if route.tool), key=lambda tool: tool.writes)
"""In the order of the table; those that write come last."""


def offered(*, may_write: bool) -> list[ControlTool]:
    """The tools of a server that may write, or may not."""
    return [tool for tool in TOOLS if may_write or not tool.writes]


def check_lengths(name: str, arguments: Mapping[str, Any]) -> None:
    """ValueError for a call with a text that is too long: a message would repeat it."""
    if any(len(text) > _LONGEST for text in (name, *arguments, *map(_as_json, arguments.values()))):
        raise ValueError(f"a tool's name and each argument have {_LONGEST:,} characters at most")


def _as_json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def find_tool(name: str, *, may_write: bool) -> ControlTool:
    """The tool of this name; ValueError, with what to do, for one that is not offered."""
    for tool in TOOLS:
        if tool.name == name:
            if tool.writes and not may_write:
                raise ValueError(
                    f"{name} changes the sandbox, and this server only reads: start `payments mcp --write`"
                )
            return tool
    names = ", ".join(tool.name for tool in offered(may_write=may_write))
    raise ValueError(f"there is no tool {name!r}; there are {names}")


def request_of(tool: ControlTool, arguments: Mapping[str, Any]) -> ControlRequest:
    """A call as a request; ValueError for arguments that the tool does not take, or lacks.

    The control API checks the values.
    """
    if unknown := [name for name in arguments if name not in tool.arguments]:
        takes = ", ".join(tool.arguments) or "none"
        raise ValueError(f"{tool.name} has no argument {unknown[0]!r}; it takes {takes}")
    if missing := [name for name in tool.required if arguments.get(name) is None]:
        raise ValueError(f"{tool.name} needs {' and '.join(missing)}")
    rest = {name: value for name, value in arguments.items() if value is not None}
    path = tool.route.path
    for name in tool.route.pattern.groupindex:
        value = rest.pop(name)
        path = path.replace(f"{{{name}}}", value if isinstance(value, str) else "")
    if tool.route.pattern.fullmatch(path) is None:
        raise ValueError("id must be an id as the sandbox shows it, such as po_…, pi_… or rule_1")
    if tool.route.method == "POST":
        return ControlRequest("POST", path, json.dumps(rest).encode())
    if "limit" in tool.arguments:
        rest.setdefault("limit", _SHOWN)
    return ControlRequest(tool.route.method, f"{path}?{urlencode(rest)}" if rest else path)
