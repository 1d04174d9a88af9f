"""`send` and `resolve` given what is not theirs: told what to pass, and nothing is sent."""

from __future__ import annotations

from asyncio import CancelledError
from typing import Any

import pytest

from payments_async import ConfigurationError, InvalidRequest, OutcomeUnknown
from payments_async.errors import ResponseMismatch
from tests.support.creations import PAYOUT
from tests.support.scripted import ScriptedTransport, answer
from tests.support.surfaces import Connect


@pytest.mark.parametrize("wrong", ['{"version": 1}', None, PAYOUT, 7])
async def test_send_takes_a_prepared_request_only(connect: Connect, wrong: Any) -> None:
    transport = ScriptedTransport(answer(500))
    with pytest.raises(ConfigurationError) as caught:
        await connect(transport=transport).send(wrong)
    told = f"send() takes a PreparedRequest, not {type(wrong).__name__}; PreparedRequest.from_json(text)"
    assert str(caught.value) == f"{told} reads one"
    assert transport.requests == []


def interrupted(cls: type[BaseException], **facts: Any) -> BaseException:
    """A cancellation, with what the client put on it."""
    stopped = cls()
    vars(stopped).update(facts)
    return stopped


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (
            InvalidRequest({"amount": ["is required"]}),
            "nothing to resolve: the error's effect is known (none)",
        ),
        (interrupted(CancelledError, outcome=7), "pass error.outcome"),
        (interrupted(KeyboardInterrupt, outcome=7), "pass error.outcome"),
        (interrupted(CancelledError), "nothing to resolve: CancelledError tells of no write in doubt"),
        (
            ResponseMismatch("other", record=None, differences={}),
            "takes an OutcomeUnknown or a PreparedRequest",
        ),
        ("text", "takes an OutcomeUnknown or a PreparedRequest"),
        (None, "takes an OutcomeUnknown or a PreparedRequest"),
    ],
)
async def test_resolve_says_what_it_takes_instead(connect: Connect, wrong: Any, told: str) -> None:
    transport = ScriptedTransport(answer(500))
    with pytest.raises(ConfigurationError) as caught:
        await connect(transport=transport).resolve(wrong)
    assert told in str(caught.value)
    assert not isinstance(caught.value, OutcomeUnknown)
    assert transport.requests == []
