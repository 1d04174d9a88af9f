"""Every error class: what it carries, what a copy of it keeps, what it never shows (Errors)."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from payments_async import errors
from payments_async.bulk import LedgerError, LedgerUnavailable
from payments_async.errors import APIStatusError, PaymentsError, UnprocessableError
from payments_async.models import Attempt, Customer, Payout
from payments_async.params import PreparedRequest, operations
from tests.support import bodies
from tests.support.pure_calls import error_responses, prepare
from tests.support.scripted import answer

NOW = datetime(2026, 1, 2, tzinfo=UTC)
SECRET = f"account {bodies.ACCOUNT} of {bodies.EMAIL}"
PREPARED = PreparedRequest(
    "payouts.create",
    "/payouts",
    SECRET.encode(),
    "key-12345678",
    NOW,
    "http://127.0.0.1:9/v1",
    "sandbox",
    "0123456789abcdef",
    "inv-7",
    {"X-Note": SECRET},
)
FACTS: dict[str, Any] = {
    "operation": "payouts.create",
    "idempotency_key": "key-12345678",
    "attempts": (Attempt(1, "in_doubt", "timeout", None, 0.0, 30.0),),
}
STATUS: dict[str, Any] = {
    "status": 499,
    "service_message": "No.",
    "errors": {"amount": ["too small"]},
    "headers": {"X-Request-Id": "req-1"},
    "body": SECRET.encode(),
    "effect": "none",
    **FACTS,
}
RECORD = Payout(id="po_1", customer=Customer(email=bodies.EMAIL))
EXAMPLES: dict[str, PaymentsError] = {
    "PaymentsError": PaymentsError("said", effect="happened", **FACTS),
    "ConfigurationError": errors.ConfigurationError("said", **FACTS),
    "InvalidRequest": errors.InvalidRequest({"amount": ["too small"]}, operation="payouts.create"),
    "APIConnectionError": errors.APIConnectionError("said", kind="dns", **FACTS),
    "APITimeoutError": errors.APITimeoutError("said", kind="timeout", **FACTS),
    "OutcomeUnknown": errors.OutcomeUnknown(
        "said", prepared=PREPARED, first_sent_at=NOW, key_expires_at=None, **FACTS
    ),
    "DeadlineExceeded": errors.DeadlineExceeded("said", **FACTS),
    "LimitReached": errors.LimitReached("said", retry_after=1.5, **FACTS),
    "LimitStoreUnavailable": errors.LimitStoreUnavailable("said", retry_after=1.0, **FACTS),
    "GuardRefused": errors.GuardRefused(
        "said",
        rule="most",
        amount=Decimal(50),
        currency="GHS",
        allowed=Decimal(5),
        room_at=NOW,
        **FACTS,
    ),
    "SearchIncomplete": errors.SearchIncomplete("said", pages=3, cursor="c", **FACTS),
    "RateLimitedError": errors.RateLimitedError("said", retry_after=2.0, limit=60, remaining=0, **STATUS),
    "DecodeError": errors.DecodeError("said", record_id="po_1", body=SECRET.encode(), **FACTS),
    "ResponseMismatch": errors.ResponseMismatch(
        "said", record=RECORD, differences={"amount": ("1", "2")}, **FACTS
    ),
    "WaitTimeout": errors.WaitTimeout("said", last=RECORD, token="{}", **FACTS),
    **{
        cls.__name__: cls("said", **STATUS)
        for cls in (
            errors.APIStatusError,
            errors.BadRequestError,
            errors.AuthenticationError,
            errors.PermissionDeniedError,
            errors.NotFoundError,
            errors.ConflictError,
            errors.DuplicateReference,
            errors.IdempotencyConflict,
            errors.UnprocessableError,
            errors.ServerError,
        )
    },
}
HEAVY = {"body", "prepared", "record", "last"}
examples = pytest.mark.parametrize("error", EXAMPLES.values(), ids=EXAMPLES.keys())


def test_there_is_an_example_of_every_class() -> None:
    classes = {
        name for name, cls in vars(errors).items() if isinstance(cls, type) and issubclass(cls, PaymentsError)
    }
    assert classes == set(EXAMPLES)


@examples
@pytest.mark.parametrize(
    "copied", [lambda e: pickle.loads(pickle.dumps(e)), copy.deepcopy], ids=["pickle", "deep"]
)
def test_a_copy_keeps_every_fact_and_leaves_bodies_behind(error: PaymentsError, copied: Any) -> None:
    twin = copied(error)
    assert type(twin) is type(error)
    assert (str(twin), twin.args) == (str(error), error.args)
    assert vars(twin).keys() == vars(error).keys()
    for name, value in vars(error).items():
        assert getattr(twin, name) == (None if name in HEAVY else value), name


@examples
def test_a_pickle_and_the_texts_of_an_error_hold_no_account(error: PaymentsError) -> None:
    shown = f"{error!r} {error} {error.args}".encode() + pickle.dumps(error)
    assert bodies.ACCOUNT.encode() not in shown
    assert bodies.EMAIL.encode() not in shown


TEMPORARY = {
    *("APIConnectionError", "APITimeoutError", "DeadlineExceeded", "LimitReached", "LimitStoreUnavailable"),
    "LedgerUnavailable",
}


def test_an_error_is_temporary_if_the_very_same_call_can_succeed_later() -> None:
    found = [*EXAMPLES.values(), LedgerUnavailable("june.ledger", "is busy"), LedgerError("l", "is none")]
    assert {type(error).__name__ for error in found if error.is_temporary} == TEMPORARY
    at = {status: APIStatusError("said", **{**STATUS, "status": status}) for status in range(300, 600)}
    assert {status for status, error in at.items() if error.is_temporary} == {408, 429, *range(500, 600)}
    assert not errors.ServerError("said", **{**STATUS, "status": 503, "effect": "unknown"}).is_temporary
    kinds = (
        "dns",
        "connect",
        "tls",
        "pool",
        "reset",
        "protocol",
        "closed",
        "withheld",
        "timeout",
        "unexpected",
    )
    lasting = {kind for kind in kinds if not errors.APIConnectionError("said", kind=kind).is_temporary}
    assert lasting == {"tls", "closed", "withheld", "unexpected"}


CALL = prepare.reading(operations.PAYOUTS_SYNC, {}, {"payout_id": "po_1"})


def refusal(body: bytes, status: int = 422) -> APIStatusError:
    return error_responses.status_error(CALL, answer(status, body), NOW)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("call +229 90 11 22 33 now", "call *** now"),
        ("call 0022990112233.", "call ***."),
        ("account 1234-5678-9012", "account ***"),
        ("IBAN BJ6600112233445566", "IBAN BJ***"),
        ("write to ada.agbo+shop@mail.example.com, or not", "write to ***, or not"),
        ("<ada@example.com>", "<***>"),
        ("1234567@x", "***@x"),
        ("a@b", "***"),
        ("12 34-56 7", "***"),
        ("٣٣٣٣٣٣٣", "***"),
        ("at least 100 and at most 500000", "at least 100 and at most 500000"),
        ("", ""),
        ("a" * 2000, "a" * 1000),
    ],
)
def test_phones_accounts_and_addresses_in_messages_are_masked(said: str, shown: str) -> None:
    error = refusal(json.dumps({"message": said, "errors": {"x": [said]}}).encode())
    assert error.message == shown
    assert error.errors == {"x": [shown]}


@pytest.mark.parametrize("depth", [10, 100, 900, 970, 980, 990, 995, 999, 5000])
@pytest.mark.parametrize(("start", "end"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_errors_nested_to_any_depth_are_survived(start: bytes, end: bytes, depth: int) -> None:
    for more in range(5):
        raw = (
            b'{"message":"No.","errors":{"x":' + start * (depth + more) + b"1" + end * (depth + more) + b"}}"
        )
        assert type(refusal(raw)) is UnprocessableError


@pytest.mark.parametrize(
    "text", ["a" * 800, "1 " * 400, "1-" * 400 + "x", "a@" * 400, "a." * 400, "+" * 800, "@" * 800]
)
def test_a_huge_errors_object_is_cut(text: str) -> None:
    raw = json.dumps({"errors": {f"k{i}": {f"j{j}": text for j in range(100)} for i in range(50)}}).encode()
    error = refusal(raw)
    assert 0 < len(error.errors) <= 500
    assert len(str(error)) < 3000


def test_tracebacks_and_pickles_name_the_public_place_of_every_error() -> None:
    found = [getattr(errors, name) for name in errors.__all__]
    kinds = [kind for kind in found if isinstance(kind, type) and issubclass(kind, PaymentsError)]
    assert len(kinds) > 20
    assert {kind.__module__ for kind in kinds} == {"payments_async.errors"}
