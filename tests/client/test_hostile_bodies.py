"""Bodies that are not what they should be: a typed error or a faithful record, for creations and reads."""

from __future__ import annotations

import gzip
from itertools import cycle
from typing import Any

import pytest

from payments_async.errors import DecodeError, OutcomeUnknown, PaymentsError, ResponseMismatch
from tests.support import bodies
from tests.support.bodies import encoded
from tests.support.calls import CREATES, OPERATIONS, READS, call
from tests.support.scripted import ScriptedTransport, answer
from tests.support.surfaces import Connect

pytestmark = pytest.mark.parametrize("surface", ["async"], indirect=True)  # the mirror decodes nothing itself

NOT_JSON = {
    "nothing": b"",
    "white space": b" \n",
    "text": b"OK",
    "html": b"<!doctype html><title>502</title>",
    "html with a json type": b"<html>{}</html>",
    "half": b'{"data": {"id": "po_1", "amo',
    "two values": b"{}{}",
    "byte order mark": b"\xef\xbb\xbf{}",
    "utf-16": '{"data": {"id": "po_1"}}'.encode("utf-16"),
    "latin-1": b'{"data": {"id": "po_1", "reference": "\xe9"}}',
    "lone surrogate": b'{"data": {"id": "po_1", "reference": "\\ud800"}}',
    "encoded surrogate": b'{"data": {"id": "po_1", "reference": "\xed\xa0\x80"}}',
    "depth bomb": b'{"data":' * 100_000,
    "list bomb": b"[" * 100_000 + b"]" * 100_000,
    "5,000 digits": b'{"data": {"id": "po_1", "amount": {"value": ' + b"9" * 5000 + b"}}}",
    "endless exponent": b'{"data": {"id": "po_1", "amount": {"value": 1e99999999999999999999}}}',
    "NaN": b'{"data": {"id": "po_1", "amount": {"value": NaN}}}',
    "Infinity": b'{"data": {"id": "po_1", "amount": {"value": -Infinity}}}',
    "gzip that was not announced": gzip.compress(b'{"data": {"id": "po_1"}}'),
    "null bytes": b"\x00" * 100,
}
NO_RECORD = {
    "null": b"null",
    "a list": b"[]",
    "a number": b"7",
    "a text": b'"po_1"',
    "an empty object": b"{}",
    "no data": b'{"message": "Created."}',
    "null data": b'{"data": null}',
    "empty data": b'{"data": {}}',
    "data as text": b'{"data": "po_1"}',
    "data as a list": b'{"data": [{"id": "po_1"}]}',
    "an error with a 2xx": b'{"message": "Invalid.", "errors": {"amount": ["too small"]}}',
}


@pytest.mark.parametrize(
    ("operation", "body"),
    [*zip(cycle(CREATES), (NOT_JSON | NO_RECORD).values())],
    ids=(NOT_JSON | NO_RECORD).keys(),
)
async def test_a_creation_without_a_readable_record_is_in_doubt(
    connect: Connect, operation: str, body: bytes
) -> None:
    with pytest.raises(OutcomeUnknown) as caught:
        await call(connect, operation, body, 201)
    assert caught.value.effect == "unknown"
    assert caught.value.prepared is not None
    assert [attempt.verdict for attempt in caught.value.attempts] == ["in_doubt"]
    assert type(caught.value.__cause__) is DecodeError


@pytest.mark.parametrize(("operation", "body"), [*zip(cycle(READS), NOT_JSON.values())], ids=NOT_JSON.keys())
async def test_a_read_that_is_not_json_is_a_decode_error(
    connect: Connect, operation: str, body: bytes
) -> None:
    with pytest.raises(DecodeError) as caught:
        await call(connect, operation, body)
    assert caught.value.effect == "none"
    assert caught.value.operation == operation
    assert caught.value.body is not None
    assert caught.value.body.raw == body


@pytest.mark.parametrize(
    "body", [body for name, body in NO_RECORD.items() if name not in ("data as a list", "empty data")]
)
@pytest.mark.parametrize("operation", ["payouts.sync", "payouts.list", "methods.status"])
async def test_a_read_without_its_record_is_a_decode_error(
    connect: Connect, operation: str, body: bytes
) -> None:
    with pytest.raises(DecodeError) as caught:
        await call(connect, operation, body)
    assert caught.value.effect == "none"


