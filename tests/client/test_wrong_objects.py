"""`send` and `resolve` given what is not theirs: told what to pass, and nothing is sent."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from payments_async import ConfigurationError, InvalidRequest, OutcomeUnknown
from payments_async.errors import ResponseMismatch
from tests.support.creations import PAYOUT
from tests.support.scripted import ScriptedTransport, answer
from tests.support.surfaces import Connect, error_of


class Changing(Mapping[str, Any]):
    """Holds a text when it is checked, and what JSON cannot carry when it is written."""

    def __init__(self) -> None:
        self._values: Any = iter(["text", object()])

    def __getitem__(self, key: str) -> Any:
        return next(self._values)

    def __iter__(self) -> Iterator[str]:
        return iter(["name"])

    def __len__(self) -> int:
        return 1


async def test_what_changes_under_the_check_is_not_sent(connect: Connect) -> None:
    transport = ScriptedTransport(answer(500))
    with pytest.raises(InvalidRequest, match=r"cannot be written as JSON \(TypeError\)"):
        await connect(transport=transport).request("POST", "/refunds", json={"deep": Changing()})
    assert transport.requests == []


@pytest.mark.parametrize("wrong", ['{"version": 1}', None, PAYOUT, 7])
async def test_send_takes_a_prepared_request_only(connect: Connect, wrong: Any) -> None:
    transport = ScriptedTransport(answer(500))
    caught = await error_of(ConfigurationError, connect(transport=transport).send(wrong))
    told = f"send() takes a PreparedRequest, not {type(wrong).__name__}; PreparedRequest.from_json(text)"
    assert str(caught) == f"{told} reads one"
    assert transport.requests == []


def interrupted(cls: type[BaseException], **facts: Any) -> BaseException:
    """A cancellation, with what the client put on it."""
    stopped = cls()
    vars(stopped).update(facts)
    return stopped


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (InvalidRequest({"amount": ["is required"]}), "the error's effect is known (none)"),
        (interrupted(CancelledError, outcome=7), "pass error.outcome"),
        (interrupted(KeyboardInterrupt, outcome=7), "pass error.outcome"),
        (interrupted(CancelledError), "nothing to resolve: CancelledError tells of no write in doubt"),
        (
            ResponseMismatch("other", record=None, differences={}),
            "takes an OutcomeUnknown or a PreparedRequest",
        ),
        (None, "takes an OutcomeUnknown or a PreparedRequest"),
    ],
)
async def test_resolve_says_what_it_takes_instead(connect: Connect, wrong: Any, told: str) -> None:
    transport = ScriptedTransport(answer(500))
    caught = await error_of(ConfigurationError, connect(transport=transport).resolve(wrong))
    assert told in str(caught)
    assert not isinstance(caught, OutcomeUnknown)
    assert transport.requests == []
