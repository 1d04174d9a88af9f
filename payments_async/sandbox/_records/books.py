"""The records that the service really created, for tests to compare with the caller's own."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from decimal import Decimal
from typing import Any

import attrs

from .._common.money import total
from .records import PaymentRecord, PayoutRecord
from .tenants import Tenant
from .world import World


@attrs.frozen
class PayoutEntry:
    """One payout as the service knows it. `amount` is in major units, `created_at` in seconds since 1970."""

    id: str
    reference: str | None
    amount: Decimal
    currency: str
    status: str
    method: str
    key: str
    """Fingerprint of the API key that created it."""
    idempotency_key: str | None
    created_at: float


@attrs.frozen
class PaymentEntry:
    """One payment as the service knows it. `channel` is `api` or `checkout`."""

    id: str
    reference: str
    amount: Decimal
    currency: str
    status: str
    channel: str
    attempts: tuple[str, ...]
    """Ids of its attempts, oldest first."""
    key: str
    idempotency_key: str | None
    created_at: float


class Books:
    """A view of every key's payouts and payments, oldest first for each key. Callable from any thread.

    `keys` are the fingerprints of those that count; every key when None.
    """

    def __init__(
        self, reading: Callable[[], AbstractContextManager[World]], keys: Collection[str] | None = None
    ) -> None:
        self._reading = reading
        self._keys = keys

    def payouts(self, *, reference: str | None = None, status: str | None = None) -> list[PayoutEntry]:
        """The payouts, all or those with this reference and status."""
        with self._reading() as world:
            return [
                PayoutEntry(**_shared(PayoutEntry, payout))
                for tenant in self._tenants(world)
                for payout in tenant.payouts
                if reference in (None, payout.reference) and status in (None, payout.status)
            ]

    def payments(self, *, status: str | None = None) -> list[PaymentEntry]:
        """The payments, all or those with this status."""
        with self._reading() as world:
            return [
                payment_entry(payment)
                for tenant in self._tenants(world)
                for payment in tenant.payments
                if status in (None, payment.status)
            ]

    def total(self, currency: str) -> Decimal:
        """The sum of the payouts in one currency that have not failed, in major units."""
        return total(
            entry.amount
            for entry in self.payouts()
            if entry.currency == currency and entry.status != "failed"
        )

    def collected(self, currency: str) -> Decimal:
        """The sum of the payments in one currency that were completed, refunds not taken off."""
        with self._reading() as world:
            return total(
                payment.amount
                for tenant in self._tenants(world)
                for payment in tenant.payments
                if payment.currency == currency and payment.completed_at is not None
            )

    def _tenants(self, world: World) -> list[Tenant]:
        return [
            tenant
            for tenant in world.tenants.values()
            if self._keys is None or tenant.fingerprint in self._keys
        ]


def payment_entry(payment: PaymentRecord) -> PaymentEntry:
    ids = tuple(attempt.id for attempt in payment.attempts)
    return PaymentEntry(**{**_shared(PaymentEntry, payment), "attempts": ids})


def _shared(entry: type[attrs.AttrsInstance], record: PayoutRecord | PaymentRecord) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in attrs.fields(entry)}
