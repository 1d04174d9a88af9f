"""What an error's message says to do next, and what it says about money."""

from __future__ import annotations

from typing import Any

import pytest

from payments_async import errors
from tests.support.creations import create
from tests.support.jumping import JumpingRuntime
from tests.support.scripted import ScriptedTransport, answer, lost, unsent
from tests.support.surfaces import Connect

ONE = {"max_retries": 0}


async def told(error: type[Exception], call: Any) -> str:
    """The message of the error that a call ends with."""
    with pytest.raises(error) as caught:
        await call
    return str(caught.value)


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        ("dns", "host"),
        ("connect", "network"),
        ("tls", "certificates"),
        ("pool", "max_connections"),
        ("timeout", "longer timeout"),
        ("reset", "try again later"),
        ("protocol", "is the service's"),
    ],
)
async def test_no_answer_says_that_nothing_happened_and_what_to_check(
    connect: Connect, kind: str, step: str
) -> None:
    never = connect(transport=ScriptedTransport(unsent(kind)))
    message = await told(errors.APIConnectionError, create(never, "payouts", **ONE))
    assert f"no answer from 127.0.0.1:9 ({kind}: " in message
    assert "; nothing was sent: " in message
    assert step in message
    read = connect(transport=ScriptedTransport(lost(kind)))
    assert "; nothing can have happened: " in await told(errors.APIConnectionError, read.payouts.list(**ONE))


async def test_an_answer_that_is_too_large_says_what_to_check(connect: Connect) -> None:
    read = connect(transport=ScriptedTransport(lost("too_large")))
    assert "ask for less" in await told(errors.DecodeError, read.payouts.list())


async def test_a_write_that_was_refused_before_it_failed_was_sent_and_did_nothing(connect: Connect) -> None:
    transport = ScriptedTransport(answer(429, {"message": "slow"}, {"Retry-After": "1"}), unsent())
    client = connect(transport=transport, runtime=JumpingRuntime())
    message = await told(errors.APIConnectionError, create(client, "payouts", max_retries=1))
    assert "nothing can have happened" in message


@pytest.mark.parametrize(
    ("resource", "data", "where"),
    [
        ("payouts", {"id": "po_1", "status": 7}, "find it by its reference, or in the list"),
        ("payment_intents", {"id": "pi_1", "status": 7}, "find it in the list"),
        ("checkouts", {"checkout": {"id": "cs_1", "url": 7}}, "read it by its id"),
    ],
)
async def test_a_record_that_cannot_be_read_is_found_where_the_interface_shows_it(
    connect: Connect, resource: str, data: Any, where: str
) -> None:
    client = connect(transport=ScriptedTransport(answer(201, {"data": data})))
    message = await told(errors.DecodeError, create(client, resource))
    assert "HTTP 201, but the answer cannot be used (" in message
    assert message.endswith(f"; the record exists: {where}")
