"""Records: field by field as docs/openapi.json describes them, and as callers hold them (Resources)."""

from __future__ import annotations

import copy
import json
import pickle
import tomllib
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_async.models import Country, FailureCategory, Method, Page, PaymentAttempt, RateLimit, Record
from tests.fidelity.document import properties, resolved, target_of, types
from tests.support import bodies
from tests.support.calls import OPERATIONS, call
from tests.support.faithful import differences
from tests.support.forms import ATTEMPTS_ALONE, FORMS, PAYOUTS, at, exactly, read
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


KNOWN = {fact["id"] for fact in tomllib.loads((Path(__file__).parents[1] / "facts.toml").read_text())["fact"]}
RECORDS = {
    "Amount": "field.amount",
    "Method": "field.method",
    "ExchangeRate": "field.exchange-rate",
    "Country": "field.country",
    "Customer": "field.customer",
    "GatewayTransaction": "field.gateway-transaction",
    "NextAction": "field.next-action",
    "ListedNextAction": "field.next-action",
    "Failover": "field.failover",
    "Instrument": "field.instrument",
    "PaymentAttempt": "field.attempt",
    "ListedPaymentAttempt": "field.attempt",
    "AttemptFailure": "field.attempt-failure",
}
"""{record: the facts of its fields}; those of another are named after the field that holds it."""
Row = tuple[str, str, Any]


def _value(schema: Any, said: Any) -> Any:
    """What the client makes of a JSON value that is no record."""
    if resolved(schema).get("format") == "date-time":
        return datetime.fromisoformat(said)
    if "pattern" in resolved(schema):
        return Decimal(said)
    return tuple(said) if types(schema) == {"array"} else said


def rows(names: tuple[str, ...], said: Any, facts: str, path: str = "") -> Iterator[Row]:
    """(path, fact, expected) of each field of a record and of those inside it."""
    for name, schema in ((name, schema) for each in names for name, schema in properties(each).items()):
        here, fact = f"{path}.{name}".strip("."), f"{facts}.{name}"
        record = target_of(schema)
        if record in ("Metadata", "JSONObject") or not record or not resolved(schema).get("properties"):
            yield here, fact, _value(schema, said[name])
        else:
            yield here, fact, Record
            inner = "field.payout-failure" if fact == "field.payout.failure" else RECORDS.get(record, fact)
            inner = "field.attempt-failure" if fact == "field.attempt.failure" else inner
            yield from rows((record,), said[name], inner, here)


def rows_of(form: str) -> list[Row]:
    given = FORMS[form]
    body = OPERATIONS[given.operation].body
    said = at({**body["data"], **body["meta"]} if "meta" in body else body, given.said)
    return list(rows(given.schemas, said, given.facts))


def marked(form: str) -> Any:
    """A form, with the facts that it proves."""
    facts = {fact for _, fact, _ in rows_of(form)} & KNOWN
    return pytest.param(form, marks=pytest.mark.fact(*sorted(facts)), id=form)


@pytest.mark.parametrize("form", [*map(marked, FORMS)])
async def test_every_field_of_a_record_is_read_with_its_type(connect: Connect, form: str) -> None:
    record = await read(connect, form)
    expected = rows_of(form)
    for path, _, value in expected:
        found = at(record, path)
        assert isinstance(found, Record) if value is Record else exactly(found, value), path
    shown = {path.partition(".")[0] for path, _, _ in expected}
    others = {field.name for field in attrs.fields(type(record))} - shown - {"_extra", "_response"}
    assert {name: getattr(record, name) for name in others} == dict.fromkeys(others)


@pytest.mark.fact("field.attempt-failure.code.category")
@pytest.mark.parametrize("form", ATTEMPTS_ALONE)
async def test_an_attempt_outside_the_list_has_no_failure_category(connect: Connect, form: str) -> None:
    assert (await read(connect, form)).failure.code.category is None


@pytest.mark.fact("field.failure.category-customer-error")
@pytest.mark.parametrize("form", ["attempt in the list", *PAYOUTS])
async def test_the_example_category_equals_its_constant(connect: Connect, form: str) -> None:
    category = (await read(connect, form)).failure.code.category
    assert category == FailureCategory.CUSTOMER_ERROR == "CUSTOMER_ERROR"


@pytest.mark.fact("field.exchange-rate.number-form")
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (b"655.957", Decimal("655.957")),
        (b"1", Decimal(1)),
        (b"0.00152449", Decimal("0.00152449")),
        (b"1E+2", Decimal(100)),
        (b"null", None),
    ],
)
async def test_any_number_is_a_rate(connect: Connect, written: bytes, expected: Decimal | None) -> None:
    raw = bodies.encoded({"data": {**bodies.ATTEMPT, "exchange_rate": Decimal("7.7777")}})
    attempt = await call(connect, "payment_intents.retrieve_attempt", raw.replace(b"7.7777", written))
    assert exactly(attempt.exchange_rate, expected)


@pytest.mark.parametrize("missing", ["absent", None, []])
async def test_a_page_without_pagination_is_a_last_page(connect: Connect, missing: object) -> None:
    body = {"data": [bodies.PAYOUT], **({} if missing == "absent" else {"pagination": missing})}
    page = await call(connect, "payouts.list", body)
    assert (len(page), page.next_cursor, page.pagination.count) == (1, None, None)


@pytest.mark.parametrize("form", PAYOUTS)
async def test_bare_codes_stand_for_a_method_and_a_country(connect: Connect, form: str) -> None:
    bare = {**bodies.PAYOUT, "method": "mtn_bj", "instrument": {**bodies.INSTRUMENT, "country": "BJ"}}
    payout = await read(connect, form, {"data": [bare] if "list" in form else bare})
    assert payout.method == Method(value="mtn_bj")
    assert payout.instrument.country == Country(code="BJ")
