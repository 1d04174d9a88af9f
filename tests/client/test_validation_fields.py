"""Fields that break a limit of the interface: named with their rule, and nothing is sent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from payments_async import Instrument
from payments_async.errors import InvalidRequest
from tests.support.creations import PAYMENTS, create, row
from tests.support.jumping import EPOCH, JumpingRuntime
from tests.support.scripted import ScriptedTransport, answer

pytestmark = pytest.mark.parametrize("surface", ["async"], indirect=True)  # the mirror checks nothing itself

NAIVE = datetime(2026, 1, 1)
SELF: list[Any] = []
SELF.append(SELF)


def refused(transport: ScriptedTransport, caught: Any, field: str, rule: str, value: Any) -> None:
    """The error names exactly this field and rule, shows no value, and nothing left."""
    assert transport.requests == []
    assert caught.value.effect == "none"
    assert caught.value.attempts == ()
    assert list(caught.value.errors) == [field]
    ((told),) = caught.value.errors[field]
    assert rule in told
    assert f"{field}: " in str(caught.value)
    assert rule in str(caught.value)
    shown = str(value)
    if len(shown) > 3:
        assert shown not in str(caught.value) + repr(caught.value) + repr(caught.value.errors)


AMOUNTS = [
    row(77.77, "is a float"),
    row(50.0, "is a float"),
    row(float("nan"), "is a float"),
    row(float("inf"), "is a float"),
    row(Decimal("NaN"), "finite"),
    row(Decimal("sNaN"), "finite"),
    row(Decimal("Infinity"), "finite"),
    row(Decimal("-Infinity"), "finite"),
    row(0, "at least 1"),
    row(-5, "at least 1"),
    row("-5", "at least 1"),
    row(Decimal("0.99"), "at least 1"),
    row(Decimal("0.9999999999999999999999"), "at least 1"),
    row(True, "must be a Decimal"),
    row(None, "is required"),
    row("", "is required"),
    row("1_0", "is text that is not a decimal number"),
    row("١٢٣٤", "is text that is not a decimal number"),
    row("５０００", "is text that is not a decimal number"),
    row(" 5 ", "is text that is not a decimal number"),
    row("5000\n", "is text that is not a decimal number"),
    row("1,000.00", "is text that is not a decimal number"),
    row("50 XOF", "is text that is not a decimal number"),
    row("0x1F", "is text that is not a decimal number"),
    row("NaN", "is text that is not a decimal number"),
    row("Infinity", "is text that is not a decimal number"),
    row("--5", "is text that is not a decimal number"),
    row("9" * 101, "is text that is not a decimal number"),
    row(10**31, "more digits"),
    row(Decimal("1E+5000"), "more digits"),
    row(Decimal("1." + "1" * 40), "more digits"),
    row(b"50", "must be a Decimal"),
    row([50], "must be a Decimal"),
]
INEXACT = [(77.77, "is a float", "number"), (Decimal("0.99"), "at least 1", "min-1")]


@pytest.mark.parametrize(
    ("resource", "value", "rule"),
    [
        *(row("payouts", *each.values) for each in AMOUNTS),
        *(
            row("payouts", value, rule, facts=f"request.payouts.amount.{fact}")
            for value, rule, fact in INEXACT
        ),
        *(
            row(resource, value, rule, facts=f"request.payment.amount.{fact}")
            for resource in PAYMENTS
            for value, rule, fact in INEXACT
        ),
    ],
)
async def test_an_amount_that_is_not_exact_money_is_refused(
    connect: Callable[..., Any], resource: str, value: Any, rule: str
) -> None:
    transport = ScriptedTransport(answer(500))
    with pytest.raises(InvalidRequest) as caught:
        await create(connect(transport=transport), resource, amount=value)
    refused(transport, caught, "amount", rule, value)


OF_PAYMENTS = [
    *(
        row("currency", code, "three uppercase letters", facts="request.payment.currency.iso-4217")
        for code in ("xof", "XO", "XOFX", "X0F", "XÖF", "XOF\n", " XOF", 952)
    ),
    row("currency", None, "is required"),
    row("description", "d" * 501, "at most 500", facts="request.payment.description.max-500"),
    row("description", 7777, "must be text, not int"),
    row("description", "bad \ud800 text", "lone surrogate"),
    row("return_url", "u" * 2049, "at most 2048", facts="request.payment.return_url.max-2048"),
    row("webhook_url", "u" * 2049, "at most 2048", facts="request.payment.webhook_url.max-2048"),
    row("statement_descriptor", "S" * 23, "at most 22", facts="request.payment.statement_descriptor.max-22"),
    *(
        row("statement_descriptor", text, "letters", facts="request.payment.statement_descriptor.charset")
        for text in ("SHOP_7", "SHOP*7", "SHOP#7", "SHOP/7", "SHOP&7", "SHOP 💸", "SHOP'7")
    ),
    row("receipt_email", "e" * 256, "at most 255", facts="request.payment.receipt_email.max-255"),
    row("entity_id", "i" * 192, "at most 191", facts="request.payment.entity_id.max-191"),
    row("entity_created_at", NAIVE, "time zone", facts="request.payment.entity_created_at.timestamp"),
    row("entity_created_at", "2026-01-01T00:00:00Z", "must be a datetime"),
    row("entity_created_at", date(2026, 1, 1), "must be a datetime, not date"),
    row(
        "entity_created_at",
        EPOCH + timedelta(seconds=1),
        "must not be in the future",
        facts="request.payment.entity_created_at.not-future",
    ),
    row("gateway_options", ["card"], "must be a mapping, not list"),
    row(
        "gateway_options",
        {7: {"a": 1}},
        "text keys",
        facts="request.payment.gateway_options.keyed-by-gateway",
    ),
    row("metadata", {str(n): n for n in range(11)}, "at most 10", facts="request.payment.metadata.max-10"),
    row("metadata", "text", "must be a mapping, not str"),
    row("customer", "Ada Adeyemi", "CustomerInput or a mapping", facts="request.payment.customer"),
]


@pytest.mark.parametrize(
    ("resource", "field", "value", "rule"),
    [
        pytest.param(PAYMENTS[number % 2], *each.values, marks=each.marks)
        for number, each in enumerate(OF_PAYMENTS)
    ],
)
async def test_a_payments_field_beyond_its_limit_is_refused(
    connect: Callable[..., Any], resource: str, field: str, value: Any, rule: str
) -> None:
    transport = ScriptedTransport(answer(500))
    client = connect(transport=transport, runtime=JumpingRuntime())
    with pytest.raises(InvalidRequest) as caught:
        await create(client, resource, **{field: value})
    refused(transport, caught, field, rule, value)


async def test_the_present_moment_is_not_the_future(connect: Callable[..., Any]) -> None:
    transport = ScriptedTransport(answer(201, {"data": {"id": "pi_1"}}))
    client = connect(transport=transport, runtime=JumpingRuntime())
    await create(client, "payment_intents", entity_created_at=EPOCH.astimezone(UTC))
    assert len(transport.requests) == 1


OF_PAYOUTS = [
    *(
        row("currency", code, "three uppercase letters", facts="request.payouts.currency.3-characters")
        for code in ("xof", "XO", "XOFX")
    ),
    *(row(name, None, "is required") for name in ("currency", "method", "instrument")),
    row("method", "", "is required", facts="request.payouts.method"),
    row("method", 1234, "must be text", facts="request.payouts.method"),
    row("description", "d" * 501, "at most 500", facts="request.payouts.description.max-500"),
    row("reference", "r" * 192, "at most 191", facts="request.payouts.reference.max-191"),
    row("reference", 1234, "must be text, not int"),
    row("reference", "", "must not be blank"),
    row("reference", "inv\n7890", "holds a control character"),
    row("reference", "inv-7890 ", "begins or ends with a blank"),
    row("reference", "\u3000inv-7890", "begins or ends with a blank"),
    row("reference", "inv\u200b-7890", "holds U+200B, which is invisible or unassigned"),
    row("instrument", {}, "is required"),
    row("instrument", Instrument(), "is required"),
    row("webhook_url", "u" * 2049, "at most 2048", facts="request.payouts.webhook_url.max-2048"),
    row("metadata", {str(n): n for n in range(11)}, "at most 10", facts="request.payouts.metadata.max-10"),
    row("gateway_options", "card", "must be a mapping", facts="request.payouts.gateway_options"),
    row("instrument", "+22990000000", "Instrument or a mapping", facts="service.payout-to-instrument"),
    row("customer", 1234, "CustomerInput or a mapping", facts="request.payouts.customer"),
]


@pytest.mark.parametrize(("field", "value", "rule"), OF_PAYOUTS)
async def test_a_payouts_field_beyond_its_limit_is_refused(
    connect: Callable[..., Any], field: str, value: Any, rule: str
) -> None:
    transport = ScriptedTransport(answer(500))
    with pytest.raises(InvalidRequest) as caught:
        await create(connect(transport=transport), "payouts", **{field: value})
    refused(transport, caught, field, rule, value)


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("metadata", {"a": float("nan")}, "not finite"),
        ("metadata", {"a": {1, 2}}, "a is a set, which JSON cannot carry"),
        ("gateway_options", {"a": [Decimal("Infinity")]}, "a.0 is a number that is not finite"),
        ("gateway_options", {"a": b"bytes"}, "bytes, which JSON cannot carry"),
        ("customer", {"a": {"b": {3: "c"}}}, "text keys"),
        ("customer", {"a": ["x", "\udc80"]}, "lone surrogate"),
        ("extra_body", {"a": datetime(2026, 1, 1, tzinfo=UTC)}, "datetime, which JSON cannot carry"),
        ("extra_body", {"\ud800": "a"}, "text keys"),
        ("extra_body", {"a": SELF}, "nested more than 32 deep"),
    ],
)
async def test_what_json_cannot_carry_unchanged_is_refused(
    connect: Callable[..., Any], field: str, value: Any, rule: str
) -> None:
    transport = ScriptedTransport(answer(500))
    with pytest.raises(InvalidRequest) as caught:
        await create(connect(transport=transport), "payouts", **{field: value})
    refused(transport, caught, field, rule, "\x00nothing to look for")


async def test_text_of_a_foreign_class_is_refused(connect: Callable[..., Any]) -> None:
    class Shouting(str):
        __slots__ = ()

    transport = ScriptedTransport(answer(500))
    with pytest.raises(InvalidRequest) as caught:
        await create(connect(transport=transport), "payouts", description=Shouting("canary"))
    refused(transport, caught, "body", "cannot be written as JSON", "canary")
