"""The tools for agents, generated from the control API's table, and the answer to a call of one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

import attrs

from ...errors import ConfigurationError
from ...models._masking import without_keys
from ...sandbox._control_api.routes import ROUTES, Route
from .._exit_codes import CommandEnded
from ..webhooks.forward import ForwardAddress, ask_sandbox

TOOLS: Final = {
    route.tool: route for route in sorted(ROUTES, key=lambda one: one.method != "GET") if route.tool
}
"""By name; those that write come last."""
_WITHHELD: Final = frozenset({"reveal", "api_key", "phone"})
"""None reveals account data or takes a key, so answers are masked as the inspector's."""
_TIMEOUT: Final = 30.0
"""Seconds: a clock that is advanced by a day has much to do."""


@attrs.frozen
class ToolAnswer:
    """The answer to a tool's call: JSON of the control API, or what is wrong and what to do."""

    text: str
    failed: bool


def schema_of(route: Route) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments."""
    offered = {name: each for name, each in route.schema["properties"].items() if name not in _WITHHELD}
    return {**route.schema, "properties": offered}


def refuse_live_key() -> None:
    """Raise ConfigurationError for a live key."""
    if "sk_live_" in os.environ.get("PAYMENTS_API_KEY", "").lower():
        raise ConfigurationError(
            "payments mcp is for a sandbox only, and PAYMENTS_API_KEY is a live key: start it without that "
            "variable (in the settings of the agent's program, or with `env -u PAYMENTS_API_KEY`)"
        )


def answer_call(
    address: ForwardAddress, name: str, given: Mapping[str, Any], *, may_write: bool
) -> ToolAnswer:
    """Answer a tool's call. Secret keys are masked, account data as the control API masks it."""
    try:
        request = _request(name, given, may_write=may_write)
        status, text = ask_sandbox(address, *request, timeout=_TIMEOUT)
    except (ValueError, CommandEnded) as wrong:
        return ToolAnswer(without_keys(str(wrong)), failed=True)
    return ToolAnswer(without_keys(text), failed=not 200 <= status < 300)


def _request(name: str, given: Mapping[str, Any], *, may_write: bool) -> tuple[str, str, bytes | None]:
    """Method, path and body of a call; ValueError, with what to do. The control API checks the values."""
    route = TOOLS.get(name)
    if route is None:
        raise ValueError(f"there is no tool {name[:80]!r}; there are {', '.join(TOOLS)}")
    if route.method != "GET" and not may_write:
        raise ValueError(
            f"{name} changes the sandbox, and this server only reads: start `payments mcp --write`"
        )
    known = schema_of(route)["properties"]
    if unknown := [argument for argument in given if argument not in known]:
        raise ValueError(f"{name} has no argument {unknown[0][:80]!r}; it takes {', '.join(known) or 'none'}")
    if missing := [one for one in route.pattern.groupindex if not given.get(one)]:
        raise ValueError(f"{name} needs {missing[0]}")
    ids = {one: quote(str(given[one]), safe="") for one in route.pattern.groupindex}
    path = route.path.format_map(ids)
    rest = {one: value for one, value in given.items() if one not in ids and value is not None}
    if route.method == "POST":
        return "POST", path, json.dumps(rest).encode()
    return route.method, f"{path}?{urlencode(rest)}", None
