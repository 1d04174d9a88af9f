"""Claims new rows under a guard: their amounts are reserved first, all in one call, or room is waited for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from ...errors import ConfigurationError, GuardRefused, LimitStoreUnavailable
from .._ledger.ledger import Ledger
from .._protocol.exit_codes import Stop
from .._protocol.records import Claim, LedgerRow
from .service import Service
from .stopping import Stopping

if TYPE_CHECKING:
    from ..._guard.budget_client import Granted
    from ..._guard.budgets import Shortage
    from ..._guard.key_guard import KeyGuard

_SLICE: Final = 5.0
"""Seconds after which rows in doubt that are due go first, and the sums are asked again."""


class GuardedClaims:
    """Claims the new rows that a guard lets be sent now."""

    def __init__(self, ledger: Ledger, service: Service, stopping: Stopping, patience: float) -> None:
        """`patience`: seconds in which there has to be room again."""
        self._ledger, self._service, self._stopping = ledger, service, stopping
        self._patience = patience
        self._since: float | None = None
        self.waits_for: str | None = None
        """Why the next row waits; None while there is room."""

    async def claim(self, guard: KeyGuard, limit: int) -> Claim | None:
        """Claim the next rows; without room for the first, rest a while and return a claim without rows.

        None when no row can be sent in this run. Raises one of `ledger_errors.NO_INTENT`.
        """
        rows = await self._ledger.claimable(limit)
        count, shortage = await self._reserved(guard, rows)
        if not count:
            return None if shortage is None else await self._wait(rows[0], shortage)
        self._since = self.waits_for = None
        claim = await self._claimed(guard, rows[:count])
        return claim if claim.rows else None

    async def _reserved(self, guard: KeyGuard, rows: Sequence[LedgerRow]) -> Granted:
        """Reserve the first rows' amounts: how many, and why there is no room for the next."""
        try:
            return await guard.reserve_all([(row.idempotency_key, row.body) for row in rows])
        except GuardRefused as error:
            self._stopping.close(f"row {rows[0].number}: {error}", Stop.RULE)
        except (ConfigurationError, LimitStoreUnavailable) as error:
            self._stopping.halt(str(error))
        return 0, None

    async def _claimed(self, guard: KeyGuard, rows: Sequence[LedgerRow]) -> Claim:
        """Claim as many rows as were reserved, and give back the amounts of others than those."""
        unclaimed = {(row.idempotency_key, row.body) for row in rows}
        try:
            claim = await self._ledger.claim(len(rows))
            unclaimed -= {(row.idempotency_key, row.body) for row in claim.rows}
            return claim
        finally:
            guard.give_back(unclaimed)

    async def _wait(self, row: LedgerRow, shortage: Shortage) -> Claim | None:
        now = self._service.runtime.monotonic()
        self._since = now if self._since is None else self._since
        self.waits_for = self._no_room(row, shortage)
        if now + shortage.wait - self._since > self._patience:
            self._stopping.drain_for_room(self.waits_for, shortage.wait)
            return None
        await self._stopping.rest(min(shortage.wait, _SLICE), deep=False)
        return Claim((), self._service.moment())

    def _no_room(self, row: LedgerRow, shortage: Shortage) -> str:
        at = self._service.runtime.now() + timedelta(seconds=shortage.wait)
        from ..._guard.rules import no_room  # loaded with the guard

        text = no_room(shortage, row.amount).text
        return f"no room in the guard until {at:%Y-%m-%d %H:%M:%S} UTC: row {row.number}, {text}"
