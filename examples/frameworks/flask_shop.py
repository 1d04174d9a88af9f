"""The shop in Flask, under gunicorn: with one thread or more for each worker.

    gunicorn --config gunicorn_conf.py --workers 2 --preload flask_shop:app
    gunicorn --config gunicorn_conf.py --worker-class gthread --threads 4 flask_shop:app

`PAYMENTS_LIMIT_STORE` lets the workers share the rate limits. gevent is refused: use gthread.
"""

from __future__ import annotations

import os

import orders
from flask import Flask, Response, request

from payments_sync import PaymentIntent, Payments, PaymentsError
from payments_sync.webhooks import TrustedDelivery, WebhookReceiver

ADDRESS = os.environ["SHOP_ADDRESS"]


def on_payment(delivery: TrustedDelivery[PaymentIntent]) -> None:
    """A payment has a new state, as read through the API."""
    if delivery.record.is_successful:
        orders.set_paid(delivery.reference)


app = Flask(__name__)
client = Payments()  # sends nothing; made before a fork, it works in each worker
receiver = WebhookReceiver(
    client, secrets=[os.environ["WEBHOOK_SECRET"]], base_url=f"{ADDRESS}/hooks", on_payment=on_payment
)


@app.post("/orders")
def buy() -> tuple[dict[str, str | None], int]:
    """Take an order and make its checkout."""
    number = orders.add()
    try:
        checkout = client.checkouts.create(
            amount=orders.PRICE,
            currency=orders.CURRENCY,
            entity_id=number,
            return_url=f"{ADDRESS}/orders/{number}",
            webhook_url=receiver.url_for_checkout(number),
        )
    except PaymentsError:
        return {"problem": "the payment could not be started; nothing was paid"}, 503
    return {"order": number, "checkout": checkout.id, "pay_at": checkout.url}, 201


@app.get("/orders/<number>")
def look(number: str) -> dict[str, bool]:
    """Whether an order is paid."""
    return {"paid": orders.is_paid(number)}


@app.post("/hooks/<token>")
def hook(token: str) -> Response:
    """Where the service delivers. It keeps its thread while the record is read."""
    answer = receiver.receive(path=request.path, body=request.get_data(), headers=request.headers)
    return Response(answer.body, answer.status, dict(answer.headers))
