"""What a call that goes well does without: it is awaited by nobody but its caller, and leaves nothing behind.

The async client alone: the blocking one hands its calls to a loop of its own.
"""

from __future__ import annotations

import gc
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from payments_async import AsyncPayments, Payout
from tests.support import bodies, creations
from tests.support.scripted import answer

INSTRUMENT = {**bodies.INSTRUMENT, **creations.PAYOUT["instrument"].to_dict(), "account_number": None}
SHOWN = {"amount": bodies.amount("50"), "reference": None, "instrument": INSTRUMENT}
PAID = {"message": "ok", "data": {**bodies.PAYOUT, **SHOWN}}
ANSWER = answer(201, bodies.encoded(PAID))


class AtOnce:
    """A transport that answers without waiting."""

    async def send(self, request: Any) -> Any:
        request.sent = True
        return ANSWER

    async def aclose(self) -> None:
        """Nothing to close."""


@pytest.fixture
def client() -> AsyncPayments:
    return AsyncPayments("sk_sandbox_good_path", base_url="http://127.0.0.1:9/v1", transport=AtOnce())


def driven(call: Coroutine[Any, Any, Any]) -> Any:
    """The call's result, without an event loop; it fails if the call waits for anything."""
    try:
        call.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits for something")


@contextmanager
def no_collecting() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("options", [{}, {"deadline": 5.0}, {"timeout": 3.0, "max_retries": 0}])
def test_a_call_needs_no_task_no_timer_and_no_future(client: AsyncPayments, options: dict[str, Any]) -> None:
    """There is no event loop here that could make one."""
    payout = driven(client.payouts.create(**creations.PAYOUT, **options))
    assert isinstance(payout, Payout)
    assert payout.response is not None
    assert [attempt.verdict for attempt in payout.response.attempts] == ["executed"]


def test_a_call_leaves_no_cycle_for_the_collector(client: AsyncPayments) -> None:
    driven(client.payouts.create(**creations.PAYOUT))
    found = []
    for _ in range(3):
        with no_collecting():
            for _ in range(50):
                driven(client.payouts.create(**creations.PAYOUT))
            found.append(gc.collect())
    assert min(found) < 50, "a cycle in every call"  # threads of other tests may leave some meanwhile
