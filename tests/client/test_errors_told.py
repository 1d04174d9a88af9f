"""What an error says to do next and about money, whatever raised it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import aiohttp
import pytest

from payments_async import APIConnectionError, OutcomeUnknown, errors
from payments_async.sandbox import Sandbox
from tests.conftest import KEY
from tests.support.creations import create
from tests.support.scripted import ScriptedTransport, answer, lost, unsent
from tests.support.surfaces import Connect, error_of

ONE = {"max_retries": 0}


async def told(error: type[Exception], call: Any) -> str:
    """The message of the error that a call ends with."""
    caught = await error_of(error, call)
    return str(caught)


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
async def test_no_answer_says_what_happened_and_what_to_check(connect: Connect, kind: str, step: str) -> None:
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


@pytest.mark.parametrize(
    ("resource", "data", "where"),
    [
        ("payouts", {"id": "po_1", "status": 7}, "find it by its reference, or in the list"),
        ("payment_intents", {"id": "pi_1", "amount": {"value": True}}, "find it in the list"),
        ("checkouts", {"checkout": {"id": "cs_1", "url": 7}}, "read it by its id"),
    ],
)
async def test_where_an_unreadable_record_is(connect: Connect, resource: str, data: Any, where: str) -> None:
    client = connect(transport=ScriptedTransport(answer(201, {"data": data})))
    caught = await error_of(errors.DecodeError, create(client, resource))
    assert "HTTP 201, but the answer cannot be used (" in str(caught)
    assert str(caught).endswith(f"; the record exists: {where}")
    assert (caught.effect, caught.record_id) == ("happened", data.get("id", "cs_1"))
    assert caught.attempts[-1].verdict == "executed"


HERE = "/".join(Path(__file__).parts[-2:])


def raising(monkeypatch: pytest.MonkeyPatch, made: Callable[[], Exception]) -> None:
    """Replace aiohttp's sending, as stand-ins and agents do, by one that raises."""

    async def broken(*_: object, **__: object) -> NoReturn:
        try:
            raise LookupError(KEY)
        except LookupError:
            raise made()  # noqa: B904 - what was raised before it must not be shown

    monkeypatch.setattr(aiohttp.ClientSession, "_request", broken)


@pytest.mark.parametrize(
    "raised",
    [TypeError("takes 2 arguments"), aiohttp.ClientConnectionError("no match: POST /payouts")],
    ids=["agent", "stand-in"],
)
async def test_the_class_the_place_and_the_text_are_in_both_errors_and_the_original_is_the_cause(
    raised: Exception, connect: Connect, monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox
) -> None:
    raising(monkeypatch, lambda: raised)
    caught = await error_of(OutcomeUnknown, create(connect(sandbox, max_retries=0), "payouts"))
    cause = caught.__cause__
    assert isinstance(cause, APIConnectionError)
    assert (cause.kind, [each.reason for each in caught.attempts]) == ("unexpected", ["unexpected"])
    for error in (caught, cause):
        assert f"{type(raised).__name__}: {raised}, raised at {HERE}:" in str(error)
    assert cause.__cause__ is raised
    assert (raised.__traceback__, raised.__cause__, raised.__context__) == (None, None, None)


@pytest.mark.parametrize("text", [f"with {KEY}", "for +233200000001"], ids=["key", "account"])
async def test_a_text_with_a_secret_is_masked_and_its_exception_left_out(
    text: str, connect: Connect, monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox
) -> None:
    raising(monkeypatch, lambda: TypeError(text))
    caught = await error_of(
        OutcomeUnknown, create(connect(sandbox, max_retries=0), "payouts"), match=r"TypeError: \w+ .*\*\*\*"
    )
    assert text.split()[1] not in f"{caught} {caught.__cause__}"
    assert caught.__cause__ is not None
    assert caught.__cause__.__cause__ is None
