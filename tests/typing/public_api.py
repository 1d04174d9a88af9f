"""How the public face looks to a type checker. Never run, only checked: `nox -s typing`."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, assert_type

from sqlalchemy import Connection, MetaData
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session

from payments_async import (
    AsyncPayments,
    Checkout,
    CheckoutRestriction,
    ExchangeRate,
    Inspection,
    Instrument,
    LimitSnapshot,
    MethodStatus,
    Page,
    PaymentAttempt,
    PaymentIntent,
    Payout,
    PreparedRequest,
    RateLimits,
    RefundAvailability,
    Requery,
)
from payments_async import bulk as async_bulk
from payments_async import errors as async_errors
from payments_async.errors import Effect, OutcomeUnknown, PaymentsError, UnprocessableError
from payments_async.events import Event
from payments_sync import Payments, bulk, errors


def on_event(event: Event) -> None:
    assert_type(event.operation, str)


async def asynchronous() -> None:
    async with AsyncPayments("sk_sandbox_x", limits=RateLimits(writes=10), on_event=on_event) as client:
        assert_type(client, AsyncPayments)
        payout = await client.payouts.create(
            amount=Decimal("5"),
            currency="XOF",
            method="mtn_bj",
            instrument=Instrument.phone("+22990000000", "BJ"),
            metadata={"row": 1},
            idempotency_key="invoice-7-a",
            deadline=20,
        )
        assert_type(payout, Payout)
        assert_type(payout.exchange_rate, ExchangeRate | Decimal | None)
        assert_type(payout.is_final, bool)
        assert_type((payout.id, payout.status), tuple[str, str | None])
        assert_type(await client.payouts.find("invoice-7"), Payout | None)
        assert_type(await client.payouts.list(created_on_or_after=date(2026, 1, 1)), Page[Payout])
        async for item in client.payouts.iterate(status="pending", max_items=5):
            assert_type(item, Payout)
        assert_type(await client.payouts.wait(payout, deadline=60.0), Payout)
        assert_type(await client.payouts.inspect("po_1"), Inspection)
        checkout = await client.checkouts.create(
            amount="10.50",
            currency="GHS",
            entity_created_at=datetime.now(UTC),
            restriction=CheckoutRestriction(country_code="GH"),
        )
        assert_type(checkout, Checkout)
        assert_type((checkout.id, checkout.url), tuple[str, str])
        intent = await client.payment_intents.create(amount=1, currency="XOF")
        assert_type(intent, PaymentIntent)
        assert_type(intent.id, str)
        assert_type(await client.payment_intents.retrieve_attempt("pi_1", "pa_1"), PaymentAttempt)
        assert_type(await client.payment_intents.refund_availability("pi_1"), RefundAvailability)
        assert_type(await client.payment_intents.requery("pi_1"), Requery)
        assert_type(await client.methods.status("mtn_bj", "BJ"), MethodStatus)
        assert_type(await client.request("GET", "/payouts"), Any)
        assert_type(await client.request("GET", "/payouts/po_1", result=Payout), Payout)
        prepared = client.payouts.prepare(
            amount=5, currency="XOF", method="mtn_bj", instrument={"type": "phone"}
        )
        assert_type(prepared, PreparedRequest[Payout])
        assert_type(await client.send(prepared), Payout)
        assert_type(await client.resolve(prepared), Payout)
        stored: PreparedRequest = PreparedRequest.from_json(prepared.to_json())
        assert_type(await client.send(stored), Any)
        assert_type(await client.send(PreparedRequest[Checkout].from_json("{}")), Checkout)
        assert_type(client.with_options(timeout=5), AsyncPayments)
        assert_type(client.with_options(api_key=lambda: "sk_sandbox_y"), AsyncPayments)
        client.with_options(api_key=None)  # type: ignore[arg-type] # a missing key keeps no other
        assert_type(client.limits_snapshot()["write"], LimitSnapshot)
        await client.payouts.create(currency="XOF")  # type: ignore[call-arg] # amount and others are required
        await client.payouts.create(amount=1.5, currency="X", method="m", instrument={})  # type: ignore[arg-type] # a float is no money
        async for _ in client.payouts.list():  # type: ignore[attr-defined] # a page is awaited
            pass
        await client.payouts.list(nonsense=1)  # type: ignore[call-arg] # not a filter


def blocking() -> None:
    with Payments("sk_sandbox_x") as client:
        assert_type(client, Payments)
        payout = client.payouts.create(
            amount=5, currency="XOF", method="mtn_bj", instrument=Instrument.phone("+229", "BJ")
        )
        assert_type(payout, Payout)
        for item in client.payouts.iterate(max_items=5):
            assert_type(item, Payout)
        assert_type(client.checkouts.retrieve("cs_1"), Checkout)
        assert_type(client.request("GET", "/payouts/po_1", result=Payout), Payout)
        assert_type(client.with_options(max_retries=0), Payments)
        assert_type(client.with_options(api_key="sk_sandbox_y"), Payments)
        prepared = client.checkouts.prepare(amount=5, currency="XOF")
        assert_type(client.send(prepared), Checkout)
        assert_type(client.resolve(prepared), Checkout)


def progressed(progress: bulk.BatchFigures) -> None:
    assert_type(progress.counts["created"], int)
    assert_type(bulk.Outcome("failed"), bulk.Outcome)


async def batch_asynchronous(client: AsyncPayments) -> None:
    async with async_bulk.PayoutBatch.open("june.ledger", client) as batch:
        assert_type(batch, async_bulk.PayoutBatch)
        assert_type(await batch.load("june.csv", skip_invalid=True), async_bulk.ImportReport)
        assert_type(await batch.run(progressed, for_seconds=240), async_bulk.BatchReport)


def batch_blocking(client: Payments) -> None:
    with bulk.PayoutBatch.open("june.ledger", client) as batch:
        assert_type(batch, bulk.PayoutBatch)
        assert_type(batch.load("june.csv", skip_invalid=True), async_bulk.ImportReport)
        assert_type(batch.run(progressed, drain=5), async_bulk.BatchReport)
        assert_type(batch.status(), bulk.BatchReport)
        assert_type(batch.reconcile(), bulk.Certificate)
        batch.stop("enough")
    bulk.PayoutBatch.open("june.ledger", AsyncPayments())  # type: ignore[arg-type] # the other surface's
    with bulk.PayoutBatch.open("june.ledger") as looking:
        assert_type(looking.status(), async_bulk.BatchReport)


async def outbox_asynchronous(session: AsyncSession, connection: AsyncConnection) -> None:
    outbox = async_bulk.Outbox("payouts", environment="live")
    added = await outbox.add(
        session, amount="10.50", currency="GHS", method="m", instrument={"type": "phone"}, reference="order-7"
    )
    assert_type(added, async_bulk.OutboxRow)
    assert_type(await outbox.find(connection, "order-7"), async_bulk.OutboxRow | None)
    assert_type(async_bulk.metadata, MetaData)
    await outbox.add(session, amount=1, currency="GHS", method="m", instrument={})  # type: ignore[call-arg] # no reference


def outbox_blocking(session: Session, connection: Connection) -> None:
    outbox = bulk.Outbox("payouts", environment="sandbox")
    assert_type(outbox.find(session, "order-7"), bulk.OutboxRow | None)
    assert_type(outbox.find(connection, "order-7"), bulk.OutboxRow | None)
    bulk.Outbox("payouts", environment="test")  # type: ignore[arg-type] # live or sandbox


def effect(error: PaymentsError) -> Effect:
    if isinstance(error, OutcomeUnknown):
        assert_type(Payments().resolve(error), Any)
        assert_type(error.prepared, PreparedRequest | None)
    if isinstance(error, UnprocessableError):
        assert_type(error.errors, dict[str, list[str]])
    assert_type(errors.PaymentsError, type[async_errors.PaymentsError])
    return error.effect
