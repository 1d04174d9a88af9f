"""Applies faults: to a request before it is carried out, or to its answer afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

from msgspec.structs import replace

from .._common.json import decode, encode
from .._common.scenario_words import Fault
from .._common.values import Answer, Cut, Drop, Hang, LineFault, RequestRefused, Reset, Slow
from .request_schemas import INVALID

_BEFORE: Mapping[str, LineFault] = {"hang": Hang(), "reset": Reset(), "lost_request": Drop()}
"""Faults that keep the request from being carried out."""


def before(fault: Fault) -> Answer | None:
    """Make the answer that replaces carrying the request out; None when it is carried out all the same.

    `RequestRefused` for `http:<status>`; `429` is the core's, which knows the headers.
    """
    if fault.kind == "http":
        errors = (
            {"sandbox": ["The sandbox was asked to refuse this request."]} if fault.status == 422 else None
        )
        raise RequestRefused(
            fault.status, INVALID if errors else f"Sandbox fault: HTTP {fault.status}.", errors
        )
    line = _BEFORE.get(fault.kind)
    return None if line is None else Answer(0, {}, b"", line)


def after(fault: Fault, answer: Answer) -> Answer:
    """Apply a fault to the answer of a request that was carried out."""
    return _AFTER[fault.kind](fault, answer)


def _twist(value: object) -> object:
    """Give every value except identifiers another JSON type."""
    if isinstance(value, list):
        return [_twist(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: item if name == "id" else _twist(item) if _holds_id(item) else _other_type(item)
        for name, item in value.items()
    }


def _holds_id(value: object) -> bool:
    if isinstance(value, list):
        return any(_holds_id(item) for item in value)
    return isinstance(value, dict) and ("id" in value or any(_holds_id(item) for item in value.values()))


def _other_type(value: object) -> object:
    if isinstance(value, str):
        return {"text": value}
    return "not a number" if isinstance(value, (int, Decimal)) else 7


_AFTER: Mapping[str, Callable[[Fault, Answer], Answer]] = {
    "slow": lambda fault, answer: replace(answer, fault=Slow(fault.seconds)),
    "lost_response": lambda _, answer: replace(answer, fault=Drop()),
    "cut_body": lambda _, answer: replace(answer, fault=Cut(len(answer.body) // 2)),
    "bad_json": lambda _, answer: replace(answer, body=b"<html>" + answer.body),
    "wrong_type": lambda _, answer: replace(answer, body=encode(_twist(decode(answer.body)))),
    "empty": lambda _, answer: replace(answer, body=b""),
}
