"""Recovers a batch whose database has lost commits: learns from the service's list what the ledger lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Final

import attrs

from ...models import Payout
from ..engine.mirror import Mirror
from ..engine.payout_list import pages
from ..engine.service import Service, day_of
from ..ledger.ledger import SharedLedger
from ..protocol.clocks import scan_start
from ..protocol.generations import parted
from ..protocol.payout_status import facts_of
from ..protocol.records import NewRow, RowOutcome
from ..protocol.recovery import LossState, OperatorCommand, next_payout, proof_due, settled_after_loss

_GROUP: Final = 500


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
    ledger: SharedLedger,
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
    await service.greet()
    state = await ledger.begin_recovery(by_hand=by_hand)
    if state is None:
        return RecoveryReport(batch_id, None)
    wait = 0.0 if state.lost is None else proof_due(state.lost, service.moment())
    reading = _ListReading(ledger)
    async for page in pages(service, _filters(state)):
        await reading.take(page)
        on_commit()
    await reading.adopt()
    is_suspect = state.is_suspect and not commands_complete
    await ledger.end_recovery(state, confirmed=commands_complete, proven=not wait)
    found = (reading.settled, tuple(reading.retried), tuple(reading.findings))
    return RecoveryReport(batch_id, state.reason, state.commands, *found, is_suspect, wait)


def _filters(state: LossState) -> Mapping[str, str | date]:
    """Make filters for the part of the list that has all payouts of the batch, lost intents included."""
    start = scan_start(state.imported)
    return {} if start is None else {"created_on_or_after": day_of(start)}


class _ListReading:
    """One reading of the list, and what it has taught."""

    def __init__(self, ledger: SharedLedger) -> None:
        self._ledger = ledger
        self._mirror = Mirror(ledger, settled_after_loss)
        self.settled = 0
        self.retried: list[int] = []
        self.findings = self._mirror.findings

    async def take(self, page: Sequence[Payout]) -> None:
        """Record what a page shows of the batch's rows."""
        shown = await self._mirror.take(page)
        self.settled += sum(each.row.state is not each.before.state for each in shown)

    async def adopt(self) -> None:
        """Make good lost retries, generation by generation, from the payouts that followed them."""
        shown = {number: _by_generation(found) for number, found in self._mirror.later.shown.items()}
        while shown:
            stuck = set[int]()
            for group in _groups(shown):
                stuck |= await self._adopt_next({number: shown[number].pop(0) for number in group})
            shown = {number: left for number, left in shown.items() if left and number not in stuck}

    async def _adopt_next(self, payouts: Mapping[int, Payout]) -> set[int]:
        """Adopt the next payout of each row. Returns the rows that it does not follow from."""
        binding, made = self._ledger.header.binding, dict[int, tuple[NewRow, RowOutcome]]()
        for number, row in (await self._ledger.numbered(payouts)).items():
            found = next_payout(row, payouts[number], binding)
            if found is None:
                self._mirror.note(f"row {number}: {_UNEXPLAINED.format(facts_of(payouts[number]))}")
            else:
                made[number] = found
        if made:
            await self._ledger.adopt(made.values())
        self.retried += sorted(made)
        return payouts.keys() - made.keys()


_UNEXPLAINED: Final = (
    "the list shows {}, a later payout of it that does not follow from what the ledger has; "
    "pay the row by no other means before you have looked at it"
)


def _by_generation(payouts: Mapping[str, Payout]) -> list[Payout]:
    return [payouts[reference] for reference in sorted(payouts, key=lambda each: parted(each)[1])]


def _groups(numbers: Mapping[int, object]) -> Iterator[list[int]]:
    in_order = sorted(numbers)
    return (in_order[start : start + _GROUP] for start in range(0, len(in_order), _GROUP))
