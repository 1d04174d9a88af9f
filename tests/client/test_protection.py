"""What keeps a write from happening twice, when it is sent again later, elsewhere or under another key."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from payments_async import PreparedRequest
from payments_async._http.transport import AiohttpTransport
from payments_async._http.types import HTTPResponse
from payments_async._runtime import SYSTEM
from payments_async.errors import (
    ConfigurationError,
    DuplicateReference,
    OutcomeUnknown,
    ResponseMismatch,
)
from payments_async.events import RequestSent
from payments_async.sandbox import Sandbox
from tests.support.creations import PAYMENT, PAYOUT
from tests.support.jumping import JumpingRuntime
from tests.support.motion import PAYOUT as MADE
from tests.support.motion import REPLAYED, listed, methods, payout_answer, play, refusal, unresolved
from tests.support.scripted import ScriptedTransport, answer, lost
from tests.support.surfaces import Connect, error_of

HOURS = 3600.0


async def test_a_request_of_another_secret_key_is_not_sent(connect: Connect, sandbox: Sandbox) -> None:
    prepared = connect(sandbox).payouts.prepare(**PAYOUT, reference="r-1")
    other = connect(sandbox, api_key=sandbox.new_key())
    with pytest.raises(ConfigurationError, match="rotated_key=True"):
        await other.send(PreparedRequest.from_json(prepared.to_json()))
    assert sandbox.books.payouts() == []


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
    transport = runtime.wrap(AiohttpTransport(runtime=SYSTEM))  # no jump while an answer is on its way
    client = connect(sandbox, runtime=runtime, transport=transport)
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


@pytest.mark.parametrize("how", ["own", "extra", "request"])
async def test_the_reference_is_the_one_in_the_bytes(connect: Connect, how: str) -> None:
    transport = ScriptedTransport(lost())
    client = connect(transport=transport, max_retries=0)
    with pytest.raises(OutcomeUnknown) as caught:
        if how == "request":
            await client.request("POST", "/payouts", json={"reference": "r-2"})
        elif how == "extra":
            await client.payouts.create(**PAYOUT, reference="r-1", extra_body={"reference": "r-2"})
        else:
            await client.payouts.create(**PAYOUT, reference="r-2")
    assert caught.value.reference == transport.bodies[0]["reference"] == "r-2"


@pytest.mark.parametrize(("path", "reference"), [("/transfers", "r-2"), ("/payouts", 7), ("/payouts", None)])
async def test_no_other_value_is_a_reference(connect: Connect, path: str, reference: Any) -> None:
    client = connect(transport=ScriptedTransport(lost()), max_retries=0)
    caught = await error_of(
        OutcomeUnknown, client.request("POST", path, json={"reference": reference} if reference else None)
    )
    assert caught.reference is None


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


@pytest.mark.parametrize("first", [refusal(429, {"Retry-After": "1"}), lost()])
async def test_a_retry_after_a_rotation_is_bound_to_its_own_key(connect: Connect, first: Any) -> None:
    keys = iter([OLD, NEW, NEW])
    played = play(connect, first, lost(), api_key=lambda: next(keys))
    caught = await error_of(OutcomeUnknown, played.client.payouts.create(**MADE, max_retries=1))
    asked = NEW if played.transport.requests[1].headers["Authorization"].endswith(NEW) else OLD
    assert (asked == NEW) == isinstance(first, HTTPResponse)
    found = connect(api_key=asked, transport=ScriptedTransport()).payouts.prepare(**MADE)
    assert caught.prepared.key_fingerprint == found.key_fingerprint


async def test_a_request_that_was_carried_out_otherwise_is_bound_to_its_key_too(connect: Connect) -> None:
    prepared = play(connect, api_key=OLD).client.payouts.prepare(**MADE)
    new = play(connect, payout_answer(reference="another"), api_key=NEW)
    caught = await error_of(ResponseMismatch, new.client.send(prepared, rotated_key=True))
    assert caught.prepared.key_fingerprint == new.client.payouts.prepare(**MADE).key_fingerprint
