"""What an error answer may say of the request it refuses: never whose account it was (Errors)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from payments_async._request import error_responses
from payments_async._request.error_responses import retry_after
from payments_async.errors import (
    APIStatusError,
    ConflictError,
    DuplicateReference,
    IdempotencyConflict,
    error_class,
)
from payments_async.params import operations
from tests.support.pure_calls import NOW, write
from tests.support.scripted import answer

NAME, ADDRESS, LAST, CITY = "Ada-Maria Agbo", "TXLAQ63Xg1NAzckPwKHvzw", "O'Brien (sr.)", "Rio"
SENT = {
    "amount": 10,
    "description": "Wages",
    "instrument": {
        "type": "crypto_address",
        "account_name": f" {NAME} ",
        "address": ADDRESS,
        "country": "BJ",
        "notes": [{"deep": ["in-a-list"]}, None, 7],
    },
    "customer": {"last_name": LAST, "city": CITY, "first_name": "Amo"},
}


def refusal(said: Any, sent: Any = SENT, status: int = 422) -> APIStatusError:
    raw = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    call = write(operations.PAYOUTS_CREATE, body=raw)
    return error_responses.status_error(call, answer(status, said), NOW)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f"No account of {NAME}.", "No account of ***."),
        (f"no account of {NAME.upper()}", "no account of ***"),
        (f"{ADDRESS} is not on the network", "*** is not on the network"),
        (f"tron:{ADDRESS}x", "tron:***x"),
        (f"{LAST} of {CITY}", "*** of ***"),
        ("the amount of crypto_address BJ is wrong, Amo", "the amount of crypto_address BJ is wrong, ***"),
        ("Wages in-a-list", "Wages ***"),
        ("Riot", "Riot"),
        (f"{'x' * 990} {ADDRESS}", f"{'x' * 990} ***"),
    ],
)
def test_what_was_sent_of_somebody_comes_back_masked(said: str, shown: str) -> None:
    error = refusal({"message": said, "errors": {"instrument": {"address": [said]}}})
    assert error.message == shown
    assert error.errors == {"instrument.address": [shown]}
    assert shown.removesuffix(".") in str(error)


def test_names_of_fields_stay_and_values_among_them_do_not() -> None:
    errors: Mapping[str, Any] = {"amount": ["low"], "instrument.type": ["odd"], f"customer.{CITY}": ["x"]}
    assert list(refusal({"errors": errors}).errors) == ["amount", "instrument.type", "customer.***"]


@pytest.mark.parametrize(
    "sent",
    [b"", b"<html>", b"[1]", {}, {"instrument": None, "customer": "A"}, {"instrument": {"type": "phone"}}],
)
def test_a_request_that_tells_nobody_masks_nothing(sent: Any) -> None:
    assert refusal({"message": "phone A"}, sent).message == "phone A"


@pytest.mark.parametrize(
    ("message", "with_reference", "without"),
    [
        ("Idempotent request in progress.", IdempotencyConflict, IdempotencyConflict),
        ("This KEY belongs to another body.", IdempotencyConflict, IdempotencyConflict),
        ("The reference is taken.", DuplicateReference, ConflictError),
        ("The reference exists, its payout is in progress.", DuplicateReference, ConflictError),
        ("A concurrent request holds this reference.", ConflictError, ConflictError),
        ("The payout is being processed.", ConflictError, ConflictError),
        ("Transaction in-progress.", ConflictError, ConflictError),
        ("Still being  processed;\ttry later.", ConflictError, ConflictError),
        ("This payout is currently processing.", ConflictError, ConflictError),
        ("Request already running.", ConflictError, ConflictError),
        ("Conflict.", DuplicateReference, ConflictError),
        ("", DuplicateReference, ConflictError),
        (None, DuplicateReference, ConflictError),
    ],
)
def test_a_conflict_is_over_the_key_when_it_says_so_and_else_over_the_reference(
    message: str | None, with_reference: type[Any], without: type[Any]
) -> None:
    assert error_class(409, message=message, reference="r-1") is with_reference
    assert error_class(409, message=message) is without


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        (" 7 ", 7.0),
        ("0", 0.0),
        ("1.5", 1.5),
        ("Thu, 01 Jan 2026 00:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 00:00:30", 30.0),
        ("Wed, 31 Dec 2025 23:59:00 GMT", 0.0),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("1e3", None),
        ("٣", None),
        ("1795305607000", 1795305607000.0),  # a moment in milliseconds, say: a mistake, and no missing header
        ("9" * 21, None),
        ("Thu, 01 Jan 99999 00:00:30 GMT", None),
        ("Thu, 01 Foo 2026 00:00:30 GMT", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_a_date_and_as_nothing_else(
    text: str, seconds: float | None
) -> None:
    assert retry_after({"Retry-After": text}, NOW) == seconds


def test_a_date_counts_from_the_services_own_clock_when_it_tells_it() -> None:
    headers = {"Retry-After": "Thu, 01 Jan 2026 00:10:30 GMT", "Date": "Thu, 01 Jan 2026 00:10:00 GMT"}
    assert retry_after(headers, NOW) == 30.0


def test_no_header_is_no_time() -> None:
    assert retry_after({}, NOW) is None
