"""Every blocking method hands exactly what it was given to its twin, and nothing more."""

from __future__ import annotations

import importlib
import inspect
from typing import Any
from unittest.mock import MagicMock

import pytest

from payments_sync import Payments
from payments_sync.bulk import PayoutBatch

RESOURCES = {
    "checkouts": "Checkouts",
    "methods": "Methods",
    "payment_intents": "PaymentIntents",
    "payouts": "Payouts",
}


def resource(module: str) -> type[Any]:
    cls: type[Any] = getattr(importlib.import_module(f"payments_sync.resources.{module}"), RESOURCES[module])
    return cls


def methods(cls: type[Any]) -> list[str]:
    return [name for name, _ in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("_")]


class StraightBridge:
    """Calls on the spot, and notes which way was taken."""

    def __init__(self) -> None:
        self.ways: list[str] = []

    def call(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        self.ways.append("call")
        return func(*args, **kwargs)

    def iterate(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        self.ways.append("iterate")
        return func(*args, **kwargs)


def arguments(method: Any) -> tuple[list[str], dict[str, str]]:
    """A value of its own for each parameter, and one keyword more where any are taken."""
    positional, named = [], {}
    for parameter in inspect.signature(method).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            named["anything"] = "anything"
        elif parameter.kind is parameter.KEYWORD_ONLY:
            named[parameter.name] = parameter.name
        else:
            positional.append(parameter.name)
    return positional, named


def forwarded(surface: Any, name: str, twin: MagicMock) -> None:
    positional, named = arguments(getattr(surface, name))
    answer = getattr(surface, name)(*positional, **named)
    expected = getattr(twin, name)
    expected.assert_called_once_with(*positional, **named)
    assert answer is expected.return_value


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module in RESOURCES for name in methods(resource(module))]
)
def test_a_resource_forwards(module: str, name: str) -> None:
    twin, bridge = MagicMock(), StraightBridge()
    forwarded(resource(module)(twin, bridge), name, twin)
    assert bridge.ways == {"iterate": ["iterate"], "prepare": []}.get(name, ["call"])


class BatchBridge(StraightBridge):
    """The ways that only a batch takes, too."""

    call_with_rows = StraightBridge.call

    def call_and_drain(self, drain: Any, func: Any, /, *args: Any, **kwargs: Any) -> Any:
        assert drain == kwargs["drain"]
        return func(*args, **kwargs)

    def call_soon(self, order: Any, *args: Any, **kwargs: Any) -> Any:
        order(*args, **kwargs)


@pytest.mark.parametrize("name", sorted(set(methods(PayoutBatch)) - {"stop"}))
def test_a_batch_forwards(name: str) -> None:
    batch: Any = object.__new__(PayoutBatch)
    batch._async, batch._bridge = MagicMock(), BatchBridge()
    forwarded(batch, name, batch._async)


def test_a_batch_forwards_orders() -> None:
    batch: Any = object.__new__(PayoutBatch)
    batch._async, batch._bridge = MagicMock(), BatchBridge()
    assert batch.stop("enough") is None
    batch._async.stop.assert_called_once_with("enough")


@pytest.mark.parametrize("name", ["request", "send", "resolve", "limits_snapshot"])
def test_the_client_forwards(name: str) -> None:
    twin, client = MagicMock(), object.__new__(Payments)
    client._assemble(twin, StraightBridge())  # type: ignore[arg-type] # of which only this is used
    forwarded(client, name, twin)
