"""Equal amounts are one request; what may be meant otherwise is asked, and never paid silently."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy
import pandas
import pytest

from payments_async import (
    Guard,
    GuardRefused,
    IdempotencyConflict,
    InvalidRequest,
    UnprocessableError,
    events,
)
from payments_async.sandbox import Sandbox
from tests.support.motion import PAYOUT, payout_answer, play
from tests.support.scripted import answer
from tests.support.surfaces import Connect, error_of

KEY = "order-7-attempt-1"


class Numeric(Decimal):
    """What a database driver may return."""


SPELLED = ["50", "50.00", 50, Decimal("50.0000"), Decimal("5E+1"), Numeric("50.00"), "5e1", "50."]


@pytest.mark.parametrize("amount", SPELLED, ids=repr)
async def test_equal_amounts_are_equal_bytes(connect: Connect, amount: Any) -> None:
    client = connect()
    assert b'"amount":50,' in client.payouts.prepare(**{**PAYOUT, "amount": amount}).body
    assert b'"amount":50,' in client.checkouts.prepare(amount=amount, currency="GHS").body


async def test_an_amount_of_more_digits_than_money_has_is_refused(connect: Connect) -> None:
    for amount in (Decimal("1." + "1" * 200), "1." + "1" * 90):
        with pytest.raises(InvalidRequest) as caught:
            connect().payouts.prepare(**{**PAYOUT, "amount": amount})
        assert list(caught.value.errors) == ["amount"]


@pytest.mark.parametrize("again", [Decimal("50.00"), "50.0", 5e1], ids=repr)
async def test_one_key_takes_an_equal_amount_in_any_spelling(connect: Connect, again: Any) -> None:
    played = play(connect, answer(201, {"id": "rf_1"}))
    for amount in (50, again):
        await played.client.request("POST", "/refunds", json={"amount": amount}, idempotency_key=KEY)
    assert [request.body for request in played.transport.requests] == [b'{"amount":50}'] * 2
    with pytest.raises(InvalidRequest, match="amount differs"):
        await played.client.request("POST", "/refunds", json={"amount": 51}, idempotency_key=KEY)


@pytest.mark.parametrize(
    "name",
    [
        *("X-Idempotency-Key", "x_idempotency_key", "Idempotency-Key"),
        *("idempotencyKey", "headers.x-idempotency-key"),
    ],
)
@pytest.mark.parametrize("status", [400, 409, 422, 428])
async def test_a_refusal_of_the_key_alone_proves_nothing(connect: Connect, status: int, name: str) -> None:
    played = play(
        connect,
        answer(status, {"message": "Used for reference r-1.", "errors": {name: ["belongs to another"]}}),
    )
    caught = await error_of(IdempotencyConflict, played.client.payouts.create(**PAYOUT))
    assert caught.effect == "unknown"
    assert "new idempotency key" not in str(caught)


@pytest.mark.parametrize(
    ("errors", "effect"),
    [({}, "none"), ({"amount": ["is low"]}, "none"), ({"idempotency_key": ["x"], "amount": ["y"]}, "none")],
)
async def test_when_a_new_key_is_advised(connect: Connect, errors: dict[str, list[str]], effect: str) -> None:
    played = play(connect, answer(422, {"message": "Invalid.", "errors": errors}))
    caught = await error_of(UnprocessableError, played.client.payouts.create(**PAYOUT))
    assert caught.effect == effect
    assert ("new idempotency key" in str(caught)) is bool(errors)


@pytest.mark.parametrize(
    ("answered", "told"),
    [
        (answer(422, {"message": "Invalid."}), IdempotencyConflict),
        (answer(422, {"message": "Invalid."}, {"X-Idempotent-Replayed": "true"}), UnprocessableError),
        (answer(422, {"message": "The reference is bad."}), UnprocessableError),
        (answer(422, {"message": "Invalid.", "errors": {"amount": ["is low"]}}), UnprocessableError),
    ],
)
async def test_a_bare_refusal_of_a_used_key(connect: Connect, answered: Any, told: type[Exception]) -> None:
    played = play(connect, payout_answer(), answered)
    await played.client.payouts.create(**PAYOUT, idempotency_key=KEY)
    caught = await error_of(told, played.client.payouts.create(**PAYOUT, idempotency_key=KEY))
    assert getattr(caught, "effect", None) == ("unknown" if told is IdempotencyConflict else "none")


# What may be meant otherwise


DOUBTFUL = [("150.000", "XOF", "150000, or 150?"), ("1.500", "GHS", "1500, or 1.5?")]
CLEAR = [
    *(("1.500", "KWD"), ("1.500", "XAU"), ("1.50", "GHS"), ("150.0000", "XOF")),
    *((Decimal("150.000"), "XOF"), (Decimal("1.500"), "GHS")),
]


@pytest.mark.parametrize(("amount", "currency", "guess"), DOUBTFUL)
async def test_three_decimals_in_a_text_are_a_doubt_in_a_call(
    connect: Connect, sandbox: Sandbox, amount: str, currency: str, guess: str
) -> None:
    seen: list[Any] = []
    made = await connect(sandbox, on_event=seen.append).payouts.create(
        **{**PAYOUT, "amount": amount, "currency": currency}
    )
    assert made.amount.value == Decimal(amount)
    (doubt,) = [event for event in seen if isinstance(event, events.Doubted)]
    assert guess in doubt.doubt
    assert str(doubt).startswith("payouts.create: amount is ")


@pytest.mark.parametrize(("amount", "currency", "guess"), DOUBTFUL)
async def test_under_a_guard_it_is_refused(connect: Connect, amount: str, currency: str, guess: str) -> None:
    fields = {**PAYOUT, "amount": amount, "currency": currency}
    guarded = play(connect, payout_answer(), guard=Guard(most={currency: 10_000}, budgets="process"))
    caught = await error_of(GuardRefused, guarded.client.payouts.create(**fields), match="nothing was sent")
    assert guess in str(caught)
    assert (caught.rule, guarded.transport.requests) == ("decimals", [])
    lenient = Guard(most={currency: 10_000}, budgets="process", decimals=False)
    played = play(connect, payout_answer(), guard=lenient)
    assert played.client.payouts.prepare(**fields)


@pytest.mark.parametrize(("amount", "currency"), CLEAR, ids=str)
async def test_what_is_clear_is_no_doubt(connect: Connect, amount: Any, currency: str) -> None:
    seen: list[Any] = []
    client = connect(on_event=seen.append)
    body = json.loads(client.payouts.prepare(**{**PAYOUT, "amount": amount, "currency": currency}).body)
    assert Decimal(str(body["amount"])) == Decimal(amount)
    assert seen == []


# What is accepted is written


class Safe(str):
    """Text of a web framework, which marks what is safe."""

    __slots__ = ()

    def __str__(self) -> str:
        return self


class Moment(datetime):
    """A time of another library."""


@pytest.mark.parametrize(
    "made_at",
    [
        Moment(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=1))),
        pandas.Timestamp("2026-01-01T12:00:00+01:00"),
        datetime(2026, 1, 1, 11, tzinfo=UTC),
    ],
)
async def test_values_of_other_classes_are_written_plain(connect: Connect, made_at: datetime) -> None:
    pairs = {Safe("a"): [Safe("b"), numpy.str_("c")], "n": (numpy.float64(1.5), Numeric("2.50"))}
    fields: dict[str, Any] = {
        "amount": Numeric("50.00"),
        "currency": "GHS",
        "description": Safe("ten"),
        "metadata": pairs,
        "customer": {"email": numpy.str_("ama@shop.test")},
        "entity_created_at": made_at,
    }
    sent = json.loads(connect().checkouts.prepare(**fields, extra_body={"more": pairs}).body)
    written = {"a": ["b", "c"], "n": [1.5, 2.5]}
    assert (sent["metadata"], sent["more"]) == (written, written)
    assert (sent["amount"], sent["description"], sent["customer"]) == (50, "ten", {"email": "ama@shop.test"})
    assert sent["entity_created_at"] == "2026-01-01T11:00:00Z"


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("entity_created_at", pandas.NaT, "is NaT, which is no time"),
        ("amount", numpy.int64(5), "not int64"),
        ("metadata", {"at": Moment(2026, 1, 1)}, "at is a Moment, which JSON cannot carry"),
        ("description", numpy.bytes_(b"x"), "not bytes_"),
    ],
)
async def test_what_is_refused_is_named_by_field(connect: Connect, field: str, value: Any, told: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        connect().checkouts.prepare(**{"amount": 50, "currency": "GHS", field: value})
    ((name, (text,)),) = caught.value.errors.items()
    assert name == field
    assert told in text
