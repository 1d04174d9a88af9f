"""Orders, and the outbox of refunds."""

from __future__ import annotations

import secrets

from django.db import models


def new_number() -> str:
    """A number that cannot be guessed."""
    return secrets.token_urlsafe(12)


class Order(models.Model):
    """One order of one payer."""

    number = models.CharField(primary_key=True, max_length=32, default=new_number)
    paid = models.BooleanField(default=False)


class Refund(models.Model):
    """A payout that was decided on. `request` is what is sent, however often: it holds account data."""

    order = models.OneToOneField(Order, on_delete=models.PROTECT)
    request = models.TextField()
    payout_id = models.CharField(max_length=64, default="")
    """Empty until the service has made the payout."""
