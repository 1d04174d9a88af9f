"""Nothing waits longer than 30 seconds without a line in the log that says for what."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from payments_async import AsyncPayments, PaymentsError, RateLimits
from tests.support.limit_stores import Fleet
from tests.support.motion import PAYOUT, payout_answer
from tests.support.scripted import ScriptedTransport, answer
from tests.support.simulated import run_simulated

PENDING = {"id": "po_1", "status": "pending"}
LIST = answer(200, {"data": [PENDING], "pagination": {"has_more_pages": False}})
CHECKOUT = answer(200, {"data": {"checkout": {"id": "cs_1"}, "payment": {"id": "pi_1"}}})
NONE = answer(200, {"data": [{"id": "pi_1"}], "pagination": {"has_more_pages": False}})


async def second_in_a_minute(client: AsyncPayments) -> None:
    await client.payouts.create(**PAYOUT)
    await client.payouts.create(**{**PAYOUT, "reference": "r-2"})


async def in_bulk(client: AsyncPayments) -> None:
    await client.send(client.payouts.prepare(**PAYOUT), priority="bulk")


Wait = Callable[[AsyncPayments], Awaitable[object]]
WAITS: dict[str, tuple[Callable[[], Any], dict[str, Any], bool, Wait, str]] = {
    "rate limit": (
        lambda: ScriptedTransport(payout_answer()),
        {"limits": RateLimits(writes=1), "limit_store": None},
        False,
        second_in_a_minute,
        "payouts.create waits for the rate limit",
    ),
    "limit store": (
        lambda: ScriptedTransport(payout_answer()),
        {},
        True,
        lambda client: client.payouts.create(**PAYOUT),
        "payouts.create waits for the limit store: .*cannot be reached|the limit store cannot be used",
    ),
    "limit store, in bulk": (
        lambda: ScriptedTransport(payout_answer()),
        {},
        True,
        in_bulk,
        "payouts.create waits for the limit store: .*cannot be reached",
    ),
    "payout": (
        lambda: ScriptedTransport(LIST),
        {"limit_store": None},
        False,
        lambda client: client.payouts.wait("po_1", deadline=300.0),
        "the payout po_1 is not final yet",
    ),
}
"""{waited for: makes the service, options, whether the limit store is away, the call, the log's words}."""


@pytest.mark.parametrize("what", WAITS)
def test_a_wait_is_in_the_log_every_30_seconds(what: str, caplog: pytest.LogCaptureFixture) -> None:
    make, options, is_away, wait, told = WAITS[what]
    times = [0.0]

    async def main() -> None:
        async with Fleet(make(), **options) as world:

            class Times(logging.Handler):
                def emit(self, record: logging.LogRecord) -> None:
                    if re.search(told, record.getMessage()):
                        times.append(world.runtime.monotonic())

            logging.getLogger("payments").addHandler(handler := Times())
            world.server.down = "refused" if is_away else None
            try:
                await wait(world.clients[0])
            except PaymentsError:
                assert world.runtime.monotonic() < 310.0
            finally:
                logging.getLogger("payments").removeHandler(handler)
            times.append(world.runtime.monotonic())

    with caplog.at_level(logging.INFO, "payments"):
        run_simulated(main())
    assert times[-1] > 29.0
    assert max(after - before for before, after in pairwise(times)) <= 32.0
