"""Payouts, checkout sessions and method status, field by field (Resources and their fields)."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from payments_async.models import (
    Amount,
    AppearanceColors,
    Color,
    Country,
    Customer,
    ExchangeRate,
    Failure,
    FailureCode,
    Gateway,
    GatewayTransaction,
    Method,
    PayoutInstrument,
)
from tests.support import bodies
from tests.support.forms import CHECKOUTS, PAYOUTS, Connect, at, exactly, read, rows

pytestmark = pytest.mark.parametrize("surface", ["async"], indirect=True)  # the mirror decodes nothing itself

BENIN = Country("BJ", "Benin", "🇧🇯")


def second(number: int) -> datetime:
    return datetime(2026, 2, 3, 4, 5, number, tzinfo=UTC)


INSTRUMENT: bodies.Json = {**bodies.INSTRUMENT, "country": BENIN}
PAYOUT = {
    "id": "po_1",
    "amount": Amount(Decimal("10.10"), "XOF 10.10", "XOF 10", "XOF"),
    "settlement_amount": Amount(Decimal("0.02"), "EUR 0.02", "EUR 0", "EUR"),
    "exchange_rate": ExchangeRate(Decimal("655.95700000"), "EUR", "XOF", "1 EUR = 655.957 XOF"),
    "method": Method(**bodies.METHOD),
    "status": "pending",
    "reference": "inv-7",
    "description": "Wages",
    "webhook_url": "https://shop.test/payouts",
    "customer": Customer("cus_1", "Ada", "Agbo", bodies.EMAIL, "https://avatars.test/ada.png"),
    "instrument": PayoutInstrument(**INSTRUMENT),
    "gateway": Gateway(GatewayTransaction("gt_1", "gt-ref-1", "ext-1", "SETTLED")),
    "fee_amount": Amount(Decimal("0.30"), "XOF 0.30", "XOF 0", "XOF"),
    "failure": Failure(
        FailureCode("INSUFFICIENT_FUNDS", "CUSTOMER_ERROR", "Too little money."), "The balance is too low."
    ),
    "metadata": {"row": "12", "n": 5},
    "initiated_at": second(6),
    "completed_at": second(7),
    "failed_at": second(8),
    "created_at": second(5),
}
CHECKOUT = {
    "id": "cs_1",
    "url": "https://pay.test/checkout/cs_1",
    "restriction.country": BENIN,
    "restriction.phone": bodies.PHONE,
    "appearance.template": "wide",
    "appearance.color": AppearanceColors(Color("#0a7d4f", "10, 125, 79"), Color("#ffffff", "255, 255, 255")),
    "appearance.font": {"value": "inter", "url": "https://fonts.test/inter"},
    "appearance.border_style": "rounded",
    "appearance.display_platform_badge": False,
    "appearance.brand": "Books & Co",
    "appearance.icon_url": "https://shop.test/icon.png",
    "appearance.lang": "fr",
    "expires_at": datetime(2026, 1, 2, 4, 3, tzinfo=UTC),
    "created_at": datetime(2026, 1, 2, 3, 3, tzinfo=UTC),
}
METHOD_STATUS = {
    "method": "mtn_bj",
    "country": "BJ",
    "status": "unavailable",
    "environment": "live",
    "window_minutes": 15,
    "generated_at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    "ttl_seconds": 60,
}

ROWS = [
    *rows(PAYOUTS, "field.payout", PAYOUT),
    *rows(PAYOUTS, "field.instrument", INSTRUMENT, at="instrument"),
    *rows(CHECKOUTS, "field.checkout", CHECKOUT),
    *rows(("method status",), "field.method-status", METHOD_STATUS),
]


@pytest.mark.parametrize(("form", "path", "expected"), ROWS)
async def test_a_field_is_read_with_its_type(
    connect: Connect, form: str, path: str, expected: object
) -> None:
    assert exactly(at(await read(connect, form), path), expected)


INSPECTION = {
    "gateway": "gateway_one",
    "gateway_transaction_id": "gt_1",
    "retrieved_at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    "payload": {"state": "SETTLED", "amounts": [Decimal("10.10")]},
}
LIVE: dict[str, dict[str, object]] = {
    "requery": {
        "id": "rq_1",
        "status": "completed",
        "payment_intent_id": "pi_1",
        "payment_attempt_id": "pa_1",
        "before.intent_status": "pending",
        "before.attempt_status": "processing",
        "after.intent_status": "completed",
        "after.attempt_status": "completed",
        "attempts.count": 3,
        "attempts.requeried": 1,
        "completed_at": datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC),
        "created_at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    },
    "attempt inspection": INSPECTION,
    "payout inspection": INSPECTION,
}


@pytest.mark.parametrize(
    ("form", "path", "expected"), [(form, *row) for form, table in LIVE.items() for row in table.items()]
)
async def test_a_field_of_a_live_operation_is_read_as_assumed(
    connect: Connect, form: str, path: str, expected: object
) -> None:
    assert exactly(at(await read(connect, form), path), expected)


@pytest.mark.parametrize("form", PAYOUTS)
async def test_bare_codes_stand_for_a_method_and_a_country(connect: Connect, form: str) -> None:
    bare = {**bodies.PAYOUT, "method": "mtn_bj", "instrument": {**bodies.INSTRUMENT, "country": "BJ"}}
    envelope = {"data": [bare]} if "list" in form else {"data": bare}
    payout = await read(connect, form, envelope)
    assert payout.method == Method(value="mtn_bj")
    assert payout.instrument.country == Country(code="BJ")
