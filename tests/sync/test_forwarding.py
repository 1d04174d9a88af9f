"""Every blocking method hands exactly what it was given to its twin; `iterate` is a plain generator."""

from __future__ import annotations

import importlib
import inspect
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any
from unittest.mock import MagicMock

import pytest

from payments_async.errors import ConfigurationError
from payments_async.sandbox import Sandbox
from payments_sync import Payments
from payments_sync.bulk import PayoutBatch
from tests.sync.scenes import loop_threads, payout

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


@pytest.fixture
def full(client: Payments) -> Payments:
    """A client of a service with five payouts."""
    for number in range(5):
        client.payouts.create(**payout(f"r-{number}"))
    return client


class Watched:
    """An asynchronous generator of numbers that tells when it is closed, and in which thread."""

    def __init__(self) -> None:
        self.closed = threading.Event()
        self.thread = ""

    async def numbers(self) -> AsyncIterator[int]:
        try:
            for number in range(10):
                yield number
        finally:
            self.thread = threading.current_thread().name
            self.closed.set()


@pytest.mark.parametrize("way", ["close", "forget", "break"])
def test_an_abandoned_iteration_is_closed_on_the_loop(client: Payments, way: str) -> None:
    watched = Watched()
    items: Iterator[int] | None = client._bridge.iterate(watched.numbers)
    if way == "break":
        for _ in client._bridge.iterate(watched.numbers):
            break
    else:
        assert items is not None
        assert next(items) == 0
        if way == "close":
            items.close()  # type: ignore[attr-defined] # it is a generator
    items = None
    assert watched.closed.wait(300)
    assert watched.thread == "payments-sync"


def test_any_asynchronous_iterator_can_be_walked(client: Payments) -> None:
    class Once:
        def __init__(self) -> None:
            self.left = [1]

        def __aiter__(self) -> Once:
            return self

        async def __anext__(self) -> int:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop()

    assert list(client._bridge.iterate(Once)) == [1]


def test_closing_in_the_middle_is_an_error_and_never_a_short_list(full: Payments) -> None:
    items = full.payouts.iterate(page_size=2)
    next(items)
    full.close()
    with pytest.raises(ConfigurationError, match="begin it again"):
        list(items)


def test_an_iteration_given_up_after_the_close_starts_nothing(full: Payments) -> None:
    items = full.payouts.iterate(page_size=2)
    next(items)
    full.close()
    del items
    assert loop_threads() == []


def test_an_iteration_outlives_the_name_of_its_client(sandbox: Sandbox, full: Payments) -> None:
    items = Payments(sandbox.api_key, base_url=sandbox.base_url).payouts.iterate(page_size=2)
    assert len(list(items)) == 5
