"""The shop in Starlette.

uvicorn starlette_shop:app
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypedDict

import orders
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from payments_async import AsyncPayments, PaymentIntent, PaymentsError
from payments_async.webhooks import TrustedDelivery, WebhookReceiver

ADDRESS = os.environ["SHOP_ADDRESS"]


class State(TypedDict):
    """What each request finds in its `state`."""

    client: AsyncPayments
    receiver: WebhookReceiver


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[State]:
    async with AsyncPayments() as client:
        await client.warm_up(deadline=10)
        receiver = WebhookReceiver(
            client,
            secrets=[os.environ["WEBHOOK_SECRET"]],
            base_url=f"{ADDRESS}/hooks",
            on_payment=on_payment,
        )
        yield {"client": client, "receiver": receiver}


async def on_payment(delivery: TrustedDelivery[PaymentIntent]) -> None:
    """A payment has a new state, as read through the API."""
    if delivery.record.is_successful:
        orders.set_paid(delivery.reference)


async def buy(request: Request) -> Response:
    """Take an order and make its checkout."""
    number = orders.add()
    try:
        checkout = await request.state.client.checkouts.create(
            amount=orders.PRICE,
            currency=orders.CURRENCY,
            entity_id=number,
            return_url=f"{ADDRESS}/orders/{number}",
            webhook_url=request.state.receiver.url_for_checkout(number),
        )
    except PaymentsError:
        return JSONResponse({"problem": "the payment could not be started; nothing was paid"}, 503)
    return JSONResponse({"order": number, "checkout": checkout.id, "pay_at": checkout.url}, 201)


async def look(request: Request) -> Response:
    """Whether an order is paid."""
    return JSONResponse({"paid": orders.is_paid(request.path_params["number"])})


async def hook(request: Request) -> Response:
    """Where the service delivers."""
    answer = await request.state.receiver.receive(
        path=request.url.path, body=request.stream(), method=request.method, headers=request.headers
    )
    return Response(answer.body, answer.status, dict(answer.headers))


app = Starlette(
    lifespan=lifespan,
    routes=[
        Route("/orders", buy, methods=["POST"]),
        Route("/orders/{number}", look),
        Route("/hooks/{token}", hook, methods=["POST"]),
    ],
)
