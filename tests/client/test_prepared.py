"""PreparedRequest: stored as text, sent from anywhere, and carried out once, whatever its key or time."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC
from decimal import Decimal
from typing import Any

import pytest

from payments_async import Instrument, PreparedRequest
from payments_async.errors import (
    ConfigurationError,
    DuplicateReference,
    OutcomeUnknown,
    ResponseMismatch,
)
from payments_async.events import RequestSent
from payments_async.sandbox import Sandbox
from tests.conftest import BASE_URL
from tests.support.creations import PAYMENT, PAYOUT, SMALLEST
from tests.support.jumping import JumpingRuntime
from tests.support.motion import PAYOUT as MADE
from tests.support.motion import REPLAYED, jumping, listed, methods, payout_answer, play, refusal, unresolved
from tests.support.scripted import ScriptedTransport, answer, lost
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


HOURS = 3600.0


@pytest.mark.parametrize(
    ("address", "advice"),
    [
        ("https://api.pay.test/v1", "rotated within its project, send it with rotated_key=True"),
        ("http://127.0.0.1:9/v1", "of another sandbox, .* what it made is gone; prepare it anew"),
    ],
)
async def test_a_request_of_another_secret_key_is_not_sent(
    connect: Connect, address: str, advice: str
) -> None:
    transport = ScriptedTransport()
    there = {"base_url": address, "transport": transport}
    prepared = connect(**there, api_key="sk_sandbox_one").payouts.prepare(**PAYOUT, reference="r-1")
    other = connect(**there, api_key="sk_sandbox_other")
    with pytest.raises(ConfigurationError, match=advice):
        await other.send(PreparedRequest.from_json(prepared.to_json()))
    assert transport.requests == []


async def test_resolving_under_another_key_sends_nothing(connect: Connect, sandbox: Sandbox) -> None:
    sandbox.on("payouts.create").respond("lost_response")
    caught = await error_of(
        OutcomeUnknown, connect(sandbox, max_retries=0).payouts.create(**PAYOUT, reference="r-1")
    )
    stranger = connect(sandbox, api_key=sandbox.new_key())
    with pytest.raises(OutcomeUnknown):
        await stranger.resolve(caught)
    assert len(sandbox.books.payouts()) == 1
    assert (await connect(sandbox).resolve(caught)).reference == "r-1"


async def test_after_its_keys_time_a_reference_protects(connect: Connect, sandbox: Sandbox) -> None:
    runtime = JumpingRuntime()
    client = jumping(connect, sandbox, runtime=runtime)
    bare = client.payment_intents.prepare(**PAYMENT)
    named = client.payouts.prepare(**PAYOUT, reference="r-1")
    await client.send(bare)
    await client.send(named)
    runtime.advance(25 * HOURS)
    sandbox.advance(25 * HOURS)
    with pytest.raises(ConfigurationError, match="over 23 hours ago"):
        await client.send(bare)
    with pytest.raises(DuplicateReference):
        await client.send(named)
    assert len(sandbox.books.payments()) == len(sandbox.books.payouts()) == 1


async def test_a_key_of_the_callers_own_protects_from_its_first_use(connect: Connect) -> None:
    runtime = JumpingRuntime()
    client = connect(transport=ScriptedTransport(lost()), runtime=runtime)
    first = client.payment_intents.prepare(**PAYMENT, idempotency_key="order-7-a")
    runtime.advance(20 * HOURS)
    again = client.payment_intents.prepare(**PAYMENT, idempotency_key="order-7-a")
    assert again.created_at == first.created_at
    runtime.advance(5 * HOURS)
    with pytest.raises(ConfigurationError, match="over 23 hours ago"):
        await client.send(again)


@pytest.mark.parametrize(
    "more", [{"reference": "r-2"}, {"reference": "r-1", "extra_body": {"reference": "r-2"}}]
)
async def test_the_reference_is_the_one_in_the_bytes(connect: Connect, more: dict[str, Any]) -> None:
    transport = ScriptedTransport(lost())
    client = connect(transport=transport, max_retries=0)
    caught = await error_of(OutcomeUnknown, client.payouts.create(**PAYOUT, **more))
    assert caught.reference == transport.bodies[0]["reference"] == "r-2"


@pytest.mark.parametrize(
    ("path", "body", "reference"),
    [
        ("/payouts", {"reference": "r-2"}, "r-2"),
        ("/transfers", {"reference": "r-2"}, None),
        ("/payouts", {"reference": 7}, None),
        ("/payouts", None, None),
    ],
)
async def test_what_is_a_reference(connect: Connect, path: str, body: Any, reference: str | None) -> None:
    client = connect(transport=ScriptedTransport(lost()), max_retries=0)
    caught = await error_of(OutcomeUnknown, client.request("POST", path, json=body))
    assert caught.reference == reference


@pytest.mark.parametrize("surface", ["async"], indirect=True)
async def test_a_cancelled_resolve_still_says_that_it_is_in_doubt(connect: Connect) -> None:
    transport = ScriptedTransport(lost())
    client = connect(transport=transport, max_retries=0)
    caught = await error_of(OutcomeUnknown, client.payouts.create(**PAYOUT, reference="r-1"))
    asking = asyncio.ensure_future(client.resolve(caught))
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    asking = asyncio.ensure_future(client.resolve(caught))
    await asyncio.sleep(0)
    asking.cancel()
    stopped = await error_of(asyncio.CancelledError, asking)
    assert stopped.outcome.reference == "r-1"  # type: ignore[attr-defined] # it rides along


OLD, NEW = "sk_sandbox_before", "sk_sandbox_rotated"


async def test_a_request_in_doubt_is_bound_to_the_key_that_it_was_last_sent_under(connect: Connect) -> None:
    heard: list[Any] = []
    old = play(connect, listed(), api_key=OLD)
    new = play(connect, lost(), payout_answer(headers=REPLAYED), api_key=NEW, on_event=heard.append)
    prepared = old.client.payouts.prepare(**MADE)
    caught = await error_of(OutcomeUnknown, new.client.send(prepared, rotated_key=True, max_retries=0))
    bound = new.client.payouts.prepare(**MADE).key_fingerprint
    assert caught.prepared.key_fingerprint == bound != prepared.key_fingerprint
    assert [event.key_fingerprint for event in heard if isinstance(event, RequestSent)] == [bound]
    await unresolved(old, caught)
    assert methods(old) == ["GET"], "under another key nothing is sent again"
    assert (await new.client.resolve(caught)).id == "po_1"
    assert new.keys == [prepared.idempotency_key] * 2


async def test_a_key_that_nothing_was_sent_under_changes_nothing(connect: Connect) -> None:
    old = play(connect, lost(), answer(201, {"data": {"id": "pi_1"}}), api_key=OLD)
    prepared = old.client.payment_intents.prepare(**PAYMENT)
    with pytest.raises(OutcomeUnknown):
        await old.client.send(prepared, max_retries=0)
    new = play(connect, listed(), api_key=NEW)
    caught = await error_of(
        OutcomeUnknown, new.client.send(prepared, rotated_key=True), match="does not tell its time"
    )
    assert caught.prepared == prepared


@pytest.mark.parametrize(("first", "asked"), [(refusal(429, {"Retry-After": "1"}), NEW), (lost(), OLD)])
async def test_a_retry_after_a_rotation_is_bound_to_its_own_key(
    connect: Connect, first: Any, asked: str
) -> None:
    keys = iter([OLD, NEW, NEW])
    played = play(connect, first, lost(), api_key=lambda: next(keys))
    caught = await error_of(OutcomeUnknown, played.client.payouts.create(**MADE, max_retries=1))
    assert played.transport.requests[1].headers["Authorization"] == f"Bearer {asked}"
    found = connect(api_key=asked, transport=ScriptedTransport()).payouts.prepare(**MADE)
    assert caught.prepared.key_fingerprint == found.key_fingerprint


async def test_a_request_that_was_carried_out_otherwise_is_bound_to_its_key_too(connect: Connect) -> None:
    prepared = play(connect, api_key=OLD).client.payouts.prepare(**MADE)
    new = play(connect, payout_answer(reference="another"), api_key=NEW)
    caught = await error_of(ResponseMismatch, new.client.send(prepared, rotated_key=True))
    assert caught.prepared.key_fingerprint == new.client.payouts.prepare(**MADE).key_fingerprint
