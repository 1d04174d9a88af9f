"""A web shop with one product: from the button to the paid order.

An order is paid when the service says so. A webhook proves nothing, and neither does the payer's return: both
are only reasons to read the payment through the API. The receiver does so when a delivery comes; the order's
page does when it shows an order that is not paid, as no webhook may ever come.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web
from knowledge import split_view
from order import Order
from pages import BRAND, front_page, money, order_page, sorry_page

from payments_async import AsyncPayments, PaymentIntent, PaymentsError
from payments_async.webhooks import TrustedDelivery, WebhookReceiver
from payments_async.webhooks.aiohttp import routes

PRICE = Decimal("25.50")
CURRENCY = "GHS"
COLOUR = "#a8431d"
STATIC = Path(__file__).parent / "static"
LOOK_EVERY = 5.0
"""Seconds between two readings of one checkout, however often its page is loaded: the service asks for it."""
PATIENCE = 5.0
"""Seconds that a page waits for the service at most, retries included."""


class Shop:
    """Takes orders and has them paid. Orders are in memory here; yours are in a database."""

    def __init__(
        self,
        client: AsyncPayments,
        *,
        address: str,
        secret: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Args:
        client: creates the checkouts, and reads the payments back.
        address: the shop's own public address, without a slash at its end.
        secret: at least 32 bytes, for the addresses at which webhooks arrive.
        clock: seconds that never go back.
        """
        self._client = client
        self._clock = clock
        self._address = address
        self._receiver = WebhookReceiver(
            client, secrets=[secret], base_url=f"{address}/hooks", on_payment=self.on_payment
        )
        self._hooks: dict[str, Order] = {}
        """{path at which an order's webhooks arrive: the order}."""
        self.orders: dict[str, Order] = {}

    def app(self) -> web.Application:
        """The web application."""
        app = web.Application(middlewares=[self._hint_noted])
        app.add_routes([web.get("/", self.front), web.post("/orders", self.buy)])
        app.add_routes([web.get("/orders/{number}", self.look), web.get("/orders/{number}/back", self.back)])
        app.add_routes([web.static("/static", STATIC)])
        app.add_routes(routes(self._receiver))
        app.cleanup_ctx.append(self._client_closed)
        return app

    async def front(self, request: web.Request) -> web.Response:
        """The product and its button."""
        return front_page(money(PRICE, CURRENCY))

    async def buy(self, request: web.Request) -> web.Response:
        """Take an order and send the payer to its checkout."""
        order = Order(PRICE, CURRENCY, placed=self._clock())
        self.orders[order.number] = order  # before anything is sent: a payment always has its order
        order.note(self._clock(), "The order was placed")
        webhook_url = self._receiver.url_for_checkout(order.number)
        self._hooks[urlsplit(webhook_url).path] = order
        try:
            checkout = await self._client.checkouts.create(
                amount=order.amount,
                currency=order.currency,
                description="The morning cup",
                entity_id=order.number,
                return_url=f"{self._address}/orders/{order.number}/back",
                webhook_url=webhook_url,
                appearance={
                    "brand": BRAND,
                    "color": COLOUR,
                    "icon_url": f"{self._address}/static/logo.svg",
                },
            )
        except PaymentsError:
            return sorry_page()
        order.checkout_id, order.checkout_url = checkout.id, checkout.url
        order.note(self._clock(), "The payer was sent to the checkout")
        raise web.HTTPSeeOther(checkout.url)

    async def back(self, request: web.Request) -> web.Response:
        """Where the payer comes back to. It says nothing of the payment, which is checked."""
        order = self._order_of(request)
        order.under_way = True
        order.note(self._clock(), "The payer came back to return_url", "nothing")
        raise web.HTTPSeeOther(f"/orders/{order.number}")

    async def look(self, request: web.Request) -> web.Response:
        """The order's page. It shows what the service said last, and asks it when that was not just now."""
        order = self._order_of(request)
        await self._read_back(order)
        return order_page(order, split_view(order))

    def _order_of(self, request: web.Request) -> Order:
        order = self.orders.get(request.match_info["number"])
        if order is None:
            raise web.HTTPNotFound
        return order

    @web.middleware
    async def _hint_noted(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Note that a webhook came, for the split view. The receiver then reads the payment back."""
        if order := self._hooks.get(request.path):
            order.note(self._clock(), "A webhook arrived: anybody may have sent it", "hint")
        return await handler(request)

    async def on_payment(self, delivery: TrustedDelivery[PaymentIntent]) -> None:
        """A payment has a new state; its record was read through the API. May be called twice."""
        order = self.orders.get(delivery.reference)
        if order is not None:
            order.settle(self._clock(), delivery.record)

    async def _read_back(self, order: Order) -> None:
        """Ask the service what became of an order that is not paid, at most every few seconds."""
        now = self._clock()
        rested = order.looked is None or now - order.looked >= LOOK_EVERY
        if order.paid or order.checkout_id is None or not rested:
            return
        order.looked = now  # before anything is sent: two tabs are one reading
        try:
            checkout = await self._client.checkouts.retrieve(order.checkout_id, deadline=PATIENCE)
        except PaymentsError:
            return  # the page looks again
        if checkout.payment is not None:
            order.settle(self._clock(), checkout.payment)

    async def _client_closed(self, app: web.Application) -> AsyncIterator[None]:
        yield
        await self._client.aclose()


if __name__ == "__main__":
    # Without one the shop makes its own at each start. Keep yours, so that yesterday's addresses still work.
    secret = os.environ.get("WEBHOOK_SECRET") or secrets.token_urlsafe(32)
    shop = Shop(AsyncPayments(), address="http://127.0.0.1:8080", secret=secret)
    web.run_app(shop.app(), host="127.0.0.1", port=8080)
