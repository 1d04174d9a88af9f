"""The tools for agents: each is one route of the sandbox's control API. Pure: a call in, a request out.

No argument of a tool reveals account data or takes an API key, so answers are masked as the inspector's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

import attrs

Schema = Mapping[str, Any]

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)
_SHOWN: Final = 20
_LONGEST: Final = 4_000
"""Characters of an argument as JSON, as of a scenario."""
_TEXT: Final[Schema] = {"type": "string", "maxLength": _LONGEST}
_LIMIT: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": 500, "default": _SHOWN}
_TIMES: Final[Schema] = {"type": "integer", "minimum": 0}


def _text(what: str) -> Schema:
    return {**_TEXT, "description": what}


@attrs.frozen
class ControlTool:
    """One tool: what an agent reads of it, and the route that it calls."""

    name: str
    what: str
    method: str
    path: str
    """Below `/_sandbox/api/`; a parameter in braces is a required argument."""
    arguments: Mapping[str, Schema] = attrs.field(factory=dict)
    required: tuple[str, ...] = ()

    @property
    def writes(self) -> bool:
        """True if it changes the sandbox."""
        return self.method != "GET"

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


TOOLS: Final[tuple[ControlTool, ...]] = (
    ControlTool("state", "The sandbox's address, profile, clock and keys (by fingerprint).", "GET", "state"),
    ControlTool(
        "requests",
        "The request log, newest first: operation, status, idempotency key, fault. Start here when a program "
        "misbehaves, then look at one with `request`.",
        "GET",
        "requests",
        {"operation": _text("only these, such as payouts.create"), "limit": _LIMIT},
    ),
    ControlTool(
        "request",
        "One request with headers and bodies, and the reason why it failed. Account data is masked.",
        "GET",
        "requests/{id}",
        {"id": _text("a request's id, from `requests` or from a finding")},
        ("id",),
    ),
    ControlTool(
        "advice",
        "Mistakes that the Advisor found in how the program uses the service: what is wrong, why it matters, "
        "how to correct it, and the ids of the requests and webhooks that show it. Those that endanger money "
        "come first. `watched` counts webhooks that may still be read back in time.",
        "GET",
        "advice",
    ),
    ControlTool(
        "payouts",
        "Payouts, newest first.",
        "GET",
        "payouts",
        {"status": _text("pending, processing, completed or failed"), "limit": _LIMIT},
    ),
    ControlTool("payout", "One payout.", "GET", "payouts/{id}", {"id": _text("its id, po_…")}, ("id",)),
    ControlTool(
        "payments",
        "Payments, newest first, with their checkout session, attempts and refunds.",
        "GET",
        "payments",
        {"status": _text("pending, completed, failed, expired, …"), "limit": _LIMIT},
    ),
    ControlTool(
        "payment",
        "One payment with its checkout session, attempts and refunds.",
        "GET",
        "payments/{id}",
        {"id": _text("the id of the payment, or of its checkout session")},
        ("id",),
    ),
    ControlTool(
        "webhooks",
        "Webhook deliveries, newest first: the event, where it went, each try with status or error, and why "
        "one was refused.",
        "GET",
        "webhooks",
        {"limit": _LIMIT},
    ),
    ControlTool(
        "books",
        "What the service really paid out and collected, by currency, with the number of records in each "
        "status. Compare it with what the program believes.",
        "GET",
        "books",
    ),
    ControlTool("rules", "The fault rules that are set, and how often each has been used.", "GET", "rules"),
    ControlTool(
        "set_rule",
        "Make requests of an operation fail or end otherwise, to see how the program takes it. Words are "
        "faults (http:503, 429:10s, lost_response, slow:2s), outcomes (fail:INVALID_RECIPIENT, hang) or what "
        "becomes of webhooks (drop, duplicate); a word that is not known is answered with those near it.",
        "POST",
        "rules",
        {
            "operation": _text("such as payouts.create, or payouts.*"),
            "words": _text("such as lost_response, or fail:INVALID_RECIPIENT after=10s"),
            "match": {"type": "object", "description": 'path, query and body values: {"reference": "r-1"}'},
            "times": {**_TIMES, "description": "how many requests; a fault hits one unless given"},
            "after": {**_TIMES, "description": "how many requests to leave alone first"},
        },
        ("operation", "words"),
    ),
    ControlTool(
        "remove_rule",
        "Forget a fault rule.",
        "DELETE",
        "rules/{id}",
        {"id": _text("the rule's id, from `rules`")},
        ("id",),
    ),
    ControlTool(
        "advance_clock",
        "Skip sandbox time; says what fell due. Records end and webhooks leave on the way.",
        "POST",
        "clock/advance",
        {"by": _text("a duration such as 30s, 5m or 24h")},
        ("by",),
    ),
    ControlTool(
        "pay",
        "Pay a payment as its payer, or answer the attempt that waits for one.",
        "POST",
        "payments/{id}/pay",
        {
            "id": _text("the id of the payment, or of its checkout session"),
            "method": _text("sandbox_mobile unless given"),
            "country": _text("two letters"),
            "outcome": _text("complete unless given; fail:CUSTOMER_DECLINED, action:collect_otp, expire"),
        },
        ("id",),
    ),
)
"""In the order in which an agent needs them; those that write come last."""


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
    path = tool.path
    if "{id}" in path:
        path = path.replace("{id}", _checked_id(rest.pop("id")))
    if tool.method == "POST":
        return ControlRequest("POST", path, json.dumps(rest).encode())
    if "limit" in tool.arguments:
        rest.setdefault("limit", _SHOWN)
    return ControlRequest(tool.method, f"{path}?{urlencode(rest)}" if rest else path)


def _checked_id(value: object) -> str:
    if not isinstance(value, str) or _ID.fullmatch(value) is None:
        raise ValueError("id must be an id as the sandbox shows it, such as po_…, pi_… or rule_1")
    return value
