"""Whether a ledger's batch may go on where the client pays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..engine.payout_list import pages, search
from ..engine.service import Service
from ..protocol.matching import Match, compare
from ..protocol.row_state import RowState
from ..protocol.stop_rules import Account, AccountMismatch, Totals, account_mismatch

if TYPE_CHECKING:
    from ..ledger.ledger import Ledger

_OPEN: Final = (RowState.IN_FLIGHT, RowState.IN_DOUBT)
_SENT: Final = (*_OPEN, RowState.CREATED, RowState.CONFLICT)
"""States of rows that the service may have a payout for; a refused one made none (Errors)."""


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
    there = Account(recorded.environment, recorded.base_url, recorded.key_fingerprint)
    untouched = not Totals.of(ledger.totals).count(*_SENT)
    visible = not untouched and await _sees_own(ledger, service)
    if account_mismatch(there, here, untouched=untouched, visible=visible) is AccountMismatch.PROJECT:
        ledger.require(given)
    await ledger.rebind(given)


async def _sees_own(ledger: Ledger, service: Service) -> bool:
    """True if the newest payout that the ledger knows of is visible; where it knows none, one of its own."""
    row = await ledger.last(RowState.CREATED)
    if row is None:
        return await _sees_unrecorded(ledger, service)
    payout = (await search(service, [row.reference])).get(row.reference)
    return payout is not None and payout.id == row.known.payout_id


async def _sees_unrecorded(ledger: Ledger, service: Service) -> bool:
    """True if the list shows a payout that answers, in all that was asked for, to a row under way."""
    async for page in pages(service):
        shown = {payout.reference: payout for payout in page if payout.reference is not None}
        rows = [row for row in await ledger.by_references(shown) if row.state in _OPEN]
        if any(compare(row, shown[row.reference]) is Match.EQUAL for row in rows):
            return True
    return False
