"""The shop in Flask, under gunicorn: with one thread or more for each worker.

    gunicorn --config gunicorn_conf.py --workers 2 --preload flask_shop:app
    gunicorn --config gunicorn_conf.py --worker-class gthread --threads 4 flask_shop:app

`PAYMENTS_LIMIT_STORE` lets the workers share the rate limits. gevent is refused: use gthread.
"""

from __future__ import annotations

import os

import orders
from flask import Flask, Response, request

from payments_sync import (
    DuplicateReference,
    Instrument,
    InvalidRequest,
    OutcomeUnknown,
    PaymentIntent,
    Payments,
    PaymentsError,
    ResponseMismatch,
    UnprocessableError,
)
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
    checkout = client.checkouts.create(
        amount=orders.PRICE,
        currency=orders.CURRENCY,
        entity_id=number,
        return_url=f"{ADDRESS}/orders/{number}",
        webhook_url=receiver.url_for_checkout(number),
    )
    return {"order": number, "checkout": checkout.id, "pay_at": checkout.url}, 201


@app.get("/orders/<number>")
def look(number: str) -> dict[str, bool]:
    """Whether an order is paid."""
    return {"paid": orders.is_paid(number)}


@app.post("/orders/<number>/refund")
def refund(number: str) -> tuple[dict[str, str | None], int]:
    """Send the money back, once: put it behind your staff's login. Pressed again, it is the same."""
    if not orders.is_paid(number):
        return {"problem": "the order is not paid"}, 409
    try:
        payout = client.payouts.create(
            amount=orders.PRICE,
            currency=orders.CURRENCY,
            method="mobile_money",
            instrument=Instrument.phone(request.form["phone"], "GH"),
            reference=f"refund-{number}",
        )
    except (OutcomeUnknown, DuplicateReference) as error:
        payout = client.resolve(error)
    return {"refund": payout.id, "status": payout.status}, 202


@app.errorhandler(PaymentsError)
def refused(error: PaymentsError) -> tuple[dict[str, str], int]:
    """What happened to the money. The error's own words are for your log."""
    if error.effect != "none":
        return {"problem": "it may be on its way: do not pay again; look at it later"}, 202
    if isinstance(error, DuplicateReference | ResponseMismatch):
        return {"problem": "it was sent before: look at it; no more money was moved"}, 409
    if isinstance(error, InvalidRequest | UnprocessableError):
        return {"problem": "check what you have typed; no money was moved"}, 422
    return {"problem": "no money was moved"}, 503 if error.is_temporary else 500


@app.post("/hooks/<token>")
def hook(token: str) -> Response:
    """Where the service delivers. It keeps its thread while the record is read."""
    answer = receiver.receive(path=request.path, body=request.get_data(), headers=request.headers)
    return Response(answer.body, answer.status, dict(answer.headers))
