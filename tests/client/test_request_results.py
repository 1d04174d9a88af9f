"""What `client.request` makes of a clear 2xx: any record class, any list, nothing at all."""

from __future__ import annotations

from typing import Any

import pytest

from payments_async.errors import DecodeError, OutcomeUnknown, PaymentsError, ResponseMismatch
from payments_async.models import Checkout, Page, Payout
from tests.support import bodies
from tests.support.bodies import RECORDS, encoded
from tests.support.jumping import JumpingRuntime
from tests.support.scripted import ScriptedTransport, answer
from tests.support.surfaces import Connect, error_of

pytestmark = pytest.mark.parametrize("surface", ["async"], indirect=True)  # the mirror decodes nothing itself

WRITES = ["POST", "PUT", "PATCH", "DELETE"]
BOTH = {"checkout": bodies.CHECKOUT, "payment": bodies.INTENT}


async def ask(connect: Connect, body: Any, method: str = "POST", status: int = 200, **arguments: Any) -> Any:
    """What a request comes to that is always answered the same; a success takes one try."""
    raw = body if isinstance(body, bytes) else encoded(body)
    transport = ScriptedTransport(answer(status, raw))
    client = connect(transport=transport, runtime=JumpingRuntime())
    found = await client.request(method, arguments.pop("path", "/things"), **arguments)
    assert len(transport.requests) == 1
    return found


@pytest.mark.parametrize("cls", RECORDS, ids=lambda cls: cls.__name__)
async def test_a_write_can_be_read_as_any_record(connect: Connect, cls: type[Any]) -> None:
    data = BOTH if cls is Checkout else {"id": "x_1"}
    found = await ask(connect, {"data": data}, json={"amount": 10.10, "currency": "XOF"}, result=cls)
    assert type(found) is cls
    assert found.response.status == 200


@pytest.mark.parametrize("body", [[{"id": "po_1"}], {"data": [{"id": "po_1"}]}, [{"id": "po_1"}, 7]])
@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_request_can_be_answered_with_a_list(connect: Connect, body: Any, method: str) -> None:
    page = await ask(connect, body, method, result=Payout, **({"json": {"a": 5}} if method == "POST" else {}))
    assert isinstance(page, Page)
    assert page.items == (Payout(id="po_1"),)
    assert [one.raw for one in page.unread] == (body[1:] if isinstance(body, list) else [])
    assert page.next_cursor is None


@pytest.mark.parametrize(
    ("method", "body", "result", "error", "effect"),
    [
        ("POST", b"[]", None, OutcomeUnknown, "unknown"),
        ("POST", b"null", None, OutcomeUnknown, "unknown"),
        ("POST", b"<html>", None, OutcomeUnknown, "unknown"),
        ("POST", b'{"data": {"id": 7}}', Payout, OutcomeUnknown, "unknown"),
        ("DELETE", b"", Payout, OutcomeUnknown, "unknown"),
        ("POST", b'{"id": "po_9", "status": 7}', Payout, DecodeError, "happened"),
        ("GET", b"7", Payout, DecodeError, "none"),
        ("GET", b'{"data": "x"}', Payout, DecodeError, "none"),
        ("GET", b'{"id": 7}', Payout, DecodeError, "none"),
    ],
)
async def test_what_is_not_what_was_asked_for_is_an_error(
    connect: Connect, method: str, body: bytes, result: Any, error: type[PaymentsError], effect: str
) -> None:
    caught = await error_of(error, ask(connect, body, method, result=result))
    assert caught.effect == effect


@pytest.mark.parametrize("body", [7, [1, None], {"data": {"id": 7}}])
async def test_a_read_without_a_class_is_returned_whole_whatever_it_is(connect: Connect, body: Any) -> None:
    assert await ask(connect, body, "GET") == body


async def test_a_record_may_stand_in_the_body_itself(connect: Connect) -> None:
    assert (await ask(connect, {"id": "po_1"}, json={}, result=Payout)).id == "po_1"


async def test_a_checkout_is_known_by_its_sessions_id(connect: Connect) -> None:
    asked: Any = {"path": "/payment/checkouts", "json": {"amount": 10.10}, "result": Checkout}
    assert (await ask(connect, {"data": BOTH}, status=201, **asked)).id == "cs_1"
    with pytest.raises(OutcomeUnknown):
        await ask(connect, {"data": {"checkout": {}, "id": "no session"}}, status=201, **asked)
    caught = await error_of(
        DecodeError, ask(connect, {"data": {"checkout": bodies.CHECKOUT, "payment": 7}}, status=201, **asked)
    )
    assert (caught.record_id, caught.effect) == ("cs_1", "happened")


@pytest.mark.parametrize(
    ("method", "status"), [("GET", 200), ("GET", 204), *((method, 202) for method in WRITES)]
)
async def test_nothing_is_an_answer_to_who_asked_for_none(connect: Connect, method: str, status: int) -> None:
    assert await ask(connect, b"", method, status) is None


async def test_another_payment_than_was_asked_for_is_still_a_mismatch(connect: Connect) -> None:
    caught = await error_of(
        ResponseMismatch, ask(connect, {"data": BOTH}, json={"amount": 11}, result=Checkout)
    )
    assert caught.differences.keys() == {"amount"}
