"""Proves, once for each batch, that a replaced API key is of the project that the batch is paid from."""

from __future__ import annotations

from typing import Final

from ...client import AsyncPayments
from ...errors import PaymentsError
from .._engine.service import Service
from .._ledger.postgresql.database import Database
from .._ledger.postgresql.granting import open_batches
from .._ledger.postgresql.ledger import PostgresLedger
from .._protocol.stop_rules import Account
from .._reconcile.same_account import require_place
from ..ledger_errors import LedgerUnavailable

EVERY: Final = 60.0
"""Seconds between two searches for such batches."""


class KeyProver:
    """Finds open batches that were begun with another key of the same account, and proves this one."""

    def __init__(self, client: AsyncPayments, account: Account) -> None:
        self._client, self._account = client, account
        self._refused: set[int] = set()
        self._due = 0.0

    async def prove(self, database: Database, only: int | None) -> bool:
        """Prove the key for the next such batch; False when there is none. Raises LedgerUnavailable."""
        now = database.runtime.monotonic()
        if now < self._due:
            return False
        for each, _ in await open_batches(database, self._account, only, proven=False):
            if each.batch not in self._refused:
                self._refused.add(each.batch)  # once, whatever it comes to
                return await self._prove(database, each.batch_id)
        self._due = now + EVERY
        return False

    async def _prove(self, database: Database, batch_id: str) -> bool:
        service = Service(self._client, database.clock.now)
        try:
            ledger = await PostgresLedger.open(database, batch_id, clock=service.moment)
            await require_place(ledger, service)
        except LedgerUnavailable:
            raise
        except PaymentsError:  # another project's, or the list cannot be read now
            return False
        return True
