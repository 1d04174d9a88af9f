"""What a payment's creation sends: every field under its wire name, its value unchanged, as it arrives."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from payments_async import AppearanceInput, AttemptInput, CheckoutRestriction, CustomerInput, PhoneInput
from tests.support.creations import PAYMENTS, create, row
from tests.support.watched import WatchedSandbox

CUSTOMER = {
    "email": "ada@example.test",
    "first_name": "Ada",
    "last_name": "Adéyèmi",
    "address": "1 Rue du Port",
    "city": "Cotonou",
    "state": "Littoral",
    "zip": "01 BP 1",
    "country": "BJ",
}
SHARED: dict[str, Any] = {
    "description": "Order 7",
    "customer": CUSTOMER,
    "return_url": "https://shop.test/back",
    "webhook_url": "https://shop.test/hook",
    "statement_descriptor": "SHOP 7",
    "receipt_email": "ada@example.test",
    "entity_id": "order-7",
    "entity_created_at": "2025-12-31T10:00:00Z",
    "gateway_options": {"sandbox_mobile": {"ussd_menu": 3}},
    "metadata": {"order": "7", "deep": {"list": [1, 2.5, None, True]}},
}

LONGEST = [
    row("description", "d" * 500, facts="request.payment.description.max-500"),
    row("description", "é" * 500, facts="request.payment.description.max-500"),
    row("return_url", "https://x.test/" + "r" * 2033, facts="request.payment.return_url.max-2048"),
    row("webhook_url", "https://x.test/" + "w" * 2033, facts="request.payment.webhook_url.max-2048"),
    row("statement_descriptor", "S" * 22, facts="request.payment.statement_descriptor.max-22"),
    row("statement_descriptor", "Ab 1,2.3-é", facts="request.payment.statement_descriptor.charset"),
    row("receipt_email", "e" * 243 + "@example.tst", facts="request.payment.receipt_email.max-255"),
    row("entity_id", "i" * 191, facts="request.payment.entity_id.max-191"),
    row(
        "gateway_options",
        {"sandbox_card": {"three_d_secure": True}, "sandbox_mobile": {"ussd_menu": 1}},
        facts="request.payment.gateway_options.keyed-by-gateway",
    ),
    row("metadata", {f"k{n}": f"v{n}" for n in range(10)}, facts="request.payment.metadata.max-10"),
    row("metadata", SHARED["metadata"], facts="request.payment.metadata.unchanged"),
    row("customer", CUSTOMER, facts="request.payment.customer"),
]


@pytest.mark.parametrize("resource", PAYMENTS)
@pytest.mark.parametrize(("name", "value"), LONGEST)
@pytest.mark.observed("descriptions are not null")
async def test_a_field_at_its_limit_arrives_unchanged(
    connect: Callable[..., Any], watched: WatchedSandbox, resource: str, name: str, value: Any
) -> None:
    record = await create(connect(watched), resource, **{name: value})

    assert watched.body == {"amount": 50, "currency": "XOF", name: value}
    payment = getattr(record, "payment", record)
    if name not in {"entity_id", "gateway_options", "customer"}:  # what no record shows
        assert getattr(payment, name) == value


@pytest.mark.parametrize(
    "resource",
    [
        row("payment_intents", facts="request.intents.shared-fields"),
        row("checkouts", facts="request.checkouts.shared-fields"),
    ],
)
async def test_all_shared_fields_go_together(
    connect: Callable[..., Any], watched: WatchedSandbox, resource: str
) -> None:
    given = {**SHARED, "entity_created_at": datetime(2025, 12, 31, 10, tzinfo=UTC)}
    await create(connect(watched), resource, **given)
    assert watched.body == {"amount": 50, "currency": "XOF", **SHARED}


@pytest.mark.parametrize("resource", [*PAYMENTS, "payouts"])
@pytest.mark.parametrize("name", [row(name, facts=f"request.customer.{name}") for name in CUSTOMER])
async def test_a_customers_field_arrives_alone(
    connect: Callable[..., Any], watched: WatchedSandbox, resource: str, name: str
) -> None:
    await create(connect(watched), resource, customer=CustomerInput(**{name: CUSTOMER[name]}))
    assert watched.body["customer"] == {name: CUSTOMER[name]}


@pytest.mark.fact(
    "conventions.timestamps-iso-utc",
    "request.payment.entity_created_at.timestamp",
    "request.payment.entity_created_at.not-future",
)
@pytest.mark.parametrize("resource", PAYMENTS)
@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2025, 6, 1, 8, 30, tzinfo=UTC), "2025-06-01T08:30:00Z"),
        (datetime(2025, 6, 1, 8, 30, tzinfo=timezone(timedelta(hours=2))), "2025-06-01T06:30:00Z"),
        (datetime(2025, 6, 1, 8, 30, 0, 250_000, tzinfo=UTC), "2025-06-01T08:30:00.250000Z"),
    ],
)
async def test_a_moment_of_any_zone_travels_in_utc(
    connect: Callable[..., Any], watched: WatchedSandbox, resource: str, moment: datetime, text: str
) -> None:
    await create(connect(watched), resource, entity_created_at=moment)
    assert watched.body["entity_created_at"] == text


@pytest.mark.parametrize(
    ("name", "value", "body"),
    [
        row("expires_in_minutes", 30, 30, facts="request.checkouts.expires_in_minutes.integer"),
        row("expires_in_minutes", 30, 30, facts="request.checkouts.expires_in_minutes.30-to-1440"),
        row("expires_in_minutes", 1440, 1440, facts="request.checkouts.expires_in_minutes.30-to-1440"),
        row(
            "restriction",
            CheckoutRestriction(country_code="BJ"),
            {"country_code": "BJ"},
            facts="request.checkouts.restriction.country request.checkouts.restriction.exclusive",
        ),
        row(
            "restriction",
            CheckoutRestriction(phone=PhoneInput("+22990000000", "BJ")),
            {"phone": {"number": "+22990000000", "country": "BJ"}},
            facts="request.checkouts.restriction.phone request.checkouts.restriction.exclusive",
        ),
        row(
            "appearance",
            AppearanceInput(color="#0a7d4f"),
            {"color": "#0a7d4f"},
            facts="request.checkouts.appearance.color",
        ),
        row(
            "appearance",
            AppearanceInput(display_platform_badge=False),
            {"display_platform_badge": False},
            facts="request.checkouts.appearance.display_platform_badge",
        ),
        row(
            "appearance",
            AppearanceInput(brand="Chez Ada"),
            {"brand": "Chez Ada"},
            facts="request.checkouts.appearance.brand",
        ),
        row(
            "appearance",
            AppearanceInput(icon_url="https://shop.test/i.png"),
            {"icon_url": "https://shop.test/i.png"},
            facts="request.checkouts.appearance.icon_url",
        ),
    ],
)
async def test_what_only_a_checkout_takes_arrives(
    connect: Callable[..., Any], watched: WatchedSandbox, name: str, value: Any, body: Any
) -> None:
    checkout = (await create(connect(watched), "checkouts", **{name: value})).checkout

    assert watched.body == {"amount": 50, "currency": "XOF", name: body}
    if name == "expires_in_minutes":
        assert checkout.expires_at - checkout.created_at == timedelta(minutes=value)


@pytest.mark.fact("request.intents.attempt", "service.intent-may-start-attempt")
async def test_an_attempt_is_started_with_its_intent(
    connect: Callable[..., Any], watched: WatchedSandbox
) -> None:
    attempt = AttemptInput("mtn_bj", country="BJ", phone=PhoneInput("+22990000000", "BJ"), currency="XOF")
    intent = await create(connect(watched), "payment_intents", attempt=attempt)

    assert watched.body["attempt"] == {
        "method_code": "mtn_bj",
        "country": "BJ",
        "phone": {"number": "+22990000000", "country": "BJ"},
        "currency": "XOF",
    }
    assert intent.active_attempt.method.value == "mtn_bj"
    without = await create(connect(watched), "payment_intents")
    assert without.active_attempt is None
