"""A shop in FastAPI: a checkout for each order, which is paid when the service says so.

    PAYMENTS_RATE_SHARE=1/2 uvicorn fastapi_shop:app --workers 2

`SHOP_ADDRESS` is where the service reaches this shop, `WEBHOOK_SECRET` makes the addresses of its webhooks.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import orders
from fastapi import FastAPI, HTTPException, Request, Response

from payments_async import (
    AsyncPayments,
    DuplicateReference,
    OutcomeUnknown,
    PaymentIntent,
    PaymentsError,
    UnprocessableError,
)
from payments_async.fastapi import PayoutBody
from payments_async.webhooks import TrustedDelivery, WebhookReceiver

ADDRESS = os.environ["SHOP_ADDRESS"]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
    """One client for each worker, on the worker's own event loop."""
    async with AsyncPayments() as client:
        await client.warm_up(deadline=10)  # a wrong key ends the worker here, not at the first order
        app.state.client = client
        app.state.receiver = WebhookReceiver(
            client,
            secrets=[os.environ["WEBHOOK_SECRET"]],
            base_url=f"{ADDRESS}/hooks",
            on_payment=on_payment,
        )
        yield


app = FastAPI(lifespan=lifespan)


async def on_payment(delivery: TrustedDelivery[PaymentIntent]) -> None:
    """A payment has a new state, as read through the API."""
    if delivery.record.is_successful:
        orders.set_paid(delivery.reference)


@app.post("/orders", status_code=201)
async def buy(request: Request) -> dict[str, str | None]:
    """Take an order and make its checkout."""
    return await pay(request, orders.add())


@app.post("/orders/{number}/checkout")
async def pay(request: Request, number: str) -> dict[str, str | None]:
    """Make the order's checkout. Pressed again, it gives the same one."""
    client: AsyncPayments = request.app.state.client
    url = orders.with_url(number, request.app.state.receiver.url_for_checkout(number))
    if url is None:
        raise HTTPException(404)
    try:
        checkout = await client.checkouts.create(
            amount=orders.PRICE,
            currency=orders.CURRENCY,
            entity_id=number,
            return_url=f"{ADDRESS}/orders/{number}",
            webhook_url=url,
            idempotency_key=f"checkout-{number}",
        )
    except PaymentsError as error:
        raise HTTPException(503, "the payment could not be started; nothing was paid") from error
    return {"order": number, "checkout": checkout.id, "pay_at": checkout.url}


@app.get("/orders/{number}")
async def look(number: str) -> dict[str, bool]:
    """Whether an order is paid."""
    return {"paid": orders.is_paid(number)}


@app.post("/payouts", status_code=201, responses={409: {}, 422: {}, 503: {}})
async def refund(request: Request, body: PayoutBody) -> dict[str, Any]:
    """Send money: put it behind your staff's login. What is wrong with the body is answered before that."""
    client: AsyncPayments = request.app.state.client
    try:
        payout = await client.payouts.create(**body.to_dict())
    except DuplicateReference as error:
        raise HTTPException(409, "a payout with this reference exists") from error
    except UnprocessableError as error:
        raise HTTPException(422, error.errors) from error
    except OutcomeUnknown as error:
        told = f"the outcome of {error.reference or 'the payout'} is unknown: look it up; do not pay again"
        raise HTTPException(503, told) from error
    return payout.to_dict()  # masked


@app.post("/hooks/{token}")
async def hook(request: Request) -> Response:
    """Where the service delivers."""
    answer = await request.app.state.receiver.receive(
        path=request.url.path, body=request.stream(), method=request.method, headers=request.headers
    )
    return Response(answer.body, answer.status, dict(answer.headers))
