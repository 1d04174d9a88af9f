"""Records, field by field: in every form, the client reads what docs/openapi.json describes (Resources)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_async.models import Country, FailureCategory, Method, Record
from tests.fidelity.document import properties, resolved, target_of, types
from tests.support import bodies
from tests.support.calls import OPERATIONS, call
from tests.support.forms import ATTEMPTS_ALONE, FORMS, PAYOUTS, at, exactly, read
from tests.support.surfaces import Connect

pytestmark = pytest.mark.parametrize("surface", ["async"], indirect=True)  # the mirror decodes nothing itself

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
    """The rows of a form, as its operation is answered in full."""
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


@pytest.mark.fact("refunds.unavailable")
async def test_what_cannot_be_refunded_says_why_and_names_no_method(connect: Connect) -> None:
    changed = {"is_refundable": False, "available_types": [], "execution_method": None}
    found = await read(connect, "refund availability", {"data": {**bodies.REFUND_AVAILABILITY, **changed}})
    assert (found.is_refundable, found.execution_method, found.available_types) == (False, None, ())
    assert found.unavailable_reason


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
