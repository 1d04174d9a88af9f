"""The fast way is used on the aiohttp it was written for, and not on any other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from aiohttp import ClientRequest, ClientResponse, ClientSession
from aiohttp.client_proto import ResponseHandler

from payments_async._lean import lean_supported


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    lean_supported.cache_clear()
    yield
    lean_supported.cache_clear()


def test_the_pinned_aiohttp_is_supported() -> None:
    assert lean_supported()


def other(self: object, method: str) -> None:
    """Parameters that no aiohttp has."""


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (ClientRequest, "__init__", other),
        (ClientResponse, "__init__", other),
        (ClientRequest, "send", other),
        (ClientRequest, "send", None),
        (ClientSession, "ATTRS", frozenset()),
    ],
)
def test_any_difference_is_seen(
    owner: type[object], name: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, value)
    assert not lean_supported()


@pytest.mark.parametrize(
    ("owner", "name"),
    [(ClientRequest, "send"), (ClientSession, "ATTRS"), (ResponseHandler, "should_close")],
)
def test_anything_missing_is_seen(owner: type[object], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(owner, name)
    assert not lean_supported()
