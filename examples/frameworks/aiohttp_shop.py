"""The shop in aiohttp.

python aiohttp_shop.py 8080
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator

import orders
from aiohttp import web

from payments_async import AsyncPayments, PaymentIntent, PaymentsError
from payments_async.webhooks import TrustedDelivery, WebhookReceiver
from payments_async.webhooks.aiohttp import routes

ADDRESS = os.environ["SHOP_ADDRESS"]
CLIENT = web.AppKey("client", AsyncPayments)
RECEIVER = web.AppKey("receiver", WebhookReceiver)


async def client_open(app: web.Application) -> AsyncIterator[None]:
    """Warm the client up before the first request, and close it after the last."""
    async with app[CLIENT]:
        await app[CLIENT].warm_up(deadline=10)
        yield


async def on_payment(delivery: TrustedDelivery[PaymentIntent]) -> None:
    """A payment has a new state, as read through the API."""
    if delivery.record.is_successful:
        orders.set_paid(delivery.reference)


async def buy(request: web.Request) -> web.Response:
    """Take an order and make its checkout."""
    number = orders.add()
    try:
        checkout = await request.app[CLIENT].checkouts.create(
            amount=orders.PRICE,
            currency=orders.CURRENCY,
            entity_id=number,
            return_url=f"{ADDRESS}/orders/{number}",
            webhook_url=request.app[RECEIVER].url_for_checkout(number),
        )
    except PaymentsError:
        return web.json_response(
            {"problem": "the payment could not be started; nothing was paid"}, status=503
        )
    return web.json_response({"order": number, "checkout": checkout.id, "pay_at": checkout.url}, status=201)


async def look(request: web.Request) -> web.Response:
    """Whether an order is paid."""
    return web.json_response({"paid": orders.is_paid(request.match_info["number"])})


def make_app() -> web.Application:
    """The web application."""
    app = web.Application()
    app[CLIENT] = client = AsyncPayments()
    app[RECEIVER] = receiver = WebhookReceiver(
        client, secrets=[os.environ["WEBHOOK_SECRET"]], base_url=f"{ADDRESS}/hooks", on_payment=on_payment
    )
    app.cleanup_ctx.append(client_open)
    app.add_routes([web.post("/orders", buy), web.get("/orders/{number}", look), *routes(receiver)])
    return app


if __name__ == "__main__":
    web.run_app(make_app(), host="127.0.0.1", port=int(sys.argv[1]))
