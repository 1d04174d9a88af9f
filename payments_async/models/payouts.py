"""Payouts (Resources, Payout and Instrument)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

import attrs

from ._masking import shown_address
from ._record import Record, masked
from .common import Amount, Country, Customer, ExchangeRate, Failure, Gateway, Method
from .statuses import PayoutStatus


class PayoutEnd(StrEnum):
    """How a payout has ended, as far as everything that is shown of it agrees."""

    OPEN = "open"
    ARRIVED = "arrived"
    FAILED = "failed"
    UNCLEAR = "unclear"
    """Its status and its timestamps say more than one of these: nothing is made of them."""


STATUS_ENDS: Final[Mapping[str, PayoutEnd]] = {
    PayoutStatus.PENDING: PayoutEnd.OPEN,
    PayoutStatus.PROCESSING: PayoutEnd.OPEN,
    **dict.fromkeys(PayoutStatus.FINAL, PayoutEnd.FAILED),
    PayoutStatus.COMPLETED: PayoutEnd.ARRIVED,
}
"""{known status: what it says}. A status that is not known says nothing (gap H)."""


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class PayoutInstrument(Record):
    """Where a payout went, as the service returns it. The repr masks whose account it is."""

    id: str | None = None
    type: str | None = None
    """`phone`, `bank_account`, `crypto_address`; open."""
    phone_number: str | None = attrs.field(default=None, repr=masked)
    account_name: str | None = attrs.field(default=None, repr=masked)
    account_number: str | None = attrs.field(default=None, repr=masked)
    bank_code: str | None = None
    swift_bic: str | None = None
    country: Country | None = None
    address: str | None = attrs.field(default=None, repr=masked)
    network: str | None = None
    memo_tag: str | None = attrs.field(default=None, repr=masked)


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Payout(Record):
    """Money sent to an instrument. A create response is usually not final yet (States, fact 1)."""

    id: str | None = None
    amount: Amount | None = None
    settlement_amount: Amount | None = None
    exchange_rate: ExchangeRate | Decimal | None = None
    method: Method | None = None
    status: str | None = None
    """See `PayoutStatus`; open."""
    reference: str | None = None
    """Your own identifier, unique within the project."""
    description: str | None = None
    webhook_url: str | None = attrs.field(default=None, repr=shown_address)
    customer: Customer | None = None
    instrument: PayoutInstrument | None = None
    gateway: Gateway | None = None
    fee_amount: Amount | None = None
    failure: Failure | None = None
    metadata: dict[str, Any] | None = attrs.field(default=None, repr=masked, hash=False)
    """Your pairs, returned unchanged."""
    initiated_at: datetime | None = None
    completed_at: datetime | None = None
    failed_at: datetime | None = None
    created_at: datetime | None = None

    @property
    def is_final(self) -> bool:
        """Whether the payout will not change any more: a timestamp or a known status says so (gaps H, I)."""
        return not ends_shown(self) <= {PayoutEnd.OPEN}

    @property
    def is_successful(self) -> bool:
        """Whether the money arrived, as far as the service says."""
        return ends_shown(self) - {PayoutEnd.OPEN} == {PayoutEnd.ARRIVED}


def ends_shown(payout: Payout) -> set[PayoutEnd]:
    """What a payout's status and each of its timestamps say of its end (gaps H, I)."""
    by_status = STATUS_ENDS.get(payout.status or "")
    said = set[PayoutEnd]() if by_status is None else {by_status}
    if payout.failed_at is not None:
        said.add(PayoutEnd.FAILED)
    # what went back had arrived before, so that its time of arrival says nothing
    if payout.completed_at is not None and payout.status != PayoutStatus.REVERSED:
        said.add(PayoutEnd.ARRIVED)
    return said


def ending_of(payout: Payout) -> PayoutEnd:
    """How a payout has ended, by all that is shown of it."""
    ends = ends_shown(payout)
    return PayoutEnd.UNCLEAR if len(ends) > 1 else ends.pop() if ends else PayoutEnd.OPEN
