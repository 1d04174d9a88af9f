"""A web shop with one product: from the button to the paid order.

An order is paid when the service says so. A webhook proves nothing, and neither does the payer's return: both
are only reasons to read the payment through the API. The receiver does so when a delivery comes; the order's
page does when it shows an order that is not paid, as no webhook may ever come.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from decimal import Decimal
from html import escape

from aiohttp import web

from payments_async import AsyncPayments, PaymentIntent, PaymentsError
from payments_async.webhooks import TrustedDelivery, WebhookReceiver
from payments_async.webhooks.aiohttp import routes

PRICE = Decimal("25.50")
CURRENCY = "GHS"
LOOK_EVERY = 5.0
"""Seconds between two readings of one checkout, however often its page is loaded: the service asks for it."""
PATIENCE = 5.0
"""Seconds that a page waits for the service at most, retries included."""


@dataclass
class Order:
    """One cup for one payer. `number` cannot be guessed: it is the only thing that opens the order's page."""

    number: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    amount: Decimal = PRICE
    paid: bool = False
    checkout_id: str | None = None
    checkout_url: str | None = None
    under_way: bool = False
    """Whether the payer may have paid."""
    looked: float | None = None
    """When its checkout was last read, on the shop's clock."""


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
        self.orders: dict[str, Order] = {}

    def app(self) -> web.Application:
        """The web application."""
        app = web.Application()
        app.add_routes([web.get("/", self.front), web.post("/orders", self.buy)])
        app.add_routes([web.get("/orders/{number}", self.look), web.get("/orders/{number}/back", self.back)])
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
                return_url=f"{self._address}/orders/{order.number}/back",
                webhook_url=self._receiver.url_for_checkout(order.number),
            )
        except PaymentsError:
            return page("Not now", "<p>The payment could not be started. Nothing was paid.</p>", status=503)
        order.checkout_id, order.checkout_url = checkout.id, checkout.url
        raise web.HTTPSeeOther(checkout.url)

    async def back(self, request: web.Request) -> web.Response:
        """Where the payer comes back to. It says nothing of the payment, which is checked."""
        order = self._order_of(request)
        order.under_way = True
        raise web.HTTPSeeOther(f"/orders/{order.number}")

    async def look(self, request: web.Request) -> web.Response:
        """The order's page. It shows what the service said last, and asks it when that was not just now."""
        order = self._order_of(request)
        await self._read_back(order)
        return order_page(order)

    def _order_of(self, request: web.Request) -> Order:
        order = self.orders.get(request.match_info["number"])
        if order is None:
            raise web.HTTPNotFound
        return order

    async def on_payment(self, delivery: TrustedDelivery[PaymentIntent]) -> None:
        """A payment has a new state; its record was read through the API. May be told twice."""
        order = self.orders.get(delivery.reference)
        if order is not None:
            settle(order, delivery.record)

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
            settle(order, checkout.payment)

    async def _client_closed(self, app: web.Application) -> AsyncIterator[None]:
        yield
        await self._client.aclose()


def settle(order: Order, payment: PaymentIntent) -> None:
    """Enter into the order what its payment has come to, whoever brought the news. May be done twice."""
    if payment.is_successful and is_price_of(order, payment):
        order.paid = True
    attempt = payment.active_attempt
    tried = attempt is not None and (attempt.is_successful or not attempt.is_final)
    order.under_way = payment.is_successful or tried


def is_price_of(order: Order, payment: PaymentIntent) -> bool:
    """Whether the payment is of what the order costs."""
    amount = payment.amount
    return amount is not None and (amount.value, amount.currency) == (order.amount, CURRENCY)


def order_page(order: Order) -> web.Response:
    """What the payer sees of an order. It looks again by itself until the order is paid."""
    number = escape(order.number)
    if order.paid:
        return page("Paid", f"<p>Order {number} is on its way.</p>")
    if order.under_way:
        told = f"<p>Order {number} waits for its payment. Please do not pay again.</p>"
        return page("We are checking your payment", told, refresh=2)
    again = f'<p><a href="{escape(order.checkout_url)}">Pay</a></p>' if order.checkout_url else ""
    return page("Not paid yet", f"<p>Order {number} waits for its payment.</p>{again}", refresh=2)


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
