"""Tracebacks that print locals show no account data of arguments, and no key, whatever was refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from payments_async.errors import ConfigurationError
from payments_async.params import CustomerInput, Instrument, PreparedRequest
from tests.conftest import BASE_URL, KEY
from tests.support.canary import CANARY_ACCOUNT, LONG_CANARY_KEY, NEEDLE, pickled, shown_by, told_by
from tests.support.jumping import JumpingRuntime
from tests.support.scripted import ScriptedTransport, answer, lost, unsent
from tests.support.surfaces import Connect, make_client

EMAIL, NAME, PASSWORD = "ada@canary.example", "Ada-Canary Adeyemi", "canary-password"
BANK = {"type": "bank_account", "account_number": CANARY_ACCOUNT, "account_name": NAME, "bank_code": "058"}
CUSTOMER = {"email": EMAIL, "last_name": NAME}
PAYOUT = {
    "amount": "10.10",
    "currency": "XOF",
    "method": "mtn_bj",
    "instrument": {**BANK, "country": "NG"},
    "customer": CUSTOMER,
    "metadata": {"account": CANARY_ACCOUNT},
    "reference": "inv-7",
}
USUAL = {**PAYOUT, "instrument": Instrument(**BANK, country="NG"), "customer": CustomerInput(**CUSTOMER)}
PAYMENT = {
    "amount": 5,
    "currency": "XOF",
    "return_url": "https://shop.test/",
    "receipt_email": EMAIL,
    "customer": CUSTOMER,
    "metadata": {"account": CANARY_ACCOUNT},
}
MORE = {"extra_body": {"note": CANARY_ACCOUNT}}
CALLS: dict[str, Callable[[Any], Any]] = {
    "payouts.create": lambda client: client.payouts.create(**PAYOUT),
    "payouts.create with more": lambda client: client.payouts.create(**PAYOUT, **MORE),
    "checkouts.create": lambda client: client.checkouts.create(**PAYMENT),
    "payment_intents.create": lambda client: client.payment_intents.create(**PAYMENT),
    "request": lambda client: client.request("POST", "/payouts", json=PAYOUT),
}
REFUSED: dict[str, Callable[[Any], Any]] = {
    "a float": lambda client: client.payouts.create(**{**PAYOUT, "amount": 1.5}),
    "a key": lambda client: client.payouts.create(**PAYOUT, **MORE, idempotency_key="short"),
    "a key of a usual payout": lambda client: client.payouts.create(**USUAL, idempotency_key="short"),
    "a timeout of a usual payout": lambda client: client.payouts.create(**USUAL, timeout=-1),
    "a key of a payment": lambda client: client.checkouts.create(**PAYMENT, **MORE, idempotency_key="short"),
    "a name": lambda client: client.payouts.create(**PAYOUT, refrence="r"),
    "a name with options": lambda client: client.payment_intents.create(**PAYMENT, **MORE, bogus=1),
    "an option of a request": lambda client: client.request("POST", "/x", json=PAYOUT, idempotency_key="s"),
    "a preparation": lambda client: client.payouts.prepare(**{**PAYOUT, "amount": 1.5}),
    "a preparation's key": lambda client: client.payouts.prepare(**PAYOUT, **MORE, idempotency_key="short"),
    "a preparation's option": lambda client: client.payouts.prepare(**PAYOUT, timeout=1),
    "a preparation's name": lambda client: client.checkouts.prepare(**PAYMENT, bogus=1),
}
ENDINGS: dict[str, Any] = {
    "lost": lost(),
    "unsent": unsent(),
    "422": answer(422, {"message": "No."}),
    "other": answer(201, {"data": {"id": "po_1", "amount": {"value": 3, "currency": "XOF"}}}),
    "not JSON": answer(201, b"<html>"),
}


def ended(surface: str, step: Any, call: Callable[[Any], Any]) -> BaseException:
    """What a call on a client of the surface ends with."""
    transport = ScriptedTransport(step)
    options = {"transport": transport, "runtime": JumpingRuntime(), "max_retries": 0}
    client = make_client(surface, KEY, base_url=BASE_URL, **options)

    async def awaited() -> None:
        async with client:
            found = call(client)
            if asyncio.iscoroutine(found):
                await found

    with pytest.raises(Exception) as caught:
        if surface == "async":
            asyncio.run(awaited())
        else:
            with client._blocking as blocking:
                call(blocking)
    return caught.value


def assert_hidden(error: BaseException) -> None:
    """Neither the account, nor the person, nor the password is in any frame of the package."""
    shown = told_by(error)
    assert [text for text in (CANARY_ACCOUNT, EMAIL, NAME, PASSWORD) if text in shown] == []


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        *(("payouts.create", ending) for ending in ENDINGS),
        ("payouts.create with more", "lost"),
        ("payouts.create with more", "other"),
        ("checkouts.create", "422"),
        ("checkouts.create", "not JSON"),
        ("payment_intents.create", "unsent"),
        ("payment_intents.create", "other"),
        ("request", "lost"),
        ("request", "not JSON"),
    ],
)
def test_no_frame_of_a_call_that_failed_holds_its_arguments(surface: str, name: str, ending: str) -> None:
    assert_hidden(ended(surface, ENDINGS[ending], CALLS[name]))


@pytest.mark.parametrize("name", REFUSED)
def test_no_frame_of_a_call_that_was_refused_holds_its_arguments(surface: str, name: str) -> None:
    assert_hidden(ended(surface, unsent(), REFUSED[name]))


@pytest.mark.parametrize(
    "text", ['{"version": 2, "body": "%s"}', '{"body": "%s"', '{"version": 1, "body": "%s"}']
)
def test_no_frame_of_a_request_that_cannot_be_read_holds_it(text: str) -> None:
    with pytest.raises(ValueError, match="not a PreparedRequest") as caught:
        PreparedRequest.from_json(text % CANARY_ACCOUNT)
    assert_hidden(caught.value)


ADDRESSES = [
    f"https://shop:{PASSWORD}@pay.test/v1",
    f"https://shop:{PASSWORD}@pay.test:x/v1",
    f"https://shop:{PASSWORD}@[pay.test/v1",
    f"https://shop:{PASSWORD}@pay.test/v1 ",
    f"https://shop:{PASSWORD}@/v1",
    f"ftp://shop:{PASSWORD}@pay.test",
]


@pytest.mark.parametrize(
    ("base_url", "given"),
    [
        *((base_url, "argument") for base_url in ADDRESSES),
        (ADDRESSES[0], "variable"),
        (ADDRESSES[2], "variable"),
    ],
)
def test_no_frame_holds_the_password_of_a_refused_address(
    surface: str, base_url: str, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAYMENTS_BASE_URL", base_url)
    with pytest.raises(ConfigurationError) as caught:
        make_client(surface, KEY, **({"base_url": base_url} if given == "argument" else {}))
    assert_hidden(caught.value)


key_stays_secret = pytest.mark.fact("auth.key-stays-secret")


@key_stays_secret
@pytest.mark.parametrize("name", ["environment", "timeout", "on_limit", "base_url", "app_info", "limits"])
def test_a_key_in_the_wrong_place_is_not_repeated(surface: str, name: str) -> None:
    options = {"base_url": BASE_URL, name: LONG_CANARY_KEY}
    if name == "app_info":
        options[name] += "\n"
    with pytest.raises(ConfigurationError) as caught:
        make_client(surface, LONG_CANARY_KEY, **options)
    assert NEEDLE not in shown_by(caught.value) + pickled(caught.value)


@key_stays_secret
@pytest.mark.parametrize(
    ("given", "environment", "told"),
    [
        (LONG_CANARY_KEY + "\n", None, "malformed"),
        (LONG_CANARY_KEY.encode(), None, "malformed"),
        (None, None, "no API key"),
        (LONG_CANARY_KEY, "live", "the key is a sandbox key"),
        (LONG_CANARY_KEY.replace("sandbox", "live"), None, "a live key goes over https only"),
    ],
    ids=["line end", "bytes", "none", "other environment", "not https"],  # no listing shows the key
)
async def test_a_callables_key_is_checked_and_shows_nowhere(
    connect: Connect, given: Any, environment: Any, told: str
) -> None:
    transport = ScriptedTransport(answer(200, {"data": []}))
    client = connect(transport=transport, api_key=lambda: given, environment=environment)
    for call in (client.payouts.list, lambda: client.payouts.create(**PAYOUT)):
        with pytest.raises(ConfigurationError, match=told) as caught:
            await call()
        assert NEEDLE not in told_by(caught.value) + shown_by(caught.value) + pickled(caught.value)
    assert transport.requests == []
