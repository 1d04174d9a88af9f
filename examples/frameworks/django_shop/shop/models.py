"""Orders."""

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
