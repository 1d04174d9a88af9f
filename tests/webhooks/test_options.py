"""Options that cannot be used are refused with words that help; secrets show nowhere."""

from __future__ import annotations

import copy
import inspect
import logging
import pickle
import re
from typing import Any

import pytest

import payments_async.webhooks
import payments_sync.webhooks
from payments_async import ConfigurationError, InvalidRequest
from payments_async.webhooks import MemoryStore
from tests.support.canary import Scanner, shown_by, told_by
from tests.support.motion import play
from tests.support.receivers import HOOKS, OLD_SECRET, SECRET, Handler, make_receiver
from tests.support.scripted import answer
from tests.support.surfaces import Connect

ONE_SURFACE = pytest.mark.parametrize("surface", ["async"], indirect=True)
"""For checks that both receivers share."""


@pytest.fixture
def client(connect: Connect) -> Any:
    return play(connect, answer(200, {"data": []})).client


@ONE_SURFACE
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"on_payout": None}, "needs on_payout, on_payment or both"),
        ({"on_payout": "paid"}, "the handler of a payout must be a function"),
        ({"secrets": [SECRET[:31]]}, "webhook secret 1 is shorter than 32 bytes"),
        ({"secrets": [SECRET, "short"]}, "webhook secret 2 is shorter than 32 bytes"),
        ({"secrets": [f"{SECRET}\ud800"]}, "each webhook secret must be text that UTF-8 can write, or bytes"),
        ({"secrets": [SECRET, 7]}, "bytes or text"),
        *(({"secrets": bad}, "a list of one or two") for bad in (SECRET, [], [SECRET, OLD_SECRET, SECRET])),
        ({"base_url": None}, "plain ASCII text"),
        ({"base_url": "https://shop.example/ho oks"}, "plain ASCII text"),
        ({"base_url": "/hooks"}, "an address such as"),
        ({"base_url": "https://shop.example:port/hooks"}, "an address such as"),
        ({"base_url": "https://shop.example/hooks#a"}, "an address such as"),
        ({"base_url": "https://shop.example\\hooks"}, "an address such as"),
        ({"base_url": "http://shop.example/hooks"}, "must be https"),
    ],
)
def test_options_that_cannot_be_used_are_refused(client: Any, options: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told) as raised:
        make_receiver(client, **{"on_payout": Handler(), **options})
    scanner = Scanner()
    scanner.look("the error", told_by(raised.value))
    assert not scanner.found


@pytest.mark.parametrize("base_url", ["http://127.0.0.1:8080/h/", "http://localhost", "https://a.example/x/"])
def test_addresses_that_can_be_used(client: Any, base_url: str) -> None:
    receiver = make_receiver(client, on_payout=Handler(), base_url=base_url)
    assert receiver.base_url == base_url.rstrip("/")
    assert re.fullmatch(re.escape(receiver.base_url) + "/[A-Za-z0-9_-]+", receiver.url_for_payout("r-1"))


@pytest.mark.parametrize(
    ("hosts", "options", "is_taken"),
    [
        ("sandbox, App", {}, True),
        ("sandbox", {}, False),
        ("", {}, False),
        ("app", {"base_url": "https://pay.test/v1"}, False),
        ("app", {"base_url": "https://pay.test/v1", "api_key": "sk_live_of_a_shop_1"}, False),
    ],
)
def test_plain_http_from_a_sandbox_goes_to_a_host_that_is_named(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, hosts: str, options: dict[str, str], is_taken: bool
) -> None:
    monkeypatch.setenv("PAYMENTS_SANDBOX_HOSTS", hosts)
    client = play(connect, **options).client.with_options(max_retries=0)
    if is_taken:
        receiver = make_receiver(client, on_payout=Handler(), base_url="http://app:8000/hooks")
        assert receiver.url_for_payout("r-1").startswith("http://app:8000/hooks/")
    else:
        with pytest.raises(ConfigurationError, match="for a host that PAYMENTS_SANDBOX_HOSTS names"):
            make_receiver(client, on_payout=Handler(), base_url="http://app:8000/hooks")


