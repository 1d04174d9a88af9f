"""Refusals as the sandbox words them: the class, the service's message, the facts (Errors)."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote

import pytest

from payments_async.errors import (
    APIStatusError,
    AuthenticationError,
    NotFoundError,
    PermissionDeniedError,
    UnprocessableError,
)
from payments_async.sandbox import Sandbox
from tests.support.calls import PAYMENT, PAYOUT
from tests.support.creations import row
from tests.support.scripted import ScriptedTransport, answer
from tests.support.surfaces import Connect, error_of

PHONELESS = {**PAYOUT, "instrument": {"type": "phone"}}
CALLS: dict[str, Callable[[Any], Any]] = {
    "list": lambda client: client.payouts.list(),
    "pay": lambda client: client.payouts.create(**PAYOUT),
    "pay no phone": lambda client: client.payouts.create(**PHONELESS),
    "collect": lambda client: client.checkouts.create(**PAYMENT),
    "read": lambda client: client.checkouts.retrieve("cs_unknown"),
    "read an attempt": lambda client: client.payment_intents.retrieve_attempt("pi_x", "pa_x"),
}
KEYS: dict[str, Callable[[Sandbox], str]] = {
    "own": lambda sandbox: sandbox.api_key,
    "unknown": lambda _: "sk_sandbox_unknown0123456789",
    "inactive": lambda sandbox: sandbox.new_key("inactive"),
    "expired": lambda sandbox: sandbox.new_key("expired"),
    "of another address": lambda sandbox: sandbox.new_key(allowlist=["10.0.0.1"]),
}


@pytest.mark.parametrize(
    ("key", "call", "cls", "status"),
    [
        row("unknown", "list", AuthenticationError, 401, facts="error.401"),
        row("inactive", "pay", AuthenticationError, 401, facts="error.401"),
        row("expired", "collect", AuthenticationError, 401, facts="error.401"),
        row("of another address", "pay", PermissionDeniedError, 403, facts="error.403"),
        row("own", "read", NotFoundError, 404, facts="error.404"),
        row("own", "read an attempt", NotFoundError, 404, facts="error.404"),
        row("own", "pay no phone", UnprocessableError, 422, facts="error.422"),
    ],
)
@pytest.mark.observed("request ids")
async def test_a_refusal_is_its_class_with_the_services_message(
    connect: Connect, sandbox: Sandbox, key: str, call: str, cls: type[APIStatusError], status: int
) -> None:
    caught = await error_of(APIStatusError, CALLS[call](connect(sandbox, api_key=KEYS[key](sandbox))))
    assert type(caught) is cls
    assert (caught.status, caught.effect) == (status, "none")
    assert caught.body is not None
    assert caught.message == caught.body.json()["message"]
    assert caught.errors == caught.body.json().get("errors", {})
    assert ("instrument.phone_number" in caught.errors) == (status == 422)
    assert caught.request_id == sandbox.requests[-1].request_id
    assert len(sandbox.requests) == 1
    assert not sandbox.books.payouts()
    assert not sandbox.books.payments()


NAME, ADDRESS, LAST, CITY = "Ada-Maria Agbo", "TXLAQ63Xg1NAzckPwKHvzw", "O'Brien (sr.)", "Rio"
SENT: dict[str, Any] = {
    **PAYOUT,
    "description": "Wages",
    "instrument": {
        "type": "crypto_address",
        "account_name": f" {NAME} ",
        "address": ADDRESS,
        "country": "BJ",
        "notes": [{"deep": ["in-a-list"]}, None, 7],
    },
    "customer": {"last_name": LAST, "city": CITY, "first_name": "Amo"},
}


async def refused(connect: Connect, said: Any, sent: Any = SENT, method: str = "POST") -> UnprocessableError:
    client = connect(transport=ScriptedTransport(answer(422, said)))
    return await error_of(UnprocessableError, client.request(method, "/payouts", json=sent))


async def test_words_that_name_no_field_are_told_without_one(connect: Connect) -> None:
    said = {"message": "Refused.", "errors": ["The account is closed.", "Call the bank."]}
    assert "; The account is closed. Call the bank; " in str(await refused(connect, said))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f"No account of {NAME}.", "No account of ***."),
        (f"no account of {NAME.upper()}", "no account of ***"),
        (f"{ADDRESS} is not on the network", "*** is not on the network"),
        (f"tron:{ADDRESS}x", "tron:***x"),
        (f"{LAST} of {CITY}", "*** of ***"),
        ("the amount of crypto_address BJ is wrong, Amo", "the amount of crypto_address BJ is wrong, ***"),
        ("Wages in-a-list", "Wages ***"),
        ("Riot", "Riot"),
        (f"{'x' * 990} {ADDRESS}", f"{'x' * 990} ***"),
    ],
)
async def test_what_was_sent_of_somebody_comes_back_masked(connect: Connect, said: str, shown: str) -> None:
    errors = {"instrument": {"address": [said]}, "amount": ["low"], f"customer.{CITY}": ["x"]}
    error = await refused(connect, {"message": said, "errors": errors})
    assert error.message == shown
    assert error.errors == {"instrument.address": [shown], "amount": ["low"], "customer.***": ["x"]}
    assert shown.removesuffix(".") in str(error)
    told = f"{error!r} {error}".encode() + pickle.dumps(error)
    assert [text for text in (NAME, ADDRESS, LAST) if text.encode() in told] == []


TOKEN, SIGNED = "aB3_xyz~tok+9", "s3cr et/7Q"
URL = f"https://shop.test/hooks/payouts/{quote(TOKEN)}?of=june&sig={quote(SIGNED, safe='')}"


@pytest.mark.parametrize(
    "form",
    [
        *(
            str,
            str.upper,
            str.lower,
            lambda url: quote(url, safe=""),
            unquote,
            lambda url: json.dumps(url)[1:-1],
        ),
        *(lambda url: url.replace("/", "\\/"), lambda url: url.partition("?")[2], lambda url: TOKEN),
    ],
)
async def test_the_token_of_its_webhook_url_comes_back_masked(connect: Connect, form: Any) -> None:
    said = f"cannot deliver to {form(URL)}"
    error = await refused(connect, {"message": said, "errors": {"webhook_url": [said]}}, {"webhook_url": URL})
    told = f"{error!r} {error} {error.errors} {error.message}".lower().encode() + pickle.dumps(error)
    once = [form for part in (TOKEN, SIGNED) for form in (part, quote(part), quote(part, safe=""))]
    parts = [*once, *(quote(part, safe="") for part in once)]
    assert [part for part in parts if part.lower().encode() in told] == []
    assert "cannot deliver to" in error.message


@pytest.mark.parametrize(
    "sent", [None, {}, {"instrument": None, "customer": "A"}, {"instrument": {"type": "phone"}}]
)
async def test_a_request_that_names_nobody_masks_nothing(connect: Connect, sent: Any) -> None:
    assert (await refused(connect, {"message": "phone A"}, sent)).message == "phone A"
