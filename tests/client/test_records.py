"""Records as callers hold them: the answer beside them, copies, pickles, text forms (Resources)."""

from __future__ import annotations

import copy
import json
import pickle
from decimal import Decimal
from typing import Any

import attrs
import pytest

from payments_async.models import Page, PaymentAttempt, RateLimit
from tests.support import bodies
from tests.support.calls import OPERATIONS, call
from tests.support.faithful import differences
from tests.support.surfaces import Connect

pytestmark = pytest.mark.parametrize("surface", ["async"], indirect=True)  # the mirror decodes nothing itself

HEADERS = {
    "X_Request_Id": "req-1",
    "x_idempotent_replayed": " TRUE ",
    "X_RATELIMIT_LIMIT": "60000",
    "x_ratelimit_remaining": "59999",
    "Content_Type": "application/json",
}
COPIES = {
    "itself": lambda value: value,
    "pickled": lambda value: pickle.loads(pickle.dumps(value)),
    "pickled twice": lambda value: pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(value)))),
    "deep-copied": copy.deepcopy,
    "copied": copy.copy,
    "evolved": attrs.evolve,
}
copies = pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())


@copies
@pytest.mark.parametrize("name", OPERATIONS)
async def test_every_record_survives_being_copied(connect: Connect, name: str, copied: Any) -> None:
    operation = OPERATIONS[name]
    record = await call(connect, name, operation.body)
    twin = copied(record)

    assert twin == record
    assert type(twin) is type(record)
    said = operation.body if isinstance(record, Page) else operation.body["data"]
    assert list(differences({**said, **operation.body.get("meta", {})}, twin)) == []
    assert twin.response.status == 200


@copies
async def test_the_answer_beside_a_record_keeps_its_facts(connect: Connect, copied: Any) -> None:
    payout = copied(await call(connect, "payouts.create", OPERATIONS["payouts.create"].body, 201, **HEADERS))
    response = payout.response

    assert (response.status, response.message, response.request_id) == (201, "Payout created.", "req-1")
    assert response.replayed
    assert response.rate_limit == RateLimit(60_000, 59_999)
    assert [(a.number, a.verdict, a.reason, a.status) for a in response.attempts] == [
        (1, "executed", "201", 201)
    ]
    assert 8 <= len(response.idempotency_key) <= 128
    for name in ("content-type", "Content-Type", "CONTENT-TYPE"):
        assert response.headers[name] == response.headers.get(name) == "application/json"
        assert name in response.headers
    assert response.headers.get("absent") is None
    assert response.headers.get("absent", "x") == "x"


@pytest.mark.parametrize("name", ["payouts.create", "payouts.list"])
async def test_the_bytes_of_the_answer_are_kept_and_not_shown(connect: Connect, name: str) -> None:
    body = {**OPERATIONS[name].body, "echo": "sk_live_1"}
    record = await call(connect, name, body)
    assert record.response.body == bodies.encoded({**body, "echo": "sk_live_***"})
    assert bodies.PHONE.encode() in record.response.body
    assert bodies.PHONE not in repr(record.response)
    assert pickle.loads(pickle.dumps(record)).response.body == b""
    assert copy.copy(record).response.body == record.response.body


async def test_a_read_has_no_idempotency_key_and_was_not_replayed(connect: Connect) -> None:
    response = (await call(connect, "payouts.sync", OPERATIONS["payouts.sync"].body)).response
    assert response.idempotency_key is None
    assert not response.replayed
    assert response.request_id is None
    assert response.rate_limit == RateLimit(None, None)


@pytest.mark.parametrize(
    ("text", "count"),
    [("0", 0), (" 7 ", 7), ("-1", None), ("1.5", None), ("٣", None), ("", None), ("9" * 19, None)],
)
async def test_limit_headers_count_by_ascii_rules(connect: Connect, text: str, count: int | None) -> None:
    body = OPERATIONS["payouts.sync"].body
    payout = await call(connect, "payouts.sync", body, X_RateLimit_Limit=text)
    assert payout.response.rate_limit.limit == count


async def test_the_answer_is_no_part_of_a_records_identity(connect: Connect) -> None:
    body = OPERATIONS["payouts.sync"].body
    one = await call(connect, "payouts.sync", body, X_Request_Id="a")
    two = await call(connect, "payouts.sync", body, X_Request_Id="b")
    assert one == two
    assert hash(one) == hash(two)
    assert repr(one) == repr(two)
    assert "response" not in repr(one)
    assert one.amount.response is None


@pytest.mark.parametrize("value", ["655.95700000", "0.00000001"])
async def test_json_text_has_a_rate_in_the_form_of_the_wire(connect: Connect, value: str) -> None:
    """Text in an object, with all its digits; a number where the wire has a number."""
    payout = await call(
        connect, "payouts.sync", {"data": {**bodies.PAYOUT, "exchange_rate": {**bodies.RATE, "value": value}}}
    )
    assert json.loads(payout.to_json())["exchange_rate"]["value"] == value
    assert payout.to_dict()["exchange_rate"]["value"] == Decimal(value)
    attempt = PaymentAttempt(exchange_rate=Decimal("655.957"))
    assert '"exchange_rate": 655.957' in attempt.to_json()
