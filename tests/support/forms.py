"""The forms of every record, each read through the client from a scripted answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import pytest

from tests.support.bodies import Json, encoded
from tests.support.calls import OPERATIONS
from tests.support.jumping import JumpingRuntime
from tests.support.scripted import ScriptedTransport, answer

Connect = Callable[..., Any]


@attrs.frozen
class Form:
    """A record as one operation carries it; `path` leads to it from what the call returns."""

    operation: str
    path: str = ""


FORMS: Mapping[str, Form] = {
    "attempt": Form("payment_intents.retrieve_attempt"),
    "attempt in a created intent": Form("payment_intents.create", "active_attempt"),
    "attempt in a created checkout": Form("checkouts.create", "payment.active_attempt"),
    "attempt in a checkout": Form("checkouts.retrieve", "payment.active_attempt"),
    "attempt in the list": Form("payment_intents.list", "items.0.active_attempt"),
    "created intent": Form("payment_intents.create"),
    "intent of a created checkout": Form("checkouts.create", "payment"),
    "intent of a checkout": Form("checkouts.retrieve", "payment"),
    "intent in the list": Form("payment_intents.list", "items.0"),
    "created checkout": Form("checkouts.create", "checkout"),
    "checkout": Form("checkouts.retrieve", "checkout"),
    "created payout": Form("payouts.create"),
    "payout in the list": Form("payouts.list", "items.0"),
    "synced payout": Form("payouts.sync"),
    "refund availability": Form("payment_intents.refund_availability"),
    "payouts page": Form("payouts.list", "pagination"),
    "intents page": Form("payment_intents.list", "pagination"),
    "method status": Form("methods.status"),
    "requery": Form("payment_intents.requery"),
    "attempt inspection": Form("payment_intents.inspect_attempt"),
    "payout inspection": Form("payouts.inspect"),
}

ATTEMPTS_ALONE = (
    "attempt",
    "attempt in a created intent",
    "attempt in a created checkout",
    "attempt in a checkout",
)
ATTEMPTS = (*ATTEMPTS_ALONE, "attempt in the list")
INTENTS_ALONE = ("created intent", "intent of a created checkout", "intent of a checkout")
INTENTS = (*INTENTS_ALONE, "intent in the list")
CHECKOUTS = ("created checkout", "checkout")
PAYOUTS = ("created payout", "payout in the list", "synced payout")
PAGES = ("payouts page", "intents page")


def at(value: Any, path: str) -> Any:
    """What lies at a dotted path of attributes and indices."""
    for name in filter(None, path.split(".")):
        value = value[int(name)] if name.isdigit() else getattr(value, name)
    return value


async def call(
    connect: Connect, operation: str, body: Json | bytes, status: int = 200, **headers: str
) -> Any:
    """What the operation returns for one answer."""
    raw = body if isinstance(body, bytes) else encoded(body)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    transport = ScriptedTransport(answer(status, raw, names))
    client = connect(transport=transport, runtime=JumpingRuntime(), max_retries=0)
    return await OPERATIONS[operation].call(client)


async def read(connect: Connect, name: str, body: Json | None = None) -> Any:
    """The record in one of its forms, from the full example body unless another is given."""
    form = FORMS[name]
    return at(await call(connect, form.operation, body or OPERATIONS[form.operation].body), form.path)


def exactly(value: Any, expected: Any) -> bool:
    """Equal and of the same type, all the way down."""
    if type(value) is not type(expected):
        return False
    if isinstance(expected, tuple | list):
        return len(value) == len(expected) and all(map(exactly, value, expected))
    if isinstance(expected, dict):
        return value.keys() == expected.keys() and all(exactly(value[k], v) for k, v in expected.items())
    return bool(value == expected)


def rows(forms: Iterable[str], facts: str, table: Mapping[str, Any], at: str = "") -> list[Any]:
    """Parameters (form, path, expected) for each form and each row; a row `x` proves the fact `<facts>.x`."""
    return [
        pytest.param(
            form,
            f"{at}.{path}" if at else path,
            expected,
            id=f"{form}: {at}.{path}" if at else f"{form}: {path}",
            marks=pytest.mark.fact(f"{facts}.{path}"),
        )
        for form in forms
        for path, expected in table.items()
    ]
