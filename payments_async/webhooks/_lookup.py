"""Finds the record of a URL in its list: the URL's own record or none.

The interface shows no single read of a payout or payment, and normal reads come first (Limits, Polling
guidance): the list is read around the day on which the URL was made (`_waits/sweep.py`). A payout that lies
further back is read by `payouts.sync`, a live operation.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import attrs

from .._waits.sweep import PAGE_DEADLINE, Days, ListSweep, Wanted, keys_of
from ..errors import NotFoundError
from ._delivery import ListedRecord
from ._tokens import TokenClaims

if TYPE_CHECKING:
    from ..client import AsyncPayments

LONGEST: Final = 18.0  # seconds that a lookup may take in the list
PAYOUT_PAGES: Final = 5
"""Pages read for a payout whose id is known before it is read by `sync`."""
_EARLIER: Final = timedelta(days=1)  # clocks may differ
_LATER: Final = timedelta(days=2)  # a record is made within a day of its URL

log = logging.getLogger("payments.webhooks")


@attrs.frozen
class LookupResult:
    record: ListedRecord | None  # the URL's own record; None when it was not found
    was_synced: bool = False  # True if it was read by itself, too
    foreign_id: str | None = None
    """The id that was looked up, when a record was found: no record of the URL has it but that one."""


async def look_up(
    client: AsyncPayments,
    sweep: ListSweep,
    claims: TokenClaims,
    token: str,
    record_id: str | None,
    now: float,
) -> LookupResult:
    """Find the record of a URL in its list. Raises PaymentsError.

    `record_id` is what the delivery names; `now` is monotonic seconds.
    """
    is_payout = claims.kind == "payout"
    wanted = Wanted(
        [("token", token), ("reference", claims.reference)],
        record_id=None if is_payout else record_id,  # payments may share a URL
        days=days_of(claims),
        most_pages=PAYOUT_PAGES if is_payout and record_id is not None else None,
        is_lookup=True,
    )
    record = await sweep.find(wanted, now + LONGEST)
    if record is None and is_payout and record_id is not None:
        return await _synced(client, wanted, record_id)
    if wanted.last is None:
        _warn(wanted)
        return LookupResult(None)
    return LookupResult(wanted.last, foreign_id=record_id)  # perhaps another payment of the URL


async def _synced(client: AsyncPayments, wanted: Wanted, record_id: str) -> LookupResult:
    try:
        payout = await client.payouts.sync(record_id, deadline=PAGE_DEADLINE)
    except NotFoundError:
        return LookupResult(None, was_synced=True)
    if payout.id == record_id and not set(wanted.keys).isdisjoint(keys_of(payout)):
        return LookupResult(payout, was_synced=True)
    return LookupResult(None, was_synced=True, foreign_id=record_id)


def days_of(claims: TokenClaims) -> Days:
    """The days on which the record of a URL may have been created."""
    made = datetime.fromtimestamp(claims.made_at, UTC)
    return Days((made - _EARLIER).date(), (made + _LATER).date())


def _warn(wanted: Wanted) -> None:
    """Log why a lookup may not have found its record."""
    position, days = wanted.position, wanted.days
    if position.problem is not None:
        reason = f"the list cannot be read to its end ({position.problem})"
    elif not position.is_over:
        reason = "the list of these days goes on: its time was over"
    else:
        reason = "it is not listed (was it created with its URL, and has this process the service's time?)"
    log.warning(
        "a webhook delivery's record was not on the %d pages read of those created %s to %s:"
        " the service will try again; %s",
        position.pages,
        days.since,
        days.until,
        reason,
    )
