"""Proves, once for each batch, that a replaced API key is of the project that the batch is paid from."""

from __future__ import annotations

from typing import Final

from ..._http.addresses import same_service
from ...client import AsyncPayments
from ...errors import PaymentsError
from ..engine.service import Service
from ..ledger.postgresql import batches
from ..ledger.postgresql.batches import BatchFacts
from ..ledger.postgresql.driver.database import Database
from ..ledger.postgresql.ledger import PostgresLedger
from ..ledger_errors import LedgerUnavailable
from ..protocol.leases import BatchState
from ..protocol.stop_rules import Account
from ..reconcile.same_account import require_place

EVERY: Final = 60.0
"""Seconds between two searches for such batches."""


class KeyProver:
    """Finds open batches that were begun with another key of the same account, and proves this one."""

    def __init__(self, client: AsyncPayments, account: Account) -> None:
        self._client, self._account = client, account
        self._refused: set[int] = set()
        self._due = 0.0

    def is_ours(self, facts: BatchFacts) -> bool:
        """True if this account may work on a batch now."""
        return self._is_here(facts) and self._account.key in facts.keys

    def _is_here(self, facts: BatchFacts) -> bool:
        binding, here = facts.header.binding, self._account
        is_same = binding.environment == here.environment and same_service(binding.base_url, here.base_url)
        return is_same and facts.state is BatchState.OPEN

    async def prove(self, database: Database, only: int | None) -> bool:
        """Prove the key for the next such batch; False when there is none. Raises LedgerUnavailable."""
        now = database.runtime.monotonic()
        if now < self._due:
            return False
        for each in await batches.listed(database):
            facts, number = each.facts, each.facts.batch.batch
            is_new = self._account.key not in facts.keys and number not in self._refused
            if is_new and self._is_here(facts) and only in (None, number):
                self._refused.add(number)  # once, whatever it comes to
                return await self._prove(database, facts.batch.batch_id)
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
