"""Arguments to calls: what is fixed before a request may leave."""

from __future__ import annotations

from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pytest

from payments_async._http.types import Secret
from payments_async._request import prepare, settings
from payments_async._request.auth import SecretKey
from payments_async._request.idempotency import KeyMaker
from payments_async.errors import InvalidRequest
from payments_async.params import PayoutRequest, operations
from tests.support.jumping import JumpingRuntime

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = SecretKey("sandbox", "0123456789abcdef", Secret("Bearer"))
REQUEST = PayoutRequest(amount="10.10", currency="XOF", method="m", instrument={"type": "t"}, reference="r-1")
SYNC = operations.PAYOUTS_SYNC
CREATE = operations.PAYOUTS_CREATE


def prepared(request: Any = REQUEST, operation: Any = CREATE, **options: Any) -> Any:
    """A prepared write."""
    make_key = KeyMaker(JumpingRuntime())
    return prepare.prepare(
        operation, request, options, base_url="https://x.test/v1", key=KEY, now=NOW, make_key=make_key
    )


def test_a_write_is_fixed_whole() -> None:
    made = prepared(extra_query={"a": 1}, extra_headers={"X-A": "b"}, extra_body={"n": None})
    assert made.body == (
        b'{"amount":10.10,"currency":"XOF","method":"m","instrument":{"type":"t"},"reference":"r-1","n":null}'
    )
    assert made.path == "/payouts?a=1"
    assert made.headers == {"X-A": "b"}
    assert made.reference == "r-1"
    assert (made.operation, made.base_url, made.environment, made.created_at) == (
        "payouts.create",
        "https://x.test/v1",
        "sandbox",
        NOW,
    )
    assert made.idempotency_key.endswith("-1")


@pytest.mark.parametrize("request_", [REQUEST, {"reference": "r-1"}, MappingProxyType({"reference": "r-1"})])
def test_a_payouts_reference_is_known_whichever_way_it_came(request_: Any) -> None:
    assert prepared(request_).reference == "r-1"
    assert prepared(request_, extra_body={"reference": "r-2"}).reference == "r-2"
    assert prepared(request_, extra_body={"reference": 7}).reference is None
    assert prepared(request_, operations.INTENTS_CREATE).reference is None
    assert prepared(None, operations.custom("POST", "/payouts")).reference is None


def test_a_callers_key_is_taken_as_it_is() -> None:
    assert prepared(idempotency_key="caller-key-1").idempotency_key == "caller-key-1"


def test_a_write_without_fields_has_an_empty_object_for_a_body() -> None:
    assert prepared(None, operations.INTENTS_REQUERY).body == b"{}"
    assert prepared({"a": 1}, extra_body={"b": 2}).body == b'{"a":1,"b":2}'


def test_what_json_cannot_write_after_all_is_a_fault_of_the_body() -> None:
    class Odd(str):
        __slots__ = ()

    for request in (
        {"a": Odd("x")},
        PayoutRequest(amount=5, currency="XOF", method=Odd("m"), instrument={"a": 1}),
    ):
        with pytest.raises(InvalidRequest) as caught:
            prepared(request)
        assert caught.value.errors == {"body": ["cannot be written as JSON (TypeError)"]}
        assert caught.value.__context__ is None


def test_a_read_knows_its_path_limit_and_record() -> None:
    call = prepare.reading(
        SYNC, {"timeout": 3, "extra_headers": {"X-A": "b"}}, {"payout_id": "po_1"}, {"q": "1"}
    )
    assert (call.path, call.limit, call.record) == ("/payouts/po_1/sync?q=1", "diagnostic", "po_1")
    assert (call.timeout, call.deadline, call.max_retries, call.priority) == (3, None, None, "interactive")
    assert call.headers == {"X-A": "b"}
    assert call.prepared is None
    assert prepare.reading(operations.PAYOUTS_LIST, {}).record is None


def test_a_read_tells_all_its_faults() -> None:
    with pytest.raises(InvalidRequest) as caught:
        prepare.reading(
            SYNC, {"timeout": 0, "extra_query": 7}, {"payout_id": ".."}, errors={"own": ["fault"]}
        )
    assert caught.value.errors.keys() == {"own", "payout_id", "timeout", "extra_query"}
    assert caught.value.operation == "payouts.sync"


def test_a_write_is_called_as_it_was_prepared() -> None:
    made = prepared(extra_headers={"X-A": "b"})
    call = prepare.writing(made, {"max_retries": 0}, operation=CREATE, record="r", priority="bulk")
    assert (call.path, call.limit, call.headers) == (made.path, "write", made.headers)
    assert (call.max_retries, call.record, call.priority, call.prepared) == (0, "r", "bulk", made)
    with pytest.raises(InvalidRequest, match="max_retries"):
        prepare.writing(made, {"max_retries": -1}, operation=CREATE)


def test_a_request_that_something_was_added_to_is_not_what_its_bytes_say() -> None:
    calls = [
        prepare.writing(prepared(), options, operation=CREATE, request=REQUEST)
        for options in ({}, {"timeout": 3.0}, {"extra_body": {}}, {"extra_body": {"amount": 8}})
    ]
    assert [call.request for call in calls] == [REQUEST, REQUEST, REQUEST, None]
    assert "request=" not in repr(calls[0])


def test_a_calls_repr_shows_no_headers() -> None:
    assert "secret" not in repr(
        prepare.reading(SYNC, {"extra_headers": {"X-A": "secret"}}, {"payout_id": "p"})
    )


def test_options_are_told_from_fields_and_unknown_ones_refused() -> None:
    own, options = prepare.split({"amount": 5, "timeout": 3, "colour": 1}, prepare.SEND_OPTIONS)
    assert (own, options) == ({"amount": 5, "colour": 1}, {"timeout": 3})
    prepare.refuse_unknown(options, prepare.SEND_OPTIONS, "payouts.create")
    with pytest.raises(TypeError, match=r"payouts.create\(\) got .* 'colour'; did you mean 'color'\?"):
        prepare.refuse_unknown(own, frozenset({"amount", "color"}), "payouts.create")


@pytest.mark.parametrize(
    ("value", "seconds", "number"),
    [(1, True, True), (0.5, True, False), (0, False, True), (-1, False, False), (True, False, False)]
    + [(value, False, False) for value in (float("inf"), float("nan"), "1", None)],
)
def test_seconds_and_counts_are_told_from_everything_else(value: object, seconds: bool, number: bool) -> None:
    assert settings.positive(value) is seconds
    assert settings.count(value) is number


def test_a_free_requests_parameters_join_the_extra_ones() -> None:
    write, read = operations.custom("POST", "/a"), operations.custom("GET", "/a")
    joined = prepare.with_params(read, None, {"a": 1, "b": 1}, {"extra_query": {"b": 2}, "timeout": 3})
    assert joined == {"extra_query": {"a": 1, "b": 2}, "timeout": 3}
    assert prepare.with_params(write, {"x": 1}, None, {}) == {"extra_query": {}}
    with pytest.raises(InvalidRequest) as caught:
        prepare.with_params(read, {}, 7, {"extra_query": 7})
    assert caught.value.errors.keys() == {"json", "params", "extra_query"}
