"""`manage.py send_refunds`: send what is in the outbox. Run it as often as you like, also after a crash."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from shop import payments
from shop.models import Refund

from payments_sync import DuplicateReference, PaymentsError, PreparedRequest


class Command(BaseCommand):
    """Sends refunds."""

    def handle(self, **options: Any) -> None:
        client = payments.blocking()
        for refund in Refund.objects.filter(payout_id=""):
            prepared = PreparedRequest.from_json(refund.request)
            try:
                payout = client.send(prepared)
            except DuplicateReference:  # sent before, and its idempotency key has ended since
                payout = client.payouts.find(f"refund-{refund.order_id}")
            except PaymentsError as error:  # it stays in the outbox: sent again, it is still carried out once
                self.stderr.write(f"{refund.order_id}: {type(error).__name__}, effect {error.effect}")
                continue
            refund.payout_id = payout.id
            refund.save()
            self.stdout.write(f"{refund.order_id}: {payout.status}")
