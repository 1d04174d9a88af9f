"""Tenants: each API key has its own records, references, idempotency store and limits.

`docs/interface.md`, Authentication.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Literal, TypeVar

import attrs

from .._common.rate_limits import KeyLimits
from .._common.values import RequestRefused
from .idempotency import IdempotencyStore
from .records import AttemptRecord, CheckoutRecord, PaymentRecord, PayoutRecord

T = TypeVar("T")
KeyStatus = Literal["active", "inactive", "expired"]


def fingerprint_of(key: str) -> str:
    """Compute twelve characters that distinguish keys without revealing them."""
    return hashlib.sha256(key.encode()).hexdigest()[:12]


@attrs.define(eq=False)
class Tenant:
    """The state of one API key: records, counts and stored answers."""

    fingerprint: str
    status: KeyStatus
    allowlist: tuple[IPv4Network | IPv6Network, ...] | None
    """Networks that may use the key; None for all."""
    limits: KeyLimits
    revoked: str | None = None
    """The reason why the key was revoked; None for one that was not."""
    replies: IdempotencyStore = attrs.field(factory=IdempotencyStore)
    turns: dict[tuple[str, bytes], int] = attrs.field(factory=dict)
    """How many requests each scenario has had, by its words and the request's identity."""
    customers: dict[str, str] = attrs.field(factory=dict)
    """Customer ids by e-mail address."""
    payouts: list[PayoutRecord] = attrs.field(factory=list)
    payouts_by_id: dict[str, PayoutRecord] = attrs.field(factory=dict)
    payouts_by_reference: dict[str, PayoutRecord] = attrs.field(factory=dict)
    payments: list[PaymentRecord] = attrs.field(factory=list)
    payments_by_id: dict[str, PaymentRecord] = attrs.field(factory=dict)
    sessions: dict[str, CheckoutRecord] = attrs.field(factory=dict)
    attempts: dict[str, AttemptRecord] = attrs.field(factory=dict)

    def payout(self, payout_id: str) -> PayoutRecord:
        """The payout of this id; `RequestRefused` with 404."""
        return _found(self.payouts_by_id.get(payout_id), "payout")

    def payment(self, payment_id: str) -> PaymentRecord:
        """The payment intent of this id; `RequestRefused` with 404."""
        return _found(self.payments_by_id.get(payment_id), "payment intent")

    def session(self, checkout_id: str) -> CheckoutRecord:
        """The checkout session of this id; `RequestRefused` with 404."""
        return _found(self.sessions.get(checkout_id), "checkout session")

    def payment_of(self, name: str) -> PaymentRecord | None:
        """The payment of this id or of the checkout session of this id; None when there is none."""
        session = self.sessions.get(name)
        return session.payment if session else self.payments_by_id.get(name)

    def attempt(self, payment_id: str, attempt_id: str) -> AttemptRecord:
        """The attempt of this id on this payment; `RequestRefused` with 404."""
        attempt = self.attempts.get(attempt_id)
        belongs = attempt is not None and attempt.payment is self.payment(payment_id)
        return _found(attempt if belongs else None, "payment attempt")


def _found(record: T | None, kind: str) -> T:
    if record is None:
        raise RequestRefused(404, f"There is no such {kind}.")
    return record


def read_allowlist(entries: Iterable[str] | None) -> tuple[IPv4Network | IPv6Network, ...] | None:
    """Parse addresses and networks such as `10.0.0.0/8`; `ValueError` for anything else."""
    return None if entries is None else tuple(ip_network(entry) for entry in entries)


def authenticate(header: str | None, address: str, tenants: dict[str, Tenant]) -> Tenant:
    """The tenant whose key a request carries.

    `RequestRefused` with 401 for a key that is missing, malformed, unknown, inactive, expired,
    revoked or live, with 403 for an address off the key's allowlist.
    """
    tenant = tenants.get(_bearer_key(header))
    if tenant is None:
        raise RequestRefused(401, "This sandbox does not know the key; it may have been started anew since.")
    if tenant.status != "active":
        raise RequestRefused(401, f"The API key is {tenant.status}.")
    if tenant.revoked is not None:
        raise RequestRefused(401, tenant.revoked)
    if tenant.allowlist is not None and not _allowed(address, tenant.allowlist):
        raise RequestRefused(403, "Requests from this address are not allowed for the API key.")
    return tenant


def _bearer_key(header: str | None) -> str:
    if header is None:
        raise RequestRefused(401, "No API key was given; send Authorization: Bearer <API_KEY>.")
    scheme, _, key = header.partition(" ")
    if scheme.lower() != "bearer" or not key.startswith("sk_"):
        raise RequestRefused(401, "The Authorization header does not hold a secret key as a bearer token.")
    if key.startswith("sk_live_"):
        raise RequestRefused(401, "This is a sandbox; it never accepts a live key.")
    return key


def _allowed(address: str, networks: Iterable[IPv4Network | IPv6Network]) -> bool:
    try:
        caller = ip_address(address)
    except ValueError:
        return False
    return any(caller in network for network in networks)
