"""Clients that share: `with_options`, constructing without a loop, closing and going on."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from payments_async import RateLimits
from payments_async.errors import APIConnectionError, ConfigurationError, InvalidRequest, LimitReached
from tests.conftest import BASE_URL, KEY
from tests.support.creations import PAYOUT, create
from tests.support.jumping import JumpingRuntime
from tests.support.motion import jumping
from tests.support.scripted import EMPTY_PAGE, ScriptedTransport, unsent
from tests.support.surfaces import Connect, make_client
from tests.support.watched import WatchedSandbox


def test_constructing_needs_no_loop_and_opens_nothing(surface: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", forbidden)
    client = make_client(surface, KEY, base_url=BASE_URL)
    assert repr(client).endswith(f"(base_url={BASE_URL!r})")
    assert client.payouts.prepare(**PAYOUT).environment == "sandbox"


async def test_a_sibling_keeps_what_is_none_and_changes_the_rest(connect: Connect) -> None:
    transport = ScriptedTransport(unsent())
    client = connect(transport=transport, runtime=JumpingRuntime(), timeout=7.0, max_retries=3)
    same, patient = client.with_options(), client.with_options(timeout=9.0, max_retries=0)

    for each, timeout, tries in ((client, 7.0, 4), (same, 7.0, 4), (patient, 9.0, 1)):
        transport.requests.clear()
        with pytest.raises(APIConnectionError):
            await each.payouts.list()
        assert [request.timeout for request in transport.requests] == [timeout] * tries


async def test_siblings_share_limits_and_used_keys(connect: Connect, watched: WatchedSandbox) -> None:
    client = jumping(connect, watched, limits=RateLimits(reads=1), on_limit="raise")
    sibling = client.with_options(timeout=5.0)
    await client.payouts.list()
    with pytest.raises(LimitReached):
        await sibling.payouts.list()
    assert sibling.limits_snapshot() == client.limits_snapshot()
    assert repr(sibling) == repr(client)

    await create(client, "payouts", idempotency_key="shared-key-1")
    with pytest.raises(InvalidRequest, match="another body"):
        await create(sibling, "payouts", idempotency_key="shared-key-1", amount=51)


async def test_a_sibling_may_have_its_own_listener(connect: Connect) -> None:
    told: dict[str, list[str]] = {"ours": [], "theirs": []}
    client = connect(
        transport=ScriptedTransport(EMPTY_PAGE), on_event=lambda event: told["ours"].append(event.operation)
    )
    sibling = client.with_options(on_event=lambda event: told["theirs"].append(event.operation))
    await sibling.payouts.list()
    assert told["ours"] == []
    assert set(told["theirs"]) == {"payouts.list"}
    await client.with_options(timeout=1.0).payouts.list()
    assert set(told["ours"]) == {"payouts.list"}


@pytest.mark.parametrize(
    ("option", "bad"),
    [
        ("timeout", 0),
        ("timeout", True),
        ("deadline", float("inf")),
        ("max_retries", -1),
        ("max_retry_after", "9"),
        ("on_limit", "x"),
        ("on_event", "print"),
    ],
)
def test_a_siblings_options_are_checked(surface: str, option: str, bad: Any) -> None:
    client = make_client(surface, KEY, base_url=BASE_URL)
    with pytest.raises(ConfigurationError, match=option):
        client.with_options(**{option: bad})


async def test_a_closed_client_can_be_used_again(connect: Connect, watched: WatchedSandbox) -> None:
    client = connect(watched)
    await client.payouts.list()
    await client.aclose()
    await client.aclose()
    await client.payouts.list()
    assert len(watched.arrived) == 2


async def test_the_async_client_closes_at_the_end_of_its_block() -> None:
    transport = ScriptedTransport(EMPTY_PAGE)
    async with make_client("async", KEY, base_url=BASE_URL, transport=transport) as client:
        await client.payouts.list()
        assert not transport.closed
    assert transport.closed


def test_a_warning_about_differing_limits_points_at_who_made_the_client(surface: str) -> None:
    first = make_client(surface, KEY, base_url=BASE_URL, limits=RateLimits(writes=600))
    with pytest.warns(RuntimeWarning, match="different rate limits") as caught:
        second = make_client(surface, KEY, base_url=BASE_URL, limits=RateLimits(writes=700))
    assert caught[0].filename == make_client.__code__.co_filename
    assert repr(first) == repr(second)
