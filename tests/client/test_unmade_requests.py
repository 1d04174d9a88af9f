"""A request that cannot be made, after its turn at the gate has come: its place goes to the next."""

from __future__ import annotations

from typing import Any

import pytest

from payments_async import RateLimits
from payments_async._request import pipeline
from tests.support.motion import PAYOUT, payout_answer
from tests.support.scripted import ScriptedTransport, answer
from tests.support.surfaces import Connect


class Interrupt(BaseException):
    """Like Ctrl-C, at the worst moment."""


@pytest.mark.parametrize("kind", [Interrupt, ValueError])
async def test_what_stops_a_request_from_being_made_keeps_no_place_of_the_limit(
    connect: Connect, kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> Any:
        raise kind("stopped")

    transport = ScriptedTransport(*[payout_answer(), answer(200, {"data": []})])
    client = connect(transport=transport, limits=RateLimits(writes=2), on_limit="raise", max_retries=0)
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "make_request", stop)
        for _ in range(3):
            with pytest.raises(kind, match="stopped"):
                await client.payouts.create(**PAYOUT)
    assert client.limits_snapshot()["write"].used == 0
    await client.payouts.create(**PAYOUT)
    assert len(transport.requests) == 1
