"""PreparedRequest: fixed once, stored as text, sent from anywhere, and one payout however often."""

from __future__ import annotations

import json
from datetime import UTC
from decimal import Decimal
from typing import Any

import pytest

from payments_async import Instrument, PreparedRequest
from payments_async.errors import ConfigurationError
from tests.conftest import BASE_URL
from tests.support.creations import PAYOUT, SMALLEST
from tests.support.jumping import JumpingRuntime
from tests.support.motion import jumping, play
from tests.support.scripted import ScriptedTransport, answer
from tests.support.surfaces import Connect, error_of
from tests.support.watched import WatchedSandbox

ACCOUNT = "9876504321098"
BANK = Instrument.bank_account(ACCOUNT, "058", "NG", account_name="Ada Adeyemi")


@pytest.mark.parametrize("resource", SMALLEST)
async def test_what_was_stored_happens_once(connect: Connect, watched: WatchedSandbox, resource: str) -> None:
    prepared = getattr(jumping(connect, watched), resource).prepare(**SMALLEST[resource], description="é")
    stored = prepared.to_json()
    assert watched.arrived == []

    first = await jumping(connect, watched).send(PreparedRequest.from_json(stored))
    second = await jumping(connect, watched).send(PreparedRequest.from_json(stored), priority="bulk")

    assert len(watched.books.payouts()) + len(watched.books.payments()) == 1
    posts = [request for request in watched.arrived if request.method == "POST"]
    assert {request.body for request in posts} == {prepared.body}
    assert {request.headers["x-idempotency-key"] for request in posts} == {prepared.idempotency_key}
    assert [first.response.replayed, second.response.replayed] == [False, True]
    assert first == second


async def test_the_json_form_comes_back_equal(connect: Connect) -> None:
    client = connect(runtime=JumpingRuntime())
    prepared = client.payouts.prepare(
        **{**PAYOUT, "amount": Decimal("10.10"), "instrument": BANK},
        reference="inv-7",
        idempotency_key="stored-inv-7",
        extra_body={"note": "é"},
        extra_query={"expand": "all"},
        extra_headers={"X-Trace": "7"},
    )
    read = PreparedRequest.from_json(prepared.to_json())

    assert read == prepared
    assert read.body.endswith('"note":"é"}'.encode())
    assert read.operation == "payouts.create"
    assert read.path == "/payouts?expand=all"
    assert read.headers == {"X-Trace": "7"}
    assert read.reference == "inv-7"
    assert read.created_at.tzinfo is UTC
    assert (read.base_url, read.environment) == (BASE_URL, "sandbox")
    assert PreparedRequest.from_json(read.to_json()).to_json() == prepared.to_json()


FIELDS = json.loads(
    PreparedRequest(
        "payouts.create",
        "/payouts",
        b"{}",
        "stored-inv-7",
        JumpingRuntime().now(),
        BASE_URL,
        "sandbox",
        "0123456789abcdef",
    ).to_json()
)


def without(name: str) -> dict[str, Any]:
    """The stored form less one field."""
    return {key: value for key, value in FIELDS.items() if key != name}


