"""`with_options(api_key=...)`: clients of many keys on the same connections, and nothing else in common."""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections.abc import Callable
from typing import Any

import pytest

from payments_async import APIConnectionError, RateLimits
from payments_async._rate_limit.key_limiter import KeyLimiter
from payments_async._request.key_state import MOST_KEYS
from payments_async.errors import ConfigurationError, InvalidRequest, LimitReached, OutcomeUnknown
from payments_async.sandbox import Sandbox
from payments_async.sandbox._http.server import Server
from payments_async.testing import SkippingRuntime
from tests.conftest import BASE_URL, KEY
from tests.support.creations import PAYOUT, create
from tests.support.jumping import JumpingRuntime
from tests.support.motion import jumping, listed, payout_answer, play
from tests.support.patience import until
from tests.support.rawserver import RawServer, Step
from tests.support.scripted import EMPTY_PAGE, ScriptedTransport, SilentTransport, lost
from tests.support.surfaces import Connect, error_of, make_client

OTHER, LIVE = "sk_sandbox_CANARY0123456789other", "sk_live_CANARY0123456789live"
Lines = list[tuple[Any, dict[str, str]]]


@pytest.fixture(autouse=True)  # before a sandbox is served
def lines(monkeypatch: pytest.MonkeyPatch) -> Lines:
    """The connection and the headers of each request to a sandbox."""
    seen: Lines = []
    handle = Server._handle

    async def note(server: Server, line: Any, request: Any) -> Any:
        seen.append((line.protocol, {name.lower(): value for name, value in line.headers.items()}))
        return await handle(server, line, request)

    monkeypatch.setattr(Server, "_handle", note)
    return seen


def connections(lines: Lines) -> int:
    return len({id(protocol) for protocol, _ in lines})


async def ended(lines: Lines) -> None:
    """Wait until the service has seen all connections end."""
    await until(lambda: all(protocol.transport is None for protocol, _ in lines))


def authorizations(lines: Lines) -> list[str]:
    return [headers["authorization"] for _, headers in lines]


async def test_keys_take_turns_on_one_connection(connect: Connect, sandbox: Sandbox, lines: Lines) -> None:
    keys = [sandbox.api_key, *(sandbox.new_key() for _ in range(3))]
    client = connect(sandbox, max_connections=1)
    merchant = client.with_options(api_key=keys[1])
    rotating = client.with_options(api_key=lambda: keys[2])
    derived = merchant.with_options(api_key=keys[3]).with_options(timeout=9.0)
    clients = [client, merchant, rotating, derived]
    for number in range(3):
        for each in clients:
            await create(each, "payouts", reference=f"turn-{number}")
    await asyncio.gather(*(create(each, "payouts", reference=f"{i}") for i in range(5) for each in clients))

    assert connections(lines) == 1
    assert authorizations(lines)[:12] == [f"Bearer {key}" for key in keys] * 3
    assert sorted(authorizations(lines)[12:]) == sorted(f"Bearer {key}" for key in keys * 5)
    assert not [headers for _, headers in lines if "cookie" in headers]
    for key in keys:
        assert len(sandbox._core.world.tenants[key].payouts) == 8


@pytest.mark.fact("auth.limits-per-key")
async def test_each_key_has_limits_that_its_clients_share(connect: Connect, sandbox: Sandbox) -> None:
    client = jumping(connect, sandbox, limits=RateLimits(reads=1), on_limit="raise")
    merchant, again = (client.with_options(api_key=key) for key in [sandbox.new_key()] * 2)
    await client.payouts.list()
    await merchant.payouts.list()
    for spent in (client, merchant, again):
        with pytest.raises(LimitReached):
            await spent.payouts.list()
    assert merchant.limits_snapshot() == again.limits_snapshot()


@pytest.mark.parametrize(("kind", "attempts"), [("timeout", 51), ("reset", 101)])
async def test_the_retries_of_one_key_leave_the_budget_of_another(
    connect: Connect, kind: str, attempts: int
) -> None:
    played = play(connect, *[EMPTY_PAGE] * 10, lost(kind), max_retries=200)
    for _ in range(10):  # they fill the budget no further than its brim
        await played.client.payouts.list()
    for client in (played.client, played.client.with_options(api_key=OTHER)):
        caught = await error_of(APIConnectionError, client.payouts.list())
        assert len(caught.attempts) == attempts


async def test_clients_of_one_key_know_each_others_idempotency_keys_and_no_others(connect: Connect) -> None:
    """Also one that was made for a single call."""
    played = play(connect, payout_answer(reference=None, amount={"value": 50, "currency": "XOF"}))
    first, second = (played.client.with_options(api_key=OTHER) for _ in range(2))
    same = [create(each, "payouts", idempotency_key="shared-key-1") for each in (played.client, first)]
    await asyncio.gather(*same)
    other = played.client.with_options(api_key="sk_sandbox_third")
    await other.payouts.create(
        **{**PAYOUT, "amount": 50, "method": "moov_bj"}, idempotency_key="shared-key-1"
    )
    with pytest.raises(InvalidRequest, match="was used with another body"):
        await create(second, "payouts", idempotency_key="shared-key-1", method="moov_bj")
    assert len(played.transport.requests) == 3