@ONE_SURFACE
@pytest.mark.parametrize(
    ("reference", "expires_in", "fields"),
    [
        ("", 60, {"reference"}),
        ("x" * 192, 60, {"reference"}),
        ("a\nb", 60, {"reference"}),
        ("\ud800", 60, {"reference"}),
        ("r-1", 0, {"expires_in"}),
        ("r-1", float("nan"), {"expires_in"}),
        ("r-1", True, {"expires_in"}),
        (7, None, {"reference", "expires_in"}),
    ],
)
def test_urls_that_cannot_be_made_are_refused(
    client: Any, reference: Any, expires_in: Any, fields: set[str]
) -> None:
    receiver = make_receiver(client, on_payout=Handler())
    with pytest.raises(InvalidRequest, match=r"webhooks\.url_for_payout was not sent") as raised:
        receiver.url_for_payout(reference, expires_in=expires_in)
    assert set(raised.value.errors) == fields


def test_a_url_is_never_longer_than_the_service_takes(client: Any) -> None:
    longest = "\U0001f600" * 191
    assert len(make_receiver(client, on_payout=Handler()).url_for_payout(longest)) <= 2048
    receiver = make_receiver(client, on_payout=Handler(), base_url=HOOKS + "x" * 1_000)
    with pytest.raises(InvalidRequest, match="more than 2048"):
        receiver.url_for_payout(longest)
    assert receiver.url_for_payout("r-1")


def test_a_url_that_nobody_would_serve_is_not_made(client: Any) -> None:
    payouts = make_receiver(client, on_payout=Handler())
    payments = make_receiver(client, on_payment=Handler())
    with pytest.raises(ConfigurationError, match="has no on_payment"):
        payouts.url_for_payment("order-7")
    with pytest.raises(ConfigurationError, match="has no on_payment"):
        payouts.url_for_checkout("order-7")
    with pytest.raises(ConfigurationError, match="has no on_payout"):
        payments.url_for_payout("r-1")
    assert repr(payouts) == f"<WebhookReceiver of payout at {HOOKS}>"
    assert repr(payments) == f"<WebhookReceiver of payment, checkout at {HOOKS}>"


async def test_secrets_show_nowhere(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    receiver = make_receiver(client, on_payout=Handler(), secrets=[SECRET, OLD_SECRET])
    url = receiver.url_for_payout("r-1")
    await receiver.receive(path=url)
    real = getattr(receiver, "_blocking", receiver)
    scanner = Scanner()
    scanner.look("the receiver", shown_by(real))
    scanner.look("its parts", repr(real._signer))
    scanner.look("the log", caplog.text)
    scanner.look("a URL", url)
    for walk in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError) as raised:
            walk(real._signer)
        scanner.look("the refusal of a pickle", told_by(raised.value))
    assert not scanner.found
    assert repr(real._signer) == "<webhook secrets>"


def test_a_memory_of_states_is_bounded() -> None:
    store = MemoryStore(most=2)
    for state in ("one", "two", "two", "three"):
        store.add(state)
    assert [store.seen(state) for state in ("one", "two", "three")] == [False, True, True]
    assert repr(store) == "MemoryStore(2 of 2)"


def test_the_blocking_receiver_has_the_same_methods_and_signatures() -> None:
    ours, theirs = payments_sync.webhooks.WebhookReceiver, payments_async.webhooks.WebhookReceiver
    names = {name for name in vars(theirs) if not name.startswith("_")}
    assert names == {"receive"} == {name for name in vars(ours) if not name.startswith("_")}
    for name in ("__init__", "receive"):
        given = str(inspect.signature(getattr(theirs, name)))
        words = given.replace("AsyncPayments", "Payments").replace("AsyncIterable", "Iterable")
        assert str(inspect.signature(getattr(ours, name))) == words
        assert inspect.getdoc(getattr(ours, name))
    assert not inspect.iscoroutinefunction(ours.receive)
    assert ours.url_for_payout is theirs.url_for_payout
