"""An exception that is no failure of a connection, such as a stand-in's, is told with what it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import aiohttp
import pytest

from payments_async import APIConnectionError, OutcomeUnknown
from payments_async.sandbox import Sandbox
from tests.conftest import KEY
from tests.support.creations import create
from tests.support.surfaces import Connect

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
    with pytest.raises(OutcomeUnknown) as caught:
        await create(connect(sandbox, max_retries=0), "payouts")
    cause = caught.value.__cause__
    assert isinstance(cause, APIConnectionError)
    assert (cause.kind, [each.reason for each in caught.value.attempts]) == ("unexpected", ["unexpected"])
    for error in (caught.value, cause):
        assert f"{type(raised).__name__}: {raised}, raised at {HERE}:" in str(error)
    assert cause.__cause__ is raised
    assert (raised.__traceback__, raised.__cause__, raised.__context__) == (None, None, None)


async def test_a_read_says_that_nothing_happened_and_what_to_correct(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox
) -> None:
    raising(monkeypatch, lambda: TypeError("takes 2 arguments"))
    with pytest.raises(
        APIConnectionError, match="nothing can have happened: correct what raised it"
    ) as caught:
        await connect(sandbox, max_retries=0).payouts.list()
    assert (caught.value.kind, caught.value.effect) == ("unexpected", "none")


@pytest.mark.parametrize("text", [f"with {KEY}", "for +233200000001"], ids=["key", "account"])
async def test_a_text_with_a_secret_is_masked_and_its_exception_left_out(
    text: str, connect: Connect, monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox
) -> None:
    raising(monkeypatch, lambda: TypeError(text))
    with pytest.raises(OutcomeUnknown, match=r"TypeError: \w+ .*\*\*\*") as caught:
        await create(connect(sandbox, max_retries=0), "payouts")
    assert text.split()[1] not in f"{caught.value} {caught.value.__cause__}"
    assert caught.value.__cause__ is not None
    assert caught.value.__cause__.__cause__ is None
