"""Recovers a batch whose database has lost commits: learns from the service's list what the ledger lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from .._engine.payout_list import listed_since, pages
from .._engine.reading import ListReading
from .._engine.service import Service
from .._protocol.machines import OperatorCommand, proof_due

if TYPE_CHECKING:
    from .._ledger.postgresql.ledger import PostgresLedger


@attrs.frozen
class RecoveryReport:
    """The result of a recovery, which may have to be called again."""

    batch_id: str
    reason: str | None
    """Why commits may be lost; None if there is nothing to recover."""
    commands: tuple[OperatorCommand, ...] = ()
    """The operator's commands that the ledger knows: compare them with those that were given."""
    settled: int = 0
    """Rows that the list shows as paid, or their references as taken, and the ledger did not."""
    retried: tuple[int, ...] = ()
    """The numbers of rows whose lost retries were made good, as the list shows the payouts that followed."""
    findings: tuple[str, ...] = ()
    """What the list shows of rows and does not follow from what the ledger has."""
    is_suspect: bool = False
    """True if no row is sent until `recover` is told that no command is missing."""
    wait: float = 0.0
    """Seconds until a reading of the list can prove that nothing more was lost: call `recover` again then.

    Until that, rows cannot be cancelled, edited or retried, and no certificate is clean. 0: it is proven.
    """

    @property
    def is_over(self) -> bool:
        """True if nothing is left to recover."""
        return not self.is_suspect and not self.wait


async def recover(
    ledger: PostgresLedger,
    service: Service,
    on_commit: Callable[[], object],
    *,
    commands_complete: bool,
    by_hand: bool,
) -> RecoveryReport:
    """Settle what the list shows, and let the batch go on if no command is missing.

    Raises PaymentsError when the list cannot be read whole; all facts read until then are recorded.
    """
    batch_id = ledger.header.binding.batch_id
    await service.check_access()
    state = await ledger.begin_recovery(by_hand=by_hand)
    if state is None:
        return RecoveryReport(batch_id, None)
    wait = 0.0 if state.lost is None else proof_due(state.lost, service.moment())
    reading = ListReading(ledger, service, lost=True)
    async for page in pages(service, listed_since(state.imported.server)):
        await reading.take(page)
        on_commit()
    findings = (*reading.turns, *(found for each in await reading.end() for found in each.judgement.findings))
    is_suspect = state.is_suspect and not commands_complete
    await ledger.end_recovery(state, confirmed=commands_complete, proven=not wait)
    found = (reading.settled, tuple(sorted(reading.adopted)), findings)
    return RecoveryReport(batch_id, state.reason, state.commands, *found, is_suspect, wait)
