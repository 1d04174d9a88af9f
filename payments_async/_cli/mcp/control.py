"""Asks a sandbox on this machine through its control API: which address, and the answer to a tool's call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from ...errors import ConfigurationError
from ...models._masking import without_keys
from ..webhooks.forward import (
    DEFAULT_SANDBOX,
    MAX_ANSWER,
    TIMEOUT,
    ForwardAddress,
    read_address,
    sandbox_key,
    send,
)
from .tools import ControlRequest, check_lengths, find_tool, request_of

_THIS_MACHINE: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_CONTROL_API: Final = "/_sandbox/api/"
_STATE: Final = ControlRequest("GET", "state")
_START: Final = "start one with `payments sandbox`, and pass the address that it prints as --sandbox"

_LOOK: Final = "it may have been carried out: look before you repeat it"
_WRITE_TIMEOUT: Final = 30.0
"""Seconds: a clock that is advanced by a day has much to do."""


@attrs.frozen
class ToolAnswer:
    """The answer to a tool's call: JSON of the control API, or what is wrong and what to do."""

    text: str
    failed: bool = False


def find_sandbox(given: str | None, environment: Mapping[str, str]) -> ForwardAddress:
    """The address of the sandbox to ask; nothing is sent yet.

    Raises ConfigurationError for a live key in the environment, and for an address not on this machine.
    """
    if "sk_live_" in environment.get("PAYMENTS_API_KEY", "").lower():
        raise ConfigurationError(
            "payments mcp is for a sandbox only, and PAYMENTS_API_KEY is a live key: start it without that "
            "variable (in the settings of the agent's program, or with `env -u PAYMENTS_API_KEY`)"
        )
    named = "--sandbox" if given else "PAYMENTS_BASE_URL"
    address = read_address(
        given or environment.get("PAYMENTS_BASE_URL") or DEFAULT_SANDBOX, named, DEFAULT_SANDBOX
    )
    if address.scheme != "http" or address.host not in _THIS_MACHINE:
        raise ConfigurationError(
            f"{named} names {address.scheme}://{address.host}, and a sandbox is on this machine, such as "
            f"{DEFAULT_SANDBOX}: {_START}"
        )
    return address


def answer_call(
    address: ForwardAddress, name: str, arguments: Mapping[str, Any], *, may_write: bool
) -> ToolAnswer:
    """Answer a tool's call. Secret keys are masked, account data as the control API masks it."""
    try:
        check_lengths(name, arguments)
        request = request_of(find_tool(name, may_write=may_write), arguments)
        _check_sandbox(address)
        status, text = _ask(address, request)
    except ValueError as wrong:
        return ToolAnswer(without_keys(str(wrong)), failed=True)
    return ToolAnswer(without_keys(text), failed=not 200 <= status < 300)


def _check_sandbox(address: ForwardAddress) -> None:
    """ValueError unless a sandbox answers there: asked before each call, as it may have been replaced."""
    status, text = _ask(address, _STATE)
    try:
        state = json.loads(text)
    except ValueError:
        state = None
    if status != 200 or not isinstance(state, dict) or not {"profile", "clock", "journal"} <= state.keys():
        raise ValueError(f"what answers at {address.place} is not a payments sandbox: {_START}")


def _ask(address: ForwardAddress, request: ControlRequest) -> tuple[int, str]:
    """Status and text of the answer; ValueError without one, and for one that is too long."""
    writes = request.method != "GET"
    timeout = _WRITE_TIMEOUT if writes else TIMEOUT
    target = attrs.evolve(address, path=_CONTROL_API + request.path)
    headers = {"Content-Type": "application/json"} if request.body is not None else {}
    try:
        status, body = send(
            request.method, target, request.body, {**headers, **sandbox_key(address)}, timeout=timeout
        )
    except TimeoutError as failure:
        problem = f"no answer from {address.place} in {timeout:g} s"
        raise ValueError(f"{problem}: {_LOOK if writes else 'the sandbox is busy; ask again'}") from failure
    except OSError as failure:
        problem = f"no sandbox answers at {address.place} ({failure.strerror or failure})"
        raise ValueError(f"{problem}: {_START}") from failure
    if len(body) > MAX_ANSWER:
        fewer = "ask for fewer with `limit`" if "limit=" in request.path else "look into the inspector"
        raise ValueError(f"the answer is longer than 1 MiB: {_LOOK if writes else fewer}")
    return status, body.decode("utf-8", "replace")
