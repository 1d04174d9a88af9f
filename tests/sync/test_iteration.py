"""A blocking iteration is a plain generator, whose asynchronous one lives on the loop."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from payments_async.errors import ConfigurationError
from payments_async.sandbox import Sandbox
from payments_sync import Payments
from tests.sync.scenes import payout


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


def test_closing_in_the_middle_is_an_error_and_never_a_short_list(full: Payments) -> None:
    items = full.payouts.iterate(page_size=2)
    next(items)
    full.close()
    with pytest.raises(ConfigurationError, match="begin it again"):
        list(items)


def test_an_iteration_outlives_the_name_of_its_client(sandbox: Sandbox, full: Payments) -> None:
    items = Payments(sandbox.api_key, base_url=sandbox.base_url).payouts.iterate(page_size=2)
    assert len(list(items)) == 5
