"""Making a client: options, environment variables, keys that rotate, siblings, closing and going on."""

from __future__ import annotations

import os
import re
import socket
import ssl
import sys
from functools import partial
from typing import Any

import pytest

import payments_async
from payments_async import RateLimits
from payments_async.errors import APIConnectionError, ConfigurationError, InvalidRequest, LimitReached
from tests.conftest import BASE_URL, KEY
from tests.support.canary import LONG_CANARY_KEY, NEEDLE, pickled, shown_by, told_by
from tests.support.creations import PAYOUT, create
from tests.support.jumping import JumpingRuntime
from tests.support.limit_stores import ADDRESS
from tests.support.motion import jumping
from tests.support.scripted import EMPTY_PAGE, ScriptedTransport, unsent
from tests.support.surfaces import Connect, make_client
from tests.support.watched import WatchedSandbox


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if name.startswith("PAYMENTS_"):
            monkeypatch.delenv(name)


BAD: list[Any] = [
    ({"api_key": None}, "no API key"),
    ({"api_key": ""}, "no API key"),
    *(
        ({"api_key": bad}, "the API key is malformed")
        for bad in (
            *("pk_live_abc", "sk_test_abc", "sk_live_", "SK_LIVE_abc", " sk_live_abc", "sk_live_abc\n"),
            *("Bearer sk_live_abc", "sk_live_\ud800", b"sk_live_abc", 7, "sk_live_" + "a" * 201),
            *(f"{LONG_CANARY_KEY}\r\n", f" {LONG_CANARY_KEY}", bytearray(LONG_CANARY_KEY.encode())),
        )
    ),
    ({"environment": "live"}, "environment='live' and the key is a sandbox key: pass a live key"),
    (
        {"api_key": "sk_live_abc", "base_url": "https://pay.test/v1", "environment": "sandbox"},
        "environment='sandbox' and the key is a live key: pass a sandbox key",
    ),
    ({"environment": "test"}, "environment must be 'live' or 'sandbox'"),
    ({"base_url": None}, "no base URL"),
    ({"base_url": ""}, "no base URL"),
    ({"base_url": "http://pay.test/v1"}, "must be https"),
    ({"base_url": "http://pay.test/v1"}, "on a host that PAYMENTS_SANDBOX_HOSTS names"),
    ({"base_url": "http://127.0.0.1.evil.test/v1"}, "must be https"),
    ({"base_url": "http://127.1.1.1@evil.test/v1"}, "credentials"),
    ({"base_url": "ftp://pay.test/v1"}, "must be https"),
    ({"base_url": "https://user:hunter2@pay.test/v1"}, "credentials"),
    ({"base_url": "https://pay.test/v1?a=b"}, "query or a fragment"),
    ({"base_url": "https://pay.test/v1#a"}, "query or a fragment"),
    ({"base_url": "https://pay.test"}, "must end in the version, /v1"),
    ({"base_url": "https://pay.test/av1"}, "must end in the version, /v1"),
    ({"base_url": "https:///v1"}, "has no host"),
    ({"base_url": "https://pay.test/a/../v1"}, "an empty or dotted segment"),
    ({"base_url": "https://pay.test/%2e%2e/v1"}, "an empty or dotted segment"),
    ({"base_url": "https://pay.test//v1"}, "an empty or dotted segment"),
    ({"base_url": "https://pay.test:port/v1"}, "has no host"),
    ({"base_url": "https://[::1/v1"}, "has no host"),
    ({"base_url": "pay.test/v1"}, "has no host"),
    ({"base_url": "https://päy.test/v1"}, "plain ASCII"),
    ({"base_url": "https://pay..test/v1"}, "a host that is no name"),
    ({"base_url": f"https://{'a' * 64}.test/v1"}, "a host that is no name"),
    ({"base_url": "https://*/v1"}, "characters that no address has"),
    ({"base_url": "https://pay%2etest/v1"}, "characters that no address has"),
    ({"base_url": "https://pay.test/\x7f/v1"}, "characters that no address has"),
    ({"base_url": "https://pay.test/v1\n"}, "plain ASCII"),
    ({"base_url": "https:\\\\pay.test/v1"}, "plain ASCII"),
    ({"base_url": 7}, "plain ASCII"),
    ({"api_key": "sk_live_abc"}, "a live key goes over https only"),
    ({"api_key": LONG_CANARY_KEY.replace("sandbox", "live")}, "a live key goes over https only"),
    ({"api_key": "sk_live_abc", "base_url": "HTTP://127.0.0.1:9/v1"}, "a live key goes over https only"),
    *(
        ({name: bad}, f"{name} must be a positive number of seconds")
        for name in ("timeout", "connect_timeout", "deadline", "max_retry_after")
        for bad in (0, float("inf"), "30", True)
    ),
    *(({"max_retries": bad}, "max_retries must be a whole number") for bad in (-1, 1.0, True)),
    *(({"max_connections": bad}, "max_connections must be a whole number") for bad in (0, 1.0, True)),
    ({"on_limit": "explode"}, "on_limit must be 'wait' or 'raise'"),
    *(({name: None}, name) for name in ("timeout", "connect_timeout", "max_retry_after", "max_retries")),
    ({"on_limit": None}, "on_limit must be 'wait' or 'raise'"),
    ({"on_event": "print"}, "on_event must be callable, not str"),
    ({"ssl_context": True}, "ssl_context must be an ssl.SSLContext, not bool"),
    *(({"insecure": bad}, "insecure must be True or False") for bad in (None, "no", 1)),
    *(({"transport": bad}, "transport must be an object") for bad in (0, "aiohttp", ScriptedTransport)),
    ({"runtime": "trio"}, "runtime must be an object with the methods monotonic, now"),
    *(({"proxy": bad}, "proxy must be") for bad in ("proxy.test:3128", "", "socks5://user:hunter2@evil", 7)),
    ({"api_key": None, "base_url": None}, "PAYMENTS_API_KEY to the project's secret key"),
    ({"api_key": None, "base_url": None}, "no base URL"),
    ({"limits": 60_000}, "limits must be a RateLimits, not int"),
    *(
        ({"limit_store": bad}, "limit_store must be an address like")
        for bad in ("mysql://127.0.0.1/limits", "", "sqlite:/tmp/limits")
    ),
    ({"limit_store": 7}, "limit_store must be an address, not int"),
    ({"limit_store": "redis://db.test/0"}, "it is on another host, and it is not rediss"),
    ({"limit_store": "redis://127.0.0.1:port/0"}, "cannot be read"),
    ({"limit_store": ADDRESS, "limits": RateLimits().share(0.5)}, "use no RateLimits.share"),
    (
        {"limit_store": ADDRESS, "limits": RateLimits(refund_availability=5)},
        "from 6 requests a minute up, not 5",
    ),
    ({"limit_store": ADDRESS, "expected_workers": 0}, "expected_workers must be a whole number, 1 or more"),
    *(({"expected_workers": bad}, "expected_workers must be") for bad in (-1, 1.5, True)),
    ({"insecure_database": "yes"}, "insecure_database must be True or False, not str"),
    *(({"app_info": bad}, "app_info must be printable ASCII") for bad in ("a\r\nX: y", "é", "a\n", 7)),
]


