"""What the tests of motion share: one payout, its answers, and clients whose waits take no time."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import attrs
import pytest

from payments_async import Instrument, OutcomeUnknown
from payments_async._http.transport import AiohttpTransport
from payments_async._http.types import HTTPResponse
from payments_async._runtime import SYSTEM
from payments_async.sandbox import Sandbox
from tests.support.jumping import JumpingRuntime
from tests.support.scripted import ScriptedTransport, Step, answer
from tests.support.surfaces import Connect

PAYOUT: Mapping[str, Any] = {
    "amount": Decimal("10.10"),
    "currency": "XOF",
    "method": "mtn_bj",
    "instrument": Instrument.phone("+22990112233", "BJ"),
    "reference": "r-1",
}
INTENT: Mapping[str, Any] = {"amount": Decimal("10.10"), "currency": "XOF"}


def payout_answer(
    status: int = 201, headers: Mapping[str, str] | None = None, **changes: Any
) -> HTTPResponse:
    """What the service says to `PAYOUT`, with other fields where asked."""
    money = {"value": 10.1, "currency": "XOF"}
    payout = {"id": "po_1", "status": "pending", "reference": "r-1", "amount": money, **changes}
    return answer(status, {"message": "Payout created.", "data": payout}, headers)


def refusal(status: int, headers: Mapping[str, str] | None = None, message: str = "No.") -> HTTPResponse:
    return answer(status, {"message": message}, headers)


REPLAYED = {"X-Idempotent-Replayed": "true"}
OURS = {"id": "po_1", "reference": "r-1", "amount": {"value": 10.1, "currency": "XOF"}}
"""The payout that `PAYOUT` asks for, as a list shows it."""


def listed(*payouts: dict[str, Any]) -> HTTPResponse:
    return answer(200, {"data": list(payouts), "pagination": {"has_more_pages": False}})


@attrs.frozen
class Played:
    """A client of a scripted service, on a clock that jumps."""

    client: Any
    transport: ScriptedTransport
    runtime: JumpingRuntime

    @property
    def keys(self) -> list[str | None]:
        return [request.headers.get("X-Idempotency-Key") for request in self.transport.requests]


def play(connect: Connect, *script: Step, seed: int = 0, **options: Any) -> Played:
    """A client to whom the service says what the script says."""
    runtime, transport = JumpingRuntime(seed), ScriptedTransport(*script)
    client = connect(transport=runtime.wrap(transport), runtime=runtime, **options)
    return Played(client, transport, runtime)


async def doubt(played: Played, how: str = "payouts") -> OutcomeUnknown:
    with pytest.raises(OutcomeUnknown) as caught:
        create = getattr(played.client, how).create
        await create(**(PAYOUT if how == "payouts" else INTENT), max_retries=0)
    return caught.value


async def unresolved(played: Played, given: Any, match: str | None = None) -> Any:
    with pytest.raises(OutcomeUnknown, match=match) as caught:
        await played.client.resolve(given)
    return caught.value


def methods(played: Played) -> list[str]:
    return [request.method for request in played.transport.requests]


def sent(played: Played) -> list[str]:
    return [f"{request.method} {request.url.partition('/v1')[2]}" for request in played.transport.requests]


def jumping(
    connect: Connect,
    sandbox: Sandbox,
    seed: int = 0,
    runtime: JumpingRuntime | None = None,
    **options: Any,
) -> Any:
    """A client of a sandbox over its real socket; the sandbox's clock moves along with its waits."""
    runtime = runtime or JumpingRuntime(seed, on_jump=sandbox.advance)
    transport = runtime.wrap(AiohttpTransport(runtime=SYSTEM))
    return connect(sandbox, runtime=runtime, transport=transport, **options)
