"""A web shop with one product: from the button to the paid order.

An order is paid when the service says so. The payer's return proves nothing, and neither does a webhook: it
is only a reason to read the payment through the API, which the receiver does.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from decimal import Decimal
from html import escape

from aiohttp import web

from payments_async import AsyncPayments, PaymentIntent, PaymentsError
from payments_async.webhooks import TrustedDelivery, WebhookReceiver
from payments_async.webhooks.aiohttp import routes

PRICE = Decimal("25.50")
CURRENCY = "GHS"


@dataclass
class Order:
    """One cup for one payer. `number` cannot be guessed: it is the only thing that opens the order's page."""

    number: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    amount: Decimal = PRICE
    paid: bool = False


class Shop:
    """Takes orders and has them paid. Orders are in memory here; yours are in a database."""

    def __init__(self, client: AsyncPayments, *, address: str, secret: str) -> None:
        """Args:
        client: creates the checkouts, and reads the payments back.
        address: the shop's own public address, without a slash at its end.
        secret: at least 32 bytes, for the addresses at which webhooks arrive.
        """
        self._client = client
        self._address = address
        self._receiver = WebhookReceiver(
            client, secrets=[secret], base_url=f"{address}/hooks", on_payment=self.on_payment
        )
        self.orders: dict[str, Order] = {}

    def app(self) -> web.Application:
        """The web application."""
        app = web.Application()
        app.add_routes([web.get("/", self.front), web.post("/orders", self.buy)])
        app.add_routes([web.get("/orders/{number}", self.look)])
        app.add_routes(routes(self._receiver))
        app.cleanup_ctx.append(self._client_closed)
        return app

    async def front(self, request: web.Request) -> web.Response:
        """The product and its button."""
        return page(
            "One cup",
            f"<p>{PRICE} {CURRENCY}</p><form method=post action=/orders><button>Buy</button></form>",
        )

    async def buy(self, request: web.Request) -> web.Response:
        """Take an order and send the payer to its checkout."""
        order = Order()
        self.orders[order.number] = order  # before anything is sent: a payment always has its order
        try:
            checkout = await self._client.checkouts.create(
                amount=order.amount,
                currency=CURRENCY,
                description="One cup",
                entity_id=order.number,
                return_url=f"{self._address}/orders/{order.number}",
                webhook_url=self._receiver.url_for_checkout(order.number),
            )
        except PaymentsError:
            return page("Not now", "<p>The payment could not be started. Nothing was paid.</p>", status=503)
        assert checkout.url is not None  # a created checkout has its page
        raise web.HTTPSeeOther(checkout.url)

    async def look(self, request: web.Request) -> web.Response:
        """The order as we know it. That somebody came here says nothing about its payment."""
        order = self.orders.get(request.match_info["number"])
        if order is None:
            raise web.HTTPNotFound
        if order.paid:
            return page("Paid", f"<p>Order {escape(order.number)} is on its way.</p>")
        return page("Not paid yet", f"<p>Order {escape(order.number)} waits for its payment.</p>", refresh=2)

    async def on_payment(self, delivery: TrustedDelivery[PaymentIntent]) -> None:
        """A payment has a new state; its record was read through the API. May be told twice."""
        order, payment = self.orders.get(delivery.reference), delivery.record
        if order is not None and payment.is_successful and is_price_of(order, payment):
            order.paid = True

    async def _client_closed(self, app: web.Application) -> AsyncIterator[None]:
        yield
        await self._client.aclose()


def is_price_of(order: Order, payment: PaymentIntent) -> bool:
    """Whether the payment is of what the order costs."""
    amount = payment.amount
    return amount is not None and (amount.value, amount.currency) == (order.amount, CURRENCY)


def page(title: str, body: str, *, status: int = 200, refresh: int | None = None) -> web.Response:
    """A small page; `refresh` is seconds until the browser asks again."""
    again = "" if refresh is None else f'<meta http-equiv="refresh" content="{refresh}">'
    icon = "<link rel=icon href=data:,>"  # none, and so that browsers do not ask for one
    html = f"<!doctype html><html lang=en><title>{title}</title>{icon}{again}<h1>{title}</h1>{body}"
    return web.Response(text=html, status=status, content_type="text/html")


if __name__ == "__main__":
    # A secret of the day: in earnest it is kept, so that yesterday's addresses are good today.
    secret = os.environ.get("WEBHOOK_SECRET") or secrets.token_urlsafe(32)
    shop = Shop(AsyncPayments(), address="http://127.0.0.1:8080", secret=secret)
    web.run_app(shop.app(), host="127.0.0.1", port=8080)
