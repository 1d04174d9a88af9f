"""Payouts (Resources, Payout and Instrument)."""

from datetime import datetime
from decimal import Decimal
from typing import Any

import attrs

from ._masking import masked, shown_address
from ._record import Record
from .common import Amount, Country, Customer, ExchangeRate, Failure, Gateway, Method
from .statuses import STATUS_ENDS, PayoutEnd, PayoutStatus


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class PayoutInstrument(Record):
    """The receiving account, as the service returns it. The repr masks the owner and the account."""

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

    id: str = ""
    """Always set in the answer of a creation and in lists; empty where a read does not show it."""
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
        """True if the payout will not change any more, by a timestamp or a known status (gaps H, I).

        A payout that contradicts itself is final too, such as a pending one with `completed_at`. A batch
        calls it unclear instead, and not ended.
        """
        return not ends_shown(self) <= {PayoutEnd.OPEN}

    @property
    def is_successful(self) -> bool:
        """True if the money arrived, as far as the service says."""
        return ends_shown(self) - {PayoutEnd.OPEN} == {PayoutEnd.ARRIVED}


def ends_shown(payout: Payout) -> set[PayoutEnd]:
    """The final statuses that a payout's status and each of its timestamps show (gaps H, I)."""
    by_status = STATUS_ENDS.get(payout.status or "")
    said = set[PayoutEnd]() if by_status is None else {by_status}
    if payout.failed_at is not None:
        said.add(PayoutEnd.FAILED)
    # a reversed payout arrived first, so that its time of arrival says nothing
    if payout.completed_at is not None and payout.status != PayoutStatus.REVERSED:
        said.add(PayoutEnd.ARRIVED)
    return said


def ending_of(payout: Payout) -> PayoutEnd:
    """The final status of a payout, by its status and all its timestamps."""
    ends = ends_shown(payout)
    return PayoutEnd.UNCLEAR if len(ends) > 1 else ends.pop() if ends else PayoutEnd.OPEN
