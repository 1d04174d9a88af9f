"""`manage.py send_refunds`: send what is in the outbox. Run it as often as you like, also after a crash."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from shop import payments
from shop.models import Refund

from payments_sync import DuplicateReference, OutcomeUnknown, Payments, PaymentsError, Payout, PreparedRequest


def send(client: Payments, prepared: PreparedRequest[Payout]) -> Payout:
    """Send a request, or find what it made. Raises PaymentsError."""
    try:
        return client.send(prepared)
    except (DuplicateReference, OutcomeUnknown):  # perhaps sent before
        return client.resolve(prepared)  # which compares: another payout may have the reference


class Command(BaseCommand):
    """Sends refunds."""

    def handle(self, **options: Any) -> None:
        client = payments.blocking()
        for refund in Refund.objects.filter(payout_id=""):
            prepared = PreparedRequest.from_json(refund.request)
            try:
                payout = send(client, prepared)
            except PaymentsError as error:  # it stays in the outbox: sent again, it is still carried out once
                self.stderr.write(f"{refund.order_id}: {type(error).__name__}, effect {error.effect}")
                continue
            refund.payout_id = payout.id
            refund.save()
            self.stdout.write(f"{refund.order_id}: {payout.status}")
