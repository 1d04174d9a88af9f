"""Proves, once for each batch, that a replaced API key is of the project that the batch is paid from."""

from __future__ import annotations

from ...client import AsyncPayments
from .._engine.service import Service
from .._ledger.postgresql.batches import SharedFacts
from .._ledger.postgresql.database import Database
from .._ledger.postgresql.ledger import PostgresLedger
from .._protocol.stop_rules import Account, account_mismatch
from .._reconcile.same_account import require_place
from ..ledger_errors import LedgerMismatch


class KeyProver:
    """Proves the client's key for batches that were begun with another key of the same account."""

    def __init__(self, client: AsyncPayments, account: Account) -> None:
        self._client, self._account = client, account
        self.refused: dict[int, str] = {}
        """{batch: why it cannot be paid from this account}. Each is asked about once."""

    async def mismatch(self, database: Database, facts: SharedFacts) -> str | None:
        """Why a batch cannot be paid from this account; None when it can.

        Raises PaymentsError when the key cannot be verified now, and LedgerError.
        """
        number, here, binding = facts.batch.batch, self._account, facts.header.binding
        if here.key in facts.keys or number in self.refused:
            return self.refused.get(number)
        there = Account(binding.environment, binding.base_url, binding.key_fingerprint)
        why: str | None = account_mismatch(there, here, untouched=False, visible=True)
        if why is None:
            why = await self._prove(database, facts.batch.batch_id)
        if why is not None:
            self.refused[number] = str(why)
        return self.refused.get(number)

    async def _prove(self, database: Database, batch_id: str) -> str | None:
        service = Service(self._client, database.clock.now)
        ledger = await PostgresLedger.open(database, batch_id, clock=service.moment)
        try:
            await require_place(ledger, service)
        except LedgerMismatch as error:
            return str(error)
        return None
