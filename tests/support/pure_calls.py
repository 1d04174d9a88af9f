"""Calls as values, for tests of the rules alone."""

from __future__ import annotations

from copy import copy
from datetime import UTC, datetime
from typing import Any

from payments_async._request import prepare
from payments_async._request.call import Call
from payments_async._request.key_age import Timestamps
from payments_async.params import PreparedRequest, operations
from payments_async.params.operations import Operation

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BODY = b'{"amount":10.1,"currency":"XOF","reference":"r-1"}'


def prepared(operation: Operation[Any], body: bytes = BODY, reference: str | None = "r-1") -> PreparedRequest:
    origin = ("http://127.0.0.1:9/v1", "sandbox", "0123456789abcdef")
    return PreparedRequest(operation.name, operation.path, body, "key-0001", NOW, *origin, reference)


def write(operation: Operation[Any], **changes: Any) -> Call:
    return prepare.writing(prepared(operation, **changes), {}, operation=operation)


def read(operation: Operation[Any] = operations.PAYOUTS_SYNC, **ids: str) -> Call:
    return prepare.reading(operation, {}, ids or {"payout_id": "po_1"})


def begun(call: Call, *, now: float = 0.0, deadline: float | None = None) -> Call:
    fresh = copy(call)
    fresh.tries = []
    fresh.begin(now, deadline, lambda: Timestamps(NOW.timestamp(), 0.0, "here"))
    return fresh


PAYOUT = write(operations.PAYOUTS_CREATE)
INTENT = write(operations.INTENTS_CREATE, body=b'{"amount":10.1,"currency":"XOF"}', reference=None)
CHECKOUT = write(operations.CHECKOUTS_CREATE, body=b'{"amount":10.1,"currency":"XOF"}', reference=None)
REQUERY = write(operations.INTENTS_REQUERY, body=b"{}", reference=None)
OTHER_POST = write(operations.custom("POST", "/refunds"), body=b"{}", reference=None)
READ = read()
LIST = prepare.reading(operations.PAYOUTS_LIST, {})
CREATING = {"payout": PAYOUT, "intent": INTENT, "checkout": CHECKOUT, "other": OTHER_POST}
HARMLESS = {"requery": REQUERY, "read": READ, "list": LIST}
