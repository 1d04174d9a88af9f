"""Whether a ledger's batch may go on where the client pays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from ._closing import Displacement, Place, displacement
from ._service import Service
from ._states import RowState
from ._walk import search

if TYPE_CHECKING:
    from ._records import LedgerRow
    from .ledger import Ledger


async def require_place(ledger: Ledger, service: Service) -> None:
    """See that the client pays where the ledger was begun; a key that replaced its key is proven first.

    Raises the LedgerMismatch that fits, and PaymentsError when the proof cannot be had.
    """
    recorded, here = ledger.header.binding, service.place
    given = attrs.evolve(
        recorded, environment=here.environment, base_url=here.base_url, key_fingerprint=here.key
    )
    ledger.require(given, other_key=True)
    if recorded.key_fingerprint == here.key:
        return
    there = Place(recorded.environment, recorded.base_url, recorded.key_fingerprint)
    untouched = ledger.header.rows == sum(
        rows for (state, _), (rows, _) in ledger.totals.items() if state is RowState.NEW
    )
    visible = not untouched and await _sees_own(ledger, service)
    if displacement(there, here, untouched=untouched, visible=visible) is Displacement.PROJECT:
        ledger.require(given)
    await ledger.rebind(given)


async def _sees_own(ledger: Ledger, service: Service) -> bool:
    """Whether the newest payout that the ledger knows of is visible."""
    row = await _last_created(ledger)
    if row is None:
        return False
    payout = (await search(service, [row.reference])).get(row.reference)
    return payout is not None and payout.id == row.known.payout_id


async def _last_created(ledger: Ledger) -> LedgerRow | None:
    last = None
    async for row in ledger.rows(RowState.CREATED):
        last = row
    return last
