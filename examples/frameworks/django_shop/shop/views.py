"""Views of both kinds: asynchronous ones await, others block."""

from __future__ import annotations

from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import aget_object_or_404, get_object_or_404
from django.views.decorators.http import require_GET, require_POST
from sqlalchemy.dialects import sqlite

from payments_async import Instrument, PaymentsError
from payments_sync.bulk import Outbox

from . import payments
from .models import Order

DIALECT = sqlite.dialect(paramstyle="pyformat")  # or postgresql.dialect()
refunds = Outbox("refunds", environment="sandbox")  # of the keys that may pay it: or "live"


@require_POST
async def buy(request: HttpRequest) -> HttpResponse:
    """Take an order and make its checkout."""
    order = await Order.objects.acreate()
    try:
        checkout = await payments.awaited().checkouts.create(
            amount="25.50",
            currency="GHS",
            entity_id=order.number,
            return_url=f"{payments.ADDRESS}/orders/{order.number}",
            webhook_url=payments.receiver().url_for_checkout(order.number),
        )
    except PaymentsError:
        return JsonResponse({"problem": "the payment could not be started; nothing was paid"}, status=503)
    shown = {"order": order.number, "checkout": checkout.id, "pay_at": checkout.url}
    return JsonResponse(shown, status=201)


@require_GET
async def look(request: HttpRequest, number: str) -> HttpResponse:
    """Whether an order is paid."""
    order = await aget_object_or_404(Order, number=number)
    return JsonResponse({"paid": order.paid})


@require_POST  # and your login: `django.contrib.admin.views.decorators.staff_member_required`
def refund(request: HttpRequest, number: str) -> HttpResponse:
    """Decide on a refund: the order is locked, and its payout is added in the same transaction."""
    with transaction.atomic():
        get_object_or_404(Order.objects.select_for_update(), number=number, paid=True)
        added = refunds.statement(
            amount="25.50",
            currency="GHS",
            method="mobile_money",
            instrument=Instrument.phone(request.POST["phone"], "GH"),
            reference=f"refund-{number}",
        ).compile(dialect=DIALECT)
        with connection.cursor() as cursor:
            cursor.execute(str(added), added.params)
            decided = cursor.rowcount == 1  # 0: this reference stands already
    return JsonResponse({"refund": "decided" if decided else "decided before"}, status=202)


@require_POST
async def hook(request: HttpRequest, token: str) -> HttpResponse:
    """Where the service delivers."""
    answer = await payments.receiver().receive(path=request.path, body=request.body, headers=request.headers)
    return HttpResponse(answer.body, status=answer.status, headers=dict(answer.headers))