@pytest.mark.fact("auth.prefix.sk", "auth.prefix.live", "auth.prefix.sandbox", "auth.key-stays-secret")
@pytest.mark.parametrize(
    ("surface", "options", "told"),
    [*(("async", *each) for each in BAD), *(("sync", *each) for each in BAD[::12])],
    ids=lambda value: ascii(value).replace(NEEDLE, ""),  # no listing shows the key
    indirect=["surface"],
)
def test_an_option_that_cannot_be_used_is_refused(surface: str, options: dict[str, Any], told: str) -> None:
    given = {"api_key": KEY, "base_url": BASE_URL, **options}
    with pytest.raises(ConfigurationError, match=re.escape(told)) as caught:
        make_client(surface, **given)
    shown = str(caught.value) + repr(caught.value) + repr(vars(caught.value))
    assert caught.value.effect == "none"
    assert NEEDLE not in told_by(caught.value) + shown_by(caught.value) + pickled(caught.value)
    for secret in (KEY, "abc", "user:hunter2", "evil"):
        assert secret not in shown


@pytest.mark.parametrize("host", ["sandbox:7788", "SANDBOX", "host.docker.internal:7788"])
async def test_plain_http_to_a_sandbox_elsewhere_takes_no_live_key(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setenv("PAYMENTS_SANDBOX_HOSTS", "host.docker.internal, Sandbox")
    line, keys = ScriptedTransport(EMPTY_PAGE), [KEY]
    connect_to = partial(connect, base_url=f"http://{host}/v1", transport=line)
    client = connect_to(api_key=lambda: keys[-1])
    await client.payouts.list()
    keys.append("sk_live_abc")  # it is rotated to a live one
    told = re.escape(
        "a live key goes over https only; plain http takes a sandbox key: give the client the "
        "sandbox's own (sk_sandbox_…), or the https address of the service as base URL"
    )
    with pytest.raises(ConfigurationError, match=told):
        await client.payouts.list()
    with pytest.raises(ConfigurationError, match=told):
        connect_to(api_key="sk_live_abc")
    with pytest.raises(ConfigurationError, match="the key is a live key"):
        client.with_options(api_key="sk_live_abc")
    assert len(line.requests) == 1
    for other in ("http://sandbox.evil.test/v1", "http://evil.test/v1", "ftp://sandbox/v1"):
        with pytest.raises(ConfigurationError, match="must be https"):
            connect(api_key=KEY, base_url=other)
    connect(api_key="sk_live_abc", base_url="https://sandbox/v1")


CARELESS = ssl.create_default_context()
CARELESS.check_hostname, CARELESS.verify_mode = False, ssl.CERT_NONE
UNVERIFIED = "the ssl_context verifies no certificate"


async def test_a_live_key_goes_only_to_a_verified_certificate(connect: Connect) -> None:
    live: dict[str, Any] = {"api_key": "sk_live_abc", "base_url": "https://pay.test/v1"}
    with pytest.raises(ConfigurationError, match=UNVERIFIED) as refused:
        connect(**live, ssl_context=CARELESS)
    assert "insecure=True" in str(refused.value)
    for options in (
        {**live, "ssl_context": ssl.create_default_context()},
        {**live, "ssl_context": CARELESS, "insecure": True},
        {**live, "api_key": KEY, "ssl_context": CARELESS},
        {**live, "insecure": True},
    ):
        connect(**options)
    transport = ScriptedTransport(EMPTY_PAGE)
    rotating: dict[str, Any] = {**live, "api_key": lambda: "sk_live_abc", "transport": transport}
    with pytest.raises(ConfigurationError, match=UNVERIFIED):
        await connect(**rotating, ssl_context=CARELESS).payouts.list()
    assert transport.requests == []


@pytest.mark.parametrize(
    ("key", "base_url"),
    [
        ("sk_sandbox_" + ("Kq7" * 67)[:200], "http://localhost:8080/v1"),
        ("sk_sandbox_A-b_9", "http://[::1]:8080/api/v1/"),
        ("sk_sandbox_a", "http://127.255.0.1/v1"),
        ("sk_sandbox_a", "https://pay.test/v1"),
        ("sk_live_a", "https://127.0.0.1/v1"),
    ],
)
def test_usable_keys_and_addresses_are_taken(surface: str, key: str, base_url: str) -> None:
    client = make_client(surface, key, base_url=base_url)
    assert base_url.rstrip("/") in repr(client)
    assert key not in repr(client)


@pytest.mark.fact("auth.key-selects-environment", "auth.bearer-header")
@pytest.mark.parametrize("key", ["sk_live_abc", "sk_sandbox_abc"])
async def test_the_key_alone_chooses_the_environment(connect: Connect, key: str) -> None:
    transport = ScriptedTransport(EMPTY_PAGE)
    await connect(transport=transport, api_key=key, base_url="https://pay.test/v1").payouts.list()
    (request,) = transport.requests
    assert request.url == "https://pay.test/v1/payouts"
    assert request.headers.pop("Authorization") == f"Bearer {key}"
    assert key not in request.url + "".join(request.headers.values())


async def test_the_environment_fills_what_is_missing_and_nothing_else(
    connect: Connect, watched: WatchedSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAYMENTS_API_KEY", watched.api_key)
    monkeypatch.setenv("PAYMENTS_BASE_URL", watched.base_url)
    await create(connect(api_key=None, base_url=None), "payouts")
    assert watched.headers["authorization"] == f"Bearer {watched.api_key}"
    transport = ScriptedTransport(EMPTY_PAGE)
    await connect(transport=transport).payouts.list()
    (request,) = transport.requests
    assert (request.headers["Authorization"], request.url.startswith(BASE_URL)) == (f"Bearer {KEY}", True)
    for empty in ("api_key", "base_url"):
        with pytest.raises(ConfigurationError, match=r"no API key|no base URL"):
            connect(**{"api_key": KEY, "base_url": BASE_URL, empty: ""})


@pytest.mark.parametrize(("share", "writes"), [("1/8", 7_500), ("0.5", 30_000), ("1", 60_000), ("", 60_000)])
def test_shares_of_limits(surface: str, share: str, writes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAYMENTS_RATE_SHARE", share)
    client = make_client(surface, KEY, base_url=BASE_URL, runtime=JumpingRuntime())
    assert client.limits_snapshot()["write"].limit == writes


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        *(({"PAYMENTS_RATE_SHARE": bad}, "PAYMENTS_RATE_SHARE") for bad in ("0", "2", "-1/2", "1/0", "half")),
        ({"PAYMENTS_LIMIT_STORE": "mysql://127.0.0.1/limits"}, "limit_store must be an address like"),
        ({"PAYMENTS_LIMIT_STORE": ADDRESS, "PAYMENTS_RATE_SHARE": "1/2"}, "PAYMENTS_RATE_SHARE"),
        *(
            ({"PAYMENTS_EXPECTED_WORKERS": bad}, "PAYMENTS_EXPECTED_WORKERS must be a whole number")
            for bad in ("0", "-1", "four", "1.5", "٣", "9" * 5_000)
        ),
    ],
)
def test_a_variable_that_cannot_be_used_is_refused(
    surface: str, variables: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=told):
        make_client(surface, KEY, base_url=BASE_URL)


def test_variables_of_the_limit_store_stand_in_for_the_options(
    surface: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAYMENTS_LIMIT_STORE", ADDRESS)
    monkeypatch.setenv("PAYMENTS_EXPECTED_WORKERS", "4")
    make = partial(make_client, surface, KEY, base_url=BASE_URL, runtime=JumpingRuntime())
    make()
    with pytest.raises(ConfigurationError, match="must be an address"):
        make(limit_store="")
    with pytest.raises(ConfigurationError, match="expected_workers"):
        make(expected_workers=0)


@pytest.mark.parametrize(("app_info", "ending"), [(None, ""), ("shop/1.2 (ada)", " shop/1.2 (ada)")])
async def test_a_user_agent_is_sent(
    connect: Connect, watched: WatchedSandbox, app_info: str | None, ending: str
) -> None:
    await connect(watched, app_info=app_info).payouts.list()
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    told = f"payments-sdk/{payments_async.__version__} python/{python}{ending}"
    assert watched.headers["user-agent"] == told


@pytest.mark.fact("auth.key-rotation")
async def test_a_callable_gives_the_key_of_each_request(connect: Connect, watched: WatchedSandbox) -> None:
    keys = [watched.new_key(), watched.new_key()]
    asked: list[str] = []

    def current() -> str:
        asked.append(keys[0])
        return keys[0]

    client = connect(watched, api_key=current)
    assert asked == []
    await client.payouts.list()
    keys.reverse()
    await client.payouts.list()
    await create(client, "payouts")
    await client.request("GET", "/payouts")
    sent = [request.headers["authorization"] for request in watched.arrived]
    assert sent == [f"Bearer {keys[1]}", *[f"Bearer {keys[0]}"] * 3]
    assert asked == [keys[1], *[keys[0]] * 3], "once a call"


# Siblings


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
        *(("timeout", 0), ("timeout", True), ("deadline", float("inf")), ("max_retries", -1)),
        *(("max_retry_after", "9"), ("on_limit", "x"), ("on_event", "print")),
    ],
)
def test_a_siblings_options_are_checked(surface: str, option: str, bad: Any) -> None:
    client = make_client(surface, KEY, base_url=BASE_URL)
    with pytest.raises(ConfigurationError, match=option):
        client.with_options(**{option: bad})


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