LIVE_CLIENT = {"api_key": LIVE, "base_url": "https://p.test/v1"}
CARELESS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
CARELESS.check_hostname, CARELESS.verify_mode = False, ssl.CERT_NONE
REFUSED: list[tuple[dict[str, Any], Any, str]] = [
    ({}, LIVE, "environment='sandbox' and the key is a live key: pass a sandbox key"),
    ({"base_url": "https://p.test/v1"}, LIVE, "make a client for the live environment"),
    ({"api_key": lambda: KEY}, LIVE, "environment='sandbox' and the key is a live key"),
    (LIVE_CLIENT, KEY, "environment='live' and the key is a sandbox key: pass a live key"),
    ({}, None, "leave api_key out"),
    ({}, "CANARY0123456789", "the API key is malformed"),
    ({}, OTHER.encode(), "the API key is malformed"),
    ({}, 7, "the API key is malformed"),
]


@pytest.mark.parametrize(("options", "key", "told"), REFUSED, ids=range(len(REFUSED)))
def test_an_unusable_key_is_refused(surface: str, options: dict[str, Any], key: Any, told: str) -> None:
    transport = ScriptedTransport(EMPTY_PAGE)
    given = {"api_key": KEY, "base_url": BASE_URL, "transport": transport, **options}
    client = make_client(surface, **given)
    with pytest.raises(ConfigurationError) as caught:
        client.with_options(api_key=key)
    assert told in str(caught.value)
    assert "CANARY" not in f"{caught.value!r} {vars(caught.value)}"
    assert (caught.value.effect, transport.requests) == ("none", [])


@pytest.mark.parametrize("insecure", [True, False])
def test_a_certificate_that_is_not_verified_is_the_clients_own_decision(surface: str, insecure: bool) -> None:
    options = {**LIVE_CLIENT, "ssl_context": CARELESS, "insecure": True}
    client = make_client(surface, **options)
    assert repr(client.with_options(api_key=f"{LIVE}2")) == repr(client)
    unknown = make_client(surface, **{**options, "api_key": lambda: LIVE, "insecure": insecure})
    if insecure:
        unknown.with_options(api_key=f"{LIVE}2")
    else:
        with pytest.raises(ConfigurationError, match="verifies no certificate"):
            unknown.with_options(api_key=f"{LIVE}2")


@pytest.mark.parametrize("wrap", [lambda it: it, JumpingRuntime().wrap, SkippingRuntime(Sandbox()).wrap])
def test_a_transport_that_cannot_be_shared_is_refused(surface: str, wrap: Callable[[Any], Any]) -> None:
    client = make_client(surface, KEY, base_url=BASE_URL, transport=wrap(SilentTransport()))
    with pytest.raises(ConfigurationError, match="no method share: give it that method"):
        client.with_options(api_key=OTHER)
    assert repr(client.with_options(timeout=1.0)) == repr(client)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
async def test_connections_close_with_the_last_client_that_uses_them(
    order: tuple[int, ...], connect: Connect, sandbox: Sandbox, lines: Lines
) -> None:
    client = connect(sandbox)
    merchant = client.with_options(api_key=sandbox.new_key())
    clients = [client, merchant, merchant.with_options(api_key=sandbox.new_key())]
    for _ in range(2):
        lines.clear()
        for each in clients:
            await each.payouts.list()
        for number, index in enumerate(order):
            await clients[index].aclose()
            for left in order[number + 1 :]:
                await clients[left].payouts.list()
        assert connections(lines) == 1
        await ended(lines)


async def test_closing_one_ends_its_own_calls_alone(connect: Connect, server: RawServer) -> None:
    server.scripts["/v1/payouts"] = [Step.HANG]
    client = connect(base_url=server.url("/v1"))
    merchant = client.with_options(api_key=OTHER)
    calls = []
    for each in (client, merchant):
        calls.append(asyncio.ensure_future(create(each, "payouts")))
        assert await asyncio.to_thread(server.arrivals.get, timeout=300) == "/v1/payouts"
    for each, call, others in ((client, calls[0], calls[1:]), (merchant, calls[1], [])):
        await each.aclose()
        caught = await error_of(OutcomeUnknown, call)
        assert [(tried.reason, tried.verdict) for tried in caught.attempts] == [("closed", "in_doubt")]
        await merchant.request("GET", "/other")
        assert not [other for other in others if other.done()]
    assert len(server.requests) == 4
    await merchant.aclose()


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "dropped"])
async def test_clients_of_one_call_share(
    is_closed: bool, connect: Connect, sandbox: Sandbox, lines: Lines
) -> None:
    client = connect(sandbox)
    for _ in range(5):
        merchant = client.with_options(api_key=sandbox.new_key())
        await merchant.payouts.list()
        if is_closed:
            await merchant.aclose()
        del merchant
        gc.collect()
    assert (len(lines), connections(lines)) == (5, 1)
    await client.aclose()  # though it made no call itself
    await ended(lines)


async def test_a_key_that_was_rotated_away_leaves_nothing_behind(connect: Connect) -> None:
    numbers = iter(range(6 * MOST_KEYS))
    played = play(connect, listed(), api_key=lambda: f"sk_sandbox_{next(numbers):032d}")
    gc.collect()
    others = sum(isinstance(each, KeyLimiter) for each in gc.get_objects())
    for _ in range(6 * MOST_KEYS):
        await played.client.payouts.list()
        played.runtime.advance(61.0)  # its minute is over
    gc.collect()
    assert sum(isinstance(each, KeyLimiter) for each in gc.get_objects()) < others + 4 * MOST_KEYS
