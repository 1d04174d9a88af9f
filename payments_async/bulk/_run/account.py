"""Checks that a client pays from the account to which a batch is pinned: references are unique in a project.

Two processes with keys of two projects would pay every row twice. So a batch is pinned to the first key, and
another one is admitted only once its list shows a payout of the batch, or while no row was ever sent.
"""

from __future__ import annotations

from typing import Final

from ..._http.addresses import same_service
from .._ledger import views
from .._ledger.ledger import Ledger
from .._protocol.matching import RowPayout
from .._protocol.records import Account
from ..errors import LedgerError
from .service import PayoutList, Service

_SETTLED: Final = "it is paid: only rows that no batch has paid get a batch of their own"
_OTHER_KEY: Final = (
    "use the batch's key, or one of the same project: it is taken as soon as the list shows it a payout of "
    "this batch (up to 15 minutes after it was made: try again then)"
)
_OTHER_SANDBOX: Final = (
    "this sandbox was started after the batch, and its payouts are gone: give the run a new ledger; if it is "
    "the same sandbox, use the batch's key, or one of the same project"
)


def require_account(ledger: Ledger, account: Account) -> None:
    """Check environment and address, which need no question, and that there are rows. Raises LedgerError."""
    if ledger.known.forgotten_at is not None:
        raise LedgerError(ledger.label, "the batch was settled, and its rows were deleted", remedy=_SETTLED)
    there = ledger.known.binding
    if ledger.known.is_outbox:
        return
    ledger.require("environment", there.environment, account.environment)
    if there.base_url and not same_service(there.base_url, account.base_url):
        ledger.require("base URL", there.base_url, account.base_url)


async def admit(ledger: Ledger, service: Service) -> None:
    """Pin the batch to the client's key, or check that the key is of the same project.

    Raises LedgerMismatch, PaymentsError when the list cannot be read, and LedgerError.
    """
    account = service.account
    require_account(ledger, account)
    pinned = await ledger.pin(account)
    if pinned != account.key:
        if not await _sees_own(ledger, service):
            is_here = account.base_url.startswith("http:")  # plain http goes to sandboxes alone
            remedy = _OTHER_SANDBOX if is_here else _OTHER_KEY
            ledger.require("key fingerprint", pinned, account.key, remedy=remedy)
        await ledger.pin(account, is_proven=True)
    await ledger.refresh()


async def _sees_own(ledger: Ledger, service: Service) -> bool:
    """Whether the list shows a payout with the id that the ledger has; where it has none, one that equals
    a sent row in proof and content."""
    knows_ids = await views.has_payouts(ledger)
    walk = PayoutList(service)
    while not walk.is_over:
        page = {each.reference: each for each in await walk.page() if each.reference is not None}
        for row in await views.sent_payouts(ledger, page.keys()):
            payout = page.get(row.reference)
            if payout is not None and (
                row.payout_id == payout.id
                if knows_ids
                else RowPayout.of(row, payout, ledger.known.binding).is_asked
            ):
                return True
    return False
