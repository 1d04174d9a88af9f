"""The main path, end to end over a real socket."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from payments_async import Instrument
from payments_async._http.transport import AiohttpTransport
from payments_async._runtime import SYSTEM
from payments_async.sandbox import Sandbox
from tests.support.jumping import JumpingRuntime


async def test_a_lost_answer_is_asked_for_again_and_pays_once(
    connect: Callable[..., Any], sandbox: Sandbox
) -> None:
    runtime = JumpingRuntime(on_jump=sandbox.advance)
    transport = runtime.wrap(AiohttpTransport(runtime=SYSTEM))
    client = connect(sandbox, runtime=runtime, transport=transport)
    sandbox.on("payouts.create", reference="r-1").respond("lost_response", times=1)

    payout = await client.payouts.create(
        amount=Decimal("10.10"),
        currency="XOF",
        method="mtn_bj",
        instrument=Instrument.phone("+22990000000", "BJ"),
        reference="r-1",
    )

    assert payout.response.replayed
    assert [attempt.verdict for attempt in payout.response.attempts] == ["in_doubt", "executed"]
    assert [entry.amount for entry in sandbox.books.payouts(reference="r-1")] == [Decimal("10.10")]
    final = await client.payouts.wait(payout)
    assert final.is_successful
