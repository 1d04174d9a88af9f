"""The fast way is used on the aiohttp it was written for, and not on any other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from payments_async._http.direct import MEMBERS, PROPERTIES, SHAPES, is_supported


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    is_supported.cache_clear()
    yield
    is_supported.cache_clear()


def test_the_pinned_aiohttp_is_supported() -> None:
    assert is_supported()


def other(self: object, method: str) -> None:
    """Parameters that no aiohttp has."""


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        *((owner, name, value) for owner, name, _ in SHAPES for value in (other, None)),
        *((owner, name, None) for owner, name in (*PROPERTIES, *MEMBERS)),
    ],
)
def test_a_method_of_another_shape_and_a_missing_member_are_seen(
    owner: type, name: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, value)
    assert not is_supported()
