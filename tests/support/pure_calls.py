"""Calls as values, for tests of the rules alone."""

from __future__ import annotations

from copy import copy
from datetime import UTC, datetime
from typing import Any

from payments_async._request import error_responses as error_responses
from payments_async._request import key_age as key_age
from payments_async._request import pending as pending
from payments_async._request import prepare as prepare
from payments_async._request.call import Call as Call
from payments_async._request.outcome import read_answer as read_answer
from payments_async.params import PreparedRequest, operations
from payments_async.params.operations import Operation

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BODY = b'{"amount":10.1,"currency":"XOF","reference":"r-1"}'


def prepared(operation: Operation[Any], body: bytes = BODY, reference: str | None = "r-1") -> PreparedRequest:
    origin = ("http://127.0.0.1:9/v1", "sandbox", "0123456789abcdef")
    return PreparedRequest(operation.name, operation.path, body, "key-0001", NOW, *origin, reference)


def write(operation: Operation[Any], **changes: Any) -> Call:
    return prepare.writing(prepared(operation, **changes), {}, operation=operation)


def begun(call: Call, *, now: float = 0.0, deadline: float | None = None) -> Call:
    fresh = copy(call)
    fresh.tries = []
    fresh.begin(now, deadline, lambda: key_age.Timestamps(NOW.timestamp(), 0.0, "here"))
    return fresh


PAYOUT = write(operations.PAYOUTS_CREATE)
