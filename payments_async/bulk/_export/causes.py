"""Rows that need a person, grouped by cause: outcome and reason, each with its rows and exact sums."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar, Final

import attrs

from .._ledger import views
from .._ledger.ledger import Ledger
from .._protocol.outcomes import Outcome, add_rows, as_text, brief
from .._protocol.records import LedgerRow
from .row_view import RowView, reason_of, view_of

_MOST_REASONS: Final = 20
"""Reasons of one outcome that are told apart; a service may give each row its own."""
_Group = tuple[Outcome, str | None]
"""An outcome and a reason."""


@attrs.frozen
class Cause:
    """The rows of one outcome that have the same reason."""

    outcomes: ClassVar[tuple[Outcome, ...]] = (
        Outcome.IN_DOUBT,
        Outcome.CONFLICT,
        Outcome.NOT_FINAL,
        Outcome.RETURNED,
        Outcome.FAILED,
        Outcome.REJECTED,
    )
    """The outcomes of rows that need a person, the most urgent first. Of those that are not final, only the
    rows whose payouts contradict themselves."""
    outcome: Outcome
    reason: str | None
    """The reason in the service's words, or how the payout contradicts itself; None without one,
    `other reasons` where these are too many."""
    count: int
    """How many rows it has."""
    sums: Mapping[str, Decimal] = attrs.field(repr=brief)
    """{currency: the sum of their amounts, major units}, exact."""
    rows: tuple[RowView, ...] = ()
    """The first of them."""

    def facts(self) -> dict[str, Any]:
        """The same as JSON values, without the rows themselves."""
        sums = {currency: as_text(amount) for currency, amount in self.sums.items()}
        return {"outcome": self.outcome.value, "reason": self.reason, "count": self.count, "sums": sums}


async def causes(ledger: Ledger, most: int = 50) -> tuple[Cause, ...]:
    """Group the rows that need a person by cause, with at most so many rows in all. Raises LedgerError."""
    sums = defaultdict[_Group, dict[str, tuple[int, Decimal]]](dict)
    first = defaultdict[_Group, list[LedgerRow]](list)
    wanted = [outcome for outcome in Cause.outcomes if outcome is not Outcome.NOT_FINAL]
    for rows in (views.all_rows(ledger, wanted), views.contradicting(ledger)):
        async for row in rows:
            group = row.outcome, reason_of(row)
            if group not in sums and sum(outcome is row.outcome for outcome, _ in sums) >= _MOST_REASONS:
                group = row.outcome, "other reasons"
            add_rows(sums[group], row.currency, 1, row.amount)
            if len(first[group]) < most:
                first[group].append(row)
    each = most // max(len(sums), 1)
    found = [
        Cause(
            *group,
            sum(number for number, _ in added.values()),
            {currency: amount for currency, (_, amount) in sorted(added.items())},
            tuple(map(view_of, first[group][:each])),
        )
        for group, added in sums.items()
    ]
    return tuple(sorted(found, key=lambda cause: (Cause.outcomes.index(cause.outcome), -cause.count)))
