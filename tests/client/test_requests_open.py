"""What the interface leaves open stays open: other fields, other parameters, other codes, other paths."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from tests.support.creations import PAYOUT, SMALLEST, create
from tests.support.watched import WatchedSandbox


@pytest.mark.fact("open.body-fields")
@pytest.mark.parametrize("resource", SMALLEST)
async def test_extra_body_adds_fields_and_replaces_them(
    connect: Callable[..., Any], watched: WatchedSandbox, resource: str
) -> None:
    extra = {"new_field": {"deep": [1, Decimal("2.50")]}, "description": "theirs"}
    await create(connect(watched), resource, description="ours", extra_body=extra)
    assert watched.body["new_field"] == {"deep": [1, Decimal("2.50")]}
    assert watched.body["description"] == "theirs"
    assert watched.body["amount"] == 50


@pytest.mark.fact("open.query-names")
@pytest.mark.parametrize("resource", ["payment_intents", "payouts"])
async def test_extra_query_adds_parameters_and_replaces_them(
    connect: Callable[..., Any], watched: WatchedSandbox, resource: str
) -> None:
    extra = {"sort": "é & =", "many": ["a", "b"], "deep": True, "none": None, "status": "theirs"}
    await getattr(connect(watched), resource).list(status="completed", extra_query=extra)
    assert watched.arrived[-1].query == "status=theirs&sort=%C3%A9+%26+%3D&many=a&many=b&deep=true"


@pytest.mark.fact("open.query-names")
async def test_extra_query_goes_with_creations_and_single_reads_too(
    connect: Callable[..., Any], watched: WatchedSandbox
) -> None:
    client = connect(watched)
    checkout = await create(client, "checkouts", extra_query={"expand": "all"})
    assert watched.query == {"expand": "all"}
    await client.checkouts.retrieve(checkout.checkout.id, extra_query={"expand": "page"})
    assert watched.query == {"expand": "page"}
    assert watched.line.endswith(checkout.checkout.id)


@pytest.mark.parametrize("call", ["create", "list", "requery"])
async def test_extra_headers_are_sent_and_may_replace_the_user_agent(
    connect: Callable[..., Any], watched: WatchedSandbox, call: str
) -> None:
    client = connect(watched)
    intent = await create(client, "payment_intents")
    headers = {"X-Trace": "a b\tc", "user-agent": "mine/1"}
    if call == "create":
        await create(client, "payouts", extra_headers=headers)
    elif call == "list":
        await client.payouts.list(extra_headers=headers)
    else:
        await client.payment_intents.requery(intent.id, extra_headers=headers)
    assert watched.headers["x-trace"] == "a b\tc"
    assert watched.headers["user-agent"] == "mine/1"
    assert watched.headers["authorization"].startswith("Bearer ")


@pytest.mark.fact("service.codes-are-configuration")
async def test_codes_nobody_has_heard_of_are_passed_on(
    connect: Callable[..., Any], watched: WatchedSandbox
) -> None:
    client = connect(watched)
    attempt = {"method_code": "brand_new-2031", "country": "ZZ", "currency": "ZZZ"}
    await create(client, "payment_intents", attempt=attempt)
    assert watched.body["attempt"] == attempt
    await create(client, "payouts", currency="ZZZ", method="brand_new-2031")
    assert (watched.body["currency"], watched.body["method"]) == ("ZZZ", "brand_new-2031")


@pytest.mark.fact("conventions.json-bodies")
@pytest.mark.observed("descriptions are not null")
async def test_text_of_every_script_travels_as_utf_8_json(
    connect: Callable[..., Any], watched: WatchedSandbox
) -> None:
    text = 'quote " slash \\ line\n tab\t \u2028 ẹ̀kọ́ 支付 💸'
    payout = await create(connect(watched), "payouts", description=text, metadata={text: text})
    assert watched.body["description"] == text
    assert watched.body["metadata"] == {text: text}
    assert payout.description == text
    assert payout.metadata == {text: text}
    assert watched.headers["accept"] == "application/json"


async def test_a_repeated_call_sends_the_same_bytes(
    connect: Callable[..., Any], watched: WatchedSandbox
) -> None:
    client = connect(watched)
    for _ in range(2):
        await client.payouts.create(**PAYOUT, metadata={"b": 1, "a": 2})
    first, second = (request.body for request in watched.arrived)
    assert first == second
    assert first.index(b'"b"') < first.index(b'"a"')