@pytest.mark.parametrize("wrong", [{"amount": "ten"}, {"amount": {"value": True}}, {"customer": 7}])
async def test_a_creation_with_an_id_and_an_unreadable_rest_has_happened(
    connect: Connect, wrong: bodies.Json
) -> None:
    with pytest.raises(DecodeError) as caught:
        await call(connect, "payment_intents.create", {"data": {**bodies.INTENT, **wrong}}, 201)
    assert (caught.value.effect, caught.value.record_id) == ("happened", "pi_1")
    assert caught.value.attempts[-1].verdict == "executed"
    assert "find it in the list" in str(caught.value)


async def test_a_requery_that_cannot_be_read_moved_no_money(connect: Connect) -> None:
    with pytest.raises(DecodeError) as caught:
        await call(connect, "payment_intents.requery", {"data": {**bodies.REQUERY, "attempts": "three"}})
    assert (caught.value.effect, caught.value.record_id) == ("none", "rq_1")


async def test_another_record_than_asked_for_is_no_success(connect: Connect) -> None:
    data = {**OPERATIONS["payouts.create"].body["data"], "amount": bodies.amount("11.10")}
    with pytest.raises(ResponseMismatch) as caught:
        await call(connect, "payouts.create", {"data": data}, 201)
    assert (caught.value.effect, list(caught.value.differences)) == ("unknown", ["amount"])
    assert caught.value.record.id


@pytest.mark.parametrize("written", [b"10.10", b"1e400", b"9" * 4000])
async def test_an_amount_beyond_every_float_is_compared_all_the_same(
    connect: Connect, written: bytes
) -> None:
    raw = encoded({"data": {"id": "po_1", "amount": {"value": 77}}}).replace(b"77", written)
    client = connect(transport=ScriptedTransport(answer(201, raw)), max_retries=0)
    with pytest.raises(ResponseMismatch):
        await OPERATIONS["payouts.create"].call(client, extra_body={"amount": 10**400 + 1})


@pytest.mark.parametrize("written", [b"10.1", b"10.1000", b"1010e-2", b"10.0999999999999996447", b'"10.10"'])
async def test_an_amount_that_was_written_differently_is_the_same_amount(
    connect: Connect, written: bytes
) -> None:
    raw = encoded({"data": {"id": "po_1", "amount": {"value": 77}}}).replace(b"77", written)
    assert (await call(connect, "payouts.create", raw, 201)).id == "po_1"


@pytest.mark.parametrize("operation", CREATES)
async def test_of_a_member_named_twice_the_last_one_counts(connect: Connect, operation: str) -> None:
    good, bad = encoded(OPERATIONS[operation].body), b'"data":{"id":null}'
    assert (await call(connect, operation, b"{" + bad + b"," + good[1:], 201)).id
    with pytest.raises(OutcomeUnknown):
        await call(connect, operation, good[:-1] + b"," + bad + b"}", 201)


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_every_field_may_be_null_or_missing(connect: Connect, operation: str) -> None:
    body = OPERATIONS[operation].body

    def emptied(value: Any) -> Any:
        return {name: item if name == "id" else None for name, item in value.items()}

    if operation.startswith("checkouts"):
        session = body["data"]["checkout"]  # what is created has an address: see the error without one
        nothing: Any = {"checkout": {**emptied(session), "url": session["url"]}, "payment": None}
    else:
        nothing = [emptied(item) for item in body["data"]] if "list" in operation else emptied(body["data"])
    result = await call(connect, operation, {"data": nothing})
    record = result.items[0] if "list" in operation else result
    left = {name for name, value in record.to_dict().items() if value is not None}
    assert left <= {"id", "checkout", "url"}


async def test_no_error_shows_what_the_body_held(connect: Connect) -> None:
    raw = encoded({"data": {**bodies.PAYOUT, "status": 7, "note": bodies.PHONE}})
    with pytest.raises(PaymentsError) as caught:
        await call(connect, "payouts.create", raw, 201)
    shown = f"{caught.value!r} {caught.value} {caught.value.body!r}"  # type: ignore[attr-defined] # a DecodeError
    assert bodies.PHONE not in shown
    assert bodies.EMAIL not in shown
