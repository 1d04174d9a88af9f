"""A checkout whose payment does not say which one it is: not final, however often it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from payments_async.errors import WaitTimeout
from tests.support.jumping import JumpingRuntime
from tests.support.scripted import ScriptedTransport, answer

Connect = Callable[..., Any]
ENDED = {"id": None, "completed_at": "2026-01-01T00:00:00Z"}


def read(payment: Any) -> Any:
    return answer(200, {"data": {"checkout": {"id": "cs_1"}, "payment": payment}})


@pytest.mark.parametrize("payment", [None, {"id": None}])
async def test_it_is_read_again_until_the_time_is_over(connect: Connect, payment: Any) -> None:
    transport, runtime = ScriptedTransport(read(payment)), JumpingRuntime()
    client = connect(transport=transport, runtime=runtime)
    with pytest.raises(WaitTimeout) as caught:
        await client.checkouts.wait("cs_1", deadline=20.0)
    assert caught.value.last.id == "cs_1"
    assert 2 <= len(transport.flights) <= 4
    assert 20.0 <= runtime.monotonic() < 21.0


@pytest.mark.parametrize("payment", [ENDED, {**ENDED, "id": "pi_1"}])
async def test_a_final_payment_ends_the_wait(connect: Connect, payment: Any) -> None:
    transport = ScriptedTransport(read(None), read(payment))
    client = connect(transport=transport, runtime=JumpingRuntime())
    assert (await client.checkouts.wait("cs_1", deadline=20.0)).payment.is_successful
    assert len(transport.flights) == 2
