"""Checks that the client pays from the account where a ledger's batch was begun."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from .._engine.payout_list import pages, search
from .._engine.service import Service
from .._protocol import outcomes
from .._protocol.matching import Match, compare
from .._protocol.outcomes import Outcome, count_rows
from .._protocol.row_state import UNFINISHED, RowState
from .._protocol.stop_rules import Account, AccountMismatch, account_mismatch

if TYPE_CHECKING:
    from .._ledger.ledger import Ledger

_SENT: Final = (*outcomes.UNFINISHED, *outcomes.CREATED, Outcome.CONFLICT)
"""Outcomes of rows for which the service may have a payout; a refused row has none (Errors)."""


async def require_place(ledger: Ledger, service: Service) -> None:
    """Check that the client pays from the ledger's account; a replaced API key is verified first.

    Raises the LedgerMismatch that fits, and PaymentsError when the key cannot be verified.
    """
    recorded, here = ledger.header.binding, service.place
    given = attrs.evolve(
        recorded, environment=here.environment, base_url=here.base_url, key_fingerprint=here.key
    )
    ledger.require(given, other_key=True)
    if recorded.key_fingerprint == here.key:
        return
    there = Account(recorded.environment, recorded.base_url, recorded.key_fingerprint)
    untouched = not count_rows(ledger.totals, *_SENT)
    visible = not untouched and await _sees_own(ledger, service)
    if account_mismatch(there, here, untouched=untouched, visible=visible) is AccountMismatch.PROJECT:
        ledger.require(given)
    await ledger.rebind(given)


async def _sees_own(ledger: Ledger, service: Service) -> bool:
    """True if the service shows the ledger's newest payout or, if it has none, that of an unfinished row."""
    row = await ledger.last(RowState.CREATED)
    if row is None:
        return await _sees_unrecorded(ledger, service)
    payout = (await search(service, [row.reference])).get(row.reference)
    return payout is not None and payout.id == row.known.payout_id


async def _sees_unrecorded(ledger: Ledger, service: Service) -> bool:
    """True if the list shows a payout that equals, in every detail, the request of an unfinished row."""
    async for page in pages(service):
        shown = {payout.reference: payout for payout in page if payout.reference is not None}
        rows = [row for row in await ledger.by_references(shown) if row.state in UNFINISHED]
        if any(compare(row, shown[row.reference]) is Match.EQUAL for row in rows):
            return True
    return False
