"""What an error answer may say of the request it refuses: never whose account it was (Errors)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from payments_async._request import error_responses
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
