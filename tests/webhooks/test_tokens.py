"""Tokens: what we said comes back; whatever differs in one bit, is old, or is somebody else's does not."""

from __future__ import annotations

import base64
import hmac

import pytest

from tests.support.hooks import Hook, listed
from tests.support.one_surface import surface as surface
from tests.support.receivers import HOOKS, Handler
from tests.support.surfaces import Connect

NEW, OLD, OTHER = "n" * 32, b"o" * 32, "x" * 40
USUAL = b"\2\0" + bytes(3) + b"\1" + b"\xff" * 4 + b"invoice-17"
"""Of a payout, for good."""


def hook_of(connect: Connect, *secrets: str | bytes) -> Hook:
    hook = Hook(connect, Handler(), listed(reference="invoice-17"), secrets=[*secrets])
    hook.url = hook.receiver.url_for_payout("invoice-17")
    return hook


async def is_taken(hook: Hook, url: str) -> bool:
    return (await hook.receiver.receive(path=url)).status != 404


def signed(said: bytes) -> str:
    """The URL that says this, as a receiver makes it whose secret is `NEW`."""
    mac = hmac.digest(NEW.encode(), b"payments-sdk webhook url\0" + said, "sha256")
    return f"{HOOKS}/{base64.urlsafe_b64encode(said + mac).rstrip(b'=').decode()}"


async def test_a_token_has_one_spelling_only(connect: Connect) -> None:
    hook = hook_of(connect, NEW)
    assert len(hook.url.rpartition("/")[2]) % 4 == 2, "so that its last character has bits to spare"
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    assert [each for each in alphabet if await is_taken(hook, hook.url[:-1] + each)] == [hook.url[-1]]
    assert not await is_taken(hook, hook.url + "==")


@pytest.mark.parametrize(
    "said",
    [*(head + USUAL[2:] for head in (b"\0\0", b"\1\0", b"\xff\0", b"\2\3", b"\2\xff")), USUAL[:10]],
)
async def test_a_version_or_kind_of_another_time_and_no_reference_are_refused_though_signed(
    said: bytes, connect: Connect
) -> None:
    hook = hook_of(connect, NEW)
    assert await is_taken(hook, signed(USUAL))
    assert not await is_taken(hook, signed(said))


async def test_every_secret_is_tried_so_that_time_tells_nothing(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return one == other

    hook, urls = hook_of(connect, NEW, OLD), [hook_of(connect, each).url for each in (NEW, OLD, OTHER)]
    monkeypatch.setattr("payments_async.webhooks._tokens.compare_digest", compare)
    for url in urls:
        compared.clear()
        assert await is_taken(hook, url) is (url != urls[2])
        assert len(compared) == 2
        assert all(len(one) == len(other) == 32 for one, other in compared)