@pytest.mark.parametrize(
    "text",
    [
        *("", "not JSON", "null", "{}", "[" * 100_000),
        *(json.dumps(without(name)) for name in FIELDS),
        *(json.dumps({**FIELDS, name: bad}) for name in FIELDS for bad in (7, {"a": 1})),
        json.dumps({**FIELDS, "version": 2}),
        json.dumps({**FIELDS, "created_at": "yesterday"}),
        json.dumps({**FIELDS, "unknown": "field"}),
        json.dumps({**FIELDS, "body": "\ud800"}),
    ],
    ids=lambda text: text[:40],
)
def test_any_other_text_is_a_value_error_that_shows_nothing(text: str) -> None:
    with pytest.raises(ValueError, match="not a PreparedRequest of this version") as caught:
        PreparedRequest.from_json(text)
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        ("payouts.create", "@elsewhere.test/payouts"),  # https://api.test@elsewhere.test/payouts
        ("payouts.create", "/payment/intents"),
        ("payouts.create", "/payouts/"),
        ("payouts.create", "/payouts#fragment"),
        ("payouts.create", "/payouts?a=1\r\nX-Other: 1"),
        ("payouts.list", "/payouts"),
        ("payouts.burn", "/payouts"),
        ("payment_intents.requery", "/payment/intents/%2e%2e/requery"),
        ("GET /payouts", "/payouts"),
        ("POST /refunds", "/payouts"),
        ("POST @elsewhere.test/payouts", "@elsewhere.test/payouts"),
        ("POST /a/../b", "/a/../b"),
        ("POST", ""),
    ],
)
def test_a_stored_operation_that_prepare_cannot_make_is_refused(operation: str, path: str) -> None:
    with pytest.raises(ValueError, match="not a PreparedRequest of this version"):
        PreparedRequest.from_json(json.dumps({**FIELDS, "operation": operation, "path": path}))


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        ("payouts.create", "/payouts?expand=all&note=a+b%2Fc"),
        ("checkouts.create", "/payment/checkouts"),
        ("payment_intents.requery", "/payment/intents/pi_1.2%3A3%2F4/requery"),
        ("POST /refunds", "/refunds"),
        ("DELETE /webhooks/wh_1", "/webhooks/wh_1?now=true"),
    ],
)
def test_a_stored_operation_that_can_be_made_is_read(operation: str, path: str) -> None:
    read = PreparedRequest.from_json(json.dumps({**FIELDS, "operation": operation, "path": path}))
    assert (read.operation, read.path) == (operation, path)


@pytest.mark.parametrize(
    ("made_with", "sent_with", "told"),
    [
        ({"base_url": "https://other.test/v1"}, {}, "for https://other.test/v1; .* another address"),
        ({"base_url": "http://localhost:9/v1"}, {}, "another address"),
        (
            {"api_key": "sk_live_x", "base_url": "https://pay.test/v1"},
            {"api_key": "sk_sandbox_x", "base_url": "https://pay.test/v1"},
            "prepared for live, .*the key is a sandbox key",
        ),
        (
            {"api_key": "sk_sandbox_x", "base_url": "https://pay.test/v1"},
            {"api_key": "sk_live_x", "base_url": "https://pay.test/v1"},
            "prepared for sandbox, .*the key is a live key",
        ),
    ],
)
@pytest.mark.parametrize("how", ["send", "resolve"])
async def test_a_request_for_elsewhere_is_refused_and_stays_here(
    connect: Connect, made_with: Any, sent_with: Any, told: str, how: str
) -> None:
    transport = ScriptedTransport(answer(201, {"data": {"id": "po_1"}}))
    prepared = connect(transport=transport, **made_with).payouts.prepare(**PAYOUT)
    client = connect(transport=transport, **sent_with)
    caught = await error_of(ConfigurationError, getattr(client, how)(prepared), match=told)
    assert transport.requests == []
    assert caught.effect == "none"
    assert caught.operation == "payouts.create"


@pytest.mark.parametrize("how", ["send", "resolve"])
async def test_a_request_goes_to_its_service_by_any_spelling(connect: Connect, how: str) -> None:
    transport = ScriptedTransport(answer(201, {"data": {"id": "po_1"}}))
    stored = (
        connect(transport=transport, base_url="https://pay.test/v1")
        .payouts.prepare(**PAYOUT, reference="r-1")
        .to_json()
    )
    client = connect(transport=transport, base_url="https://Pay.test.:443/v1/")
    assert (await getattr(client, how)(PreparedRequest.from_json(stored))).id == "po_1"
    assert transport.requests[0].url == "https://Pay.test.:443/v1/payouts", "it is sent as it was given"


async def test_each_key_is_drawn_when_it_is_needed(connect: Connect) -> None:
    """No copy of the process has it in its memory."""
    played = play(connect, answer(201, {"data": {"id": "po_1"}}), seed=7)
    assert played.client.payouts.prepare(**PAYOUT).idempotency_key == JumpingRuntime(7).token(16).hex()
    played.runtime.token = lambda size: b"\x07" * size
    await played.client.payouts.create(**PAYOUT)
    await played.client.payouts.create(**PAYOUT, idempotency_key="of-the-caller")
    assert played.keys == ["07" * 16, "of-the-caller"]
