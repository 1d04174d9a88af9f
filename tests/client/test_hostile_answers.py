"""Answers that are not what they should be, or about another record: a typed error or a faithful record."""

from __future__ import annotations

import asyncio
import gzip
import json
import pickle
from collections.abc import Awaitable, Callable, Mapping
from itertools import cycle
from typing import Any

import pytest

from payments_async._http import transport
from payments_async.errors import DecodeError, OutcomeUnknown, ResponseMismatch
from payments_async.models import Payout
from tests.support import bodies
from tests.support.bodies import encoded
from tests.support.calls import CREATES, OPERATIONS, READS, call
from tests.support.jumping import JumpingRuntime
from tests.support.motion import PAYOUT, payout_answer, play
from tests.support.patience import bounded_memory
from tests.support.rawserver import RawServer, Step
from tests.support.scripted import ScriptedTransport, answer
from tests.support.surfaces import Connect, error_of

pytestmark = pytest.mark.parametrize("surface", ["async"], indirect=True)  # the mirror decodes nothing itself

NOT_JSON = {
    "nothing": b"",
    "html": b"<!doctype html><title>502</title>",
    "half": b'{"data": {"id": "po_1", "amo',
    "two values": b"{}{}",
    "byte order mark": b"\xef\xbb\xbf{}",
    "latin-1": b'{"data": {"id": "po_1", "reference": "\xe9"}}',
    "lone surrogate": b'{"data": {"id": "po_1", "reference": "\\ud800"}}',
    "depth bomb": b'{"data":' * 100_000,
    "5,000 digits": b'{"data": {"id": "po_1", "amount": {"value": ' + b"9" * 5000 + b"}}}",
    "NaN": b'{"data": {"id": "po_1", "amount": {"value": NaN}}}',
    "gzip that was not announced": gzip.compress(b'{"data": {"id": "po_1"}}'),
}
NO_RECORD = {
    "null": b"null",
    "a list": b"[]",
    "an empty object": b"{}",
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
async def test_a_creation_without_a_record_is_in_doubt(connect: Connect, operation: str, body: bytes) -> None:
    caught = await error_of(OutcomeUnknown, call(connect, operation, body, 201))
    assert caught.effect == "unknown"
    assert caught.prepared is not None
    assert [attempt.verdict for attempt in caught.attempts] == ["in_doubt"]
    assert type(caught.__cause__) is DecodeError


@pytest.mark.parametrize(("operation", "body"), [*zip(cycle(READS), NOT_JSON.values())], ids=NOT_JSON.keys())
async def test_a_read_without_json_is_a_decode_error(connect: Connect, operation: str, body: bytes) -> None:
    caught = await error_of(DecodeError, call(connect, operation, body))
    assert caught.effect == "none"
    assert caught.operation == operation
    assert caught.body is not None
    assert caught.body.raw == body


@pytest.mark.parametrize(
    "body", [body for name, body in NO_RECORD.items() if name not in ("data as a list", "empty data")]
)
@pytest.mark.parametrize("operation", ["payouts.sync", "payouts.list", "methods.status"])
async def test_a_read_without_record_is_no_success(connect: Connect, operation: str, body: bytes) -> None:
    caught = await error_of(DecodeError, call(connect, operation, body))
    assert caught.effect == "none"


@pytest.mark.parametrize("written", [b"10.10", b"1e400", b"9" * 4000])
async def test_an_amount_beyond_every_float_is_compared(connect: Connect, written: bytes) -> None:
    raw = encoded({"data": {"id": "po_1", "amount": {"value": 77}}}).replace(b"77", written)
    client = connect(transport=ScriptedTransport(answer(201, raw)), max_retries=0)
    with pytest.raises(ResponseMismatch):
        await OPERATIONS["payouts.create"].call(client, extra_body={"amount": 10**400 + 1})


LISTS = ("payouts.list", "payment_intents.list")


@pytest.mark.parametrize(
    ("odd", "record_id"),
    [
        (None, None),
        ("po_1", None),
        ({"id": 7}, None),
        ({"id": ""}, None),
        ({"id": "", "status": 7}, None),
        ({"id": "x_1", "amount": {"value": "ten", "currency": bodies.ACCOUNT}}, "x_1"),
    ],
)
@pytest.mark.parametrize("operation", LISTS)
async def test_odd_records_hide_none(
    connect: Connect, operation: str, odd: Any, record_id: str | None
) -> None:
    page = await call(connect, operation, {"data": [{"id": "a"}, odd, {"id": "b"}, odd]})
    assert [record.id for record in page] == ["a", "b"]
    assert [(one.index, one.record_id, one.raw) for one in page.unread] == [
        (1, record_id, odd),
        (3, record_id, odd),
    ]
    assert all("should be" in one.reason for one in page.unread)
    assert bodies.ACCOUNT not in repr(page)
    assert pickle.loads(pickle.dumps(page)) == page
    hash(page.unread)


async def test_a_walk_and_a_wait_go_on_past_what_cannot_be_read(connect: Connect) -> None:
    final = {"id": "po_9", "status": "completed"}
    body = bodies.encoded({"data": [{"id": "po_1", "status": 7}, final, {"id": "po_2"}]})
    client = connect(transport=ScriptedTransport(answer(200, body)), runtime=JumpingRuntime())
    assert [payout.id async for payout in client.payouts.iterate()] == ["po_9", "po_2"]
    assert (await client.payouts.wait("po_9")).status == "completed"


@pytest.mark.parametrize("wrong", ["last", [1], {"next_cursor": 5}, {"has_more_pages": "yes"}])
@pytest.mark.parametrize("operation", LISTS)
async def test_an_unreadable_pagination_is_no_page(connect: Connect, operation: str, wrong: Any) -> None:
    with pytest.raises(DecodeError):
        await call(connect, operation, {**OPERATIONS[operation].body, "pagination": wrong})


BLANKS = " " * 300_000


@pytest.mark.parametrize("rest", ["", BLANKS], ids=["small", "large"])
@pytest.mark.parametrize("record", ['{"id":"x_1"}', '{"id":"x_1","new":1}', "7"])
@pytest.mark.parametrize("operation", LISTS)
async def test_a_list_of_more_than_a_thousand_records_is_a_decode_error(
    connect: Connect, operation: str, record: str, rest: str
) -> None:
    def page(records: int) -> bytes:
        data = f"{rest}[{','.join([record] * records)}]"
        return f'{{"data":{data},"pagination":{{"has_more_pages":false}}}}'.encode()

    read = await call(connect, operation, page(1_000))
    assert len(read.items) + len(read.unread) == 1_000
    caught = await error_of(
        DecodeError, call(connect, operation, page(1_001)), match="more than 1,000 records"
    )
    assert caught.effect == "none"


async def test_a_list_of_a_million_is_refused_before_any_record_is_made(connect: Connect) -> None:
    page = b'{"data":[' + b",".join([b"{}"] * 1_398_000) + b"]}"
    with bounded_memory(1 << 20), pytest.raises(DecodeError, match="more than 1,000 records"):
        await call(connect, "payouts.list", page)


@pytest.mark.parametrize("rest", ["", BLANKS], ids=["small", "large"])
@pytest.mark.parametrize("written", ['{"data":LIST}', "LIST"])
async def test_a_list_of_ones_own_is_bounded_as_records(connect: Connect, written: str, rest: str) -> None:
    body = written.replace("LIST", f"{rest}[{','.join(['{}'] * 1_001)}]").encode()
    client = connect(transport=ScriptedTransport(answer(200, body)), runtime=JumpingRuntime())
    with pytest.raises(DecodeError, match="more than 1,000 records"):
        await client.request("GET", "/payouts", result=Payout)
    tree = await client.request("GET", "/payouts")
    assert len(tree["data"] if isinstance(tree, dict) else tree) == 1_001


@pytest.mark.parametrize(
    "body",
    [
        f"[{BLANKS}",
        f'{{"data":{BLANKS}[1,',
        f'{{"data":{BLANKS}7}}',
        f'{{"data":{"[" * 300_000}',
        f"{BLANKS}7",
    ],
    ids=["cut list", "cut", "a number", "deep", "a number by itself"],
)
async def test_a_large_body_that_is_no_list_is_what_a_small_one_is(connect: Connect, body: str) -> None:
    caught = await error_of(DecodeError, call(connect, "payouts.list", body.encode()))
    assert "1,000" not in str(caught)


Read = Callable[[Any], Awaitable[Any]]
PAID = {"completed_at": "2026-01-01T00:00:00Z"}


def checkout(session: Any) -> dict[str, Any]:
    return {"checkout": {"id": session}, "payment": {"id": "pi_1", **PAID}}


ABOUT_ONE: Mapping[str, tuple[Read, Callable[[Any], dict[str, Any]]]] = {
    "checkouts.retrieve": (lambda client: client.checkouts.retrieve("mine"), checkout),
    "payment_intents.retrieve_attempt": (
        lambda client: client.payment_intents.retrieve_attempt("pi_1", "mine"),
        lambda given: {"id": given, **PAID},
    ),
    "payouts.sync": (lambda client: client.payouts.sync("mine"), lambda given: {"id": given, **PAID}),
    "payment_intents.requery": (
        lambda client: client.payment_intents.requery("mine"),
        lambda given: {"id": "rq_1", "payment_intent_id": given},
    ),
}
WAITS: Mapping[str, tuple[Read, Callable[[Any], dict[str, Any]]]] = {
    "checkouts.wait": (lambda client: client.checkouts.wait("mine"), checkout),
    "payment_intents.wait_attempt": (
        lambda client: client.payment_intents.wait_attempt("pi_1", "mine"),
        lambda given: {"id": given, **PAID},
    ),
}
every_read = pytest.mark.parametrize("name", ABOUT_ONE)


@pytest.mark.parametrize("name", [*ABOUT_ONE, *WAITS])
async def test_an_answer_about_another_record_is_a_mismatch(connect: Connect, name: str) -> None:
    read, body = {**ABOUT_ONE, **WAITS}[name]
    played = play(connect, answer(200, {"data": body("another")}))
    caught = await error_of(ResponseMismatch, read(played.client))
    error = caught
    assert (error.effect, list(error.differences.values())) == ("none", [("mine", "another")])
    assert len(played.transport.requests) == 1  # an answer to someone else is no reason to ask again at once
    assert [attempt.verdict for attempt in error.attempts] == ["executed"]


@every_read
@pytest.mark.parametrize("given", ["mine", None, ...], ids=["its id", "null", "absent"])
async def test_an_answer_that_names_no_other_record_is_taken(connect: Connect, name: str, given: Any) -> None:
    read, body = ABOUT_ONE[name]
    text = json.dumps(body("GIVEN")).replace('"GIVEN"', json.dumps(None if given is ... else given))
    data = json.loads(text.replace('"id": null, ', "")) if given is ... else json.loads(text)
    found = await read(connect(transport=ScriptedTransport(answer(200, {"data": data}))))
    if name in ("checkouts.retrieve", "payouts.sync"):
        assert (found.id, getattr(found, "url", "")) == ("mine" if given == "mine" else "", "")


@pytest.mark.parametrize("way", ["direct", "session"])
@pytest.mark.parametrize("name", ["payouts.sync", "payouts.create"])
async def test_the_connection_that_gave_it_is_closed(
    connect: Connect, server: RawServer, monkeypatch: pytest.MonkeyPatch, way: str, name: str
) -> None:
    monkeypatch.setattr(transport, "is_supported", lambda: way == "direct")
    server.scripts["/v1/payouts/mine/sync"] = [whole({"id": "another"}), Step.HANG]
    server.scripts["/v1/payouts/kept/sync"] = [whole({"id": "kept"})]
    other = json.loads(payout_answer(reference="r-9").body)["data"]
    server.scripts["/v1/payouts"] = [whole(other, status=b"201 Created"), Step.HANG]
    client = connect(base_url=server.url("/v1"), max_retries=0)
    await client.payouts.sync("kept")
    with pytest.raises(ResponseMismatch):
        await (client.payouts.sync("mine") if name == "payouts.sync" else client.payouts.create(**PAYOUT))
    assert server.connections == 1
    assert await asyncio.to_thread(server.hangups.get, timeout=300)  # at once, not with the next request
    await client.payouts.sync("kept")
    assert server.connections == 2


def whole(data: Any, status: bytes = b"200 OK") -> bytes:
    body = json.dumps({"data": data}).encode()
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)
