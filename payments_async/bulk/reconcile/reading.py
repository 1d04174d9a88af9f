"""One reading of the service's list, recorded in the ledger: statuses, settled rows, lost generations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ...models import Payout
from ..engine.mirror import ListedRow, Mirror, Settle
from ..ledger.ledger import Ledger
from ..protocol.generations import parted
from ..protocol.outcomes import NOT_ARRIVED
from ..protocol.payout_status import failure_of
from ..protocol.records import LedgerRow, NewRow, RowOutcome, RowSet
from ..protocol.recovery import later_payout

_GROUP: Final = 500
_LATER: Final = (
    "row {}: the list shows {}, a later payout of it that this ledger does not know of; "
    "pay the row by no other means before you have looked at it"
)


class ListReading:
    """Records what the pages of a list show, and what it has taught."""

    def __init__(self, ledger: Ledger, settle: Settle) -> None:
        """`settle`: settles rows that are open. Only while no other task sends them."""
        self._ledger = ledger
        self.mirror: Mirror = Mirror(ledger, settle)
        self._failed = RowSet()
        self.settled: int = 0
        """Rows that the list shows as paid, or their references as taken, and the ledger did not."""
        self.adopted: dict[int, tuple[LedgerRow, Payout]] = {}
        """{row number: the row with a later payout, which the ledger did not know, and that payout}."""

    async def take(self, page: Sequence[Payout]) -> list[ListedRow]:
        """Record what a page shows of the batch's rows."""
        listed = await self.mirror.take(page)
        for each in listed:
            self.settled += each.row.state is not each.before.state
            if failure_of(each.payout, had_arrived=each.before.had_arrived) is not None:
                self._failed.add(each.row.number)
        return listed

    async def adopt(self) -> list[str]:
        """Give rows the later payouts that the list shows, where all before them have failed.

        Returns findings: the later payouts that do not follow from what the ledger has.
        """
        shown = {number: _by_generation(found) for number, found in self.mirror.later.shown.items()}
        for group in _groups(shown):
            await self._adopt({number: shown[number] for number in group})
        later = self.mirror.later
        return [
            _LATER.format(number, words)
            for number in sorted(shown.keys() - self.adopted.keys())
            for words in later.of(number)
        ]

    async def _adopt(self, shown: Mapping[int, Sequence[Payout]]) -> None:
        binding, made = self._ledger.header.binding, dict[int, tuple[NewRow, RowOutcome]]()
        for number, row in (await self._ledger.numbered(shown)).items():
            failed = number in self._failed or row.outcome in NOT_ARRIVED
            found = later_payout(row, shown[number], binding) if failed else None
            if found is not None:
                made[number] = found
        if made:
            await self._ledger.adopt(made.values())
            rows = await self._ledger.numbered(made)
            self.adopted |= {number: (rows[number], shown[number][-1]) for number in sorted(made)}


def _by_generation(payouts: Mapping[str, Payout]) -> list[Payout]:
    return [payouts[reference] for reference in sorted(payouts, key=lambda each: parted(each)[1])]


def _groups(numbers: Mapping[int, object]) -> Iterator[list[int]]:
    in_order = sorted(numbers)
    return (in_order[start : start + _GROUP] for start in range(0, len(in_order), _GROUP))
