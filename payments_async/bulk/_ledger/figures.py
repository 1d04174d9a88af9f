"""Reads a batch's figures: counts and exact sums by outcome, payouts beside the rows, what came when."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import attrs
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ...models.statuses import PayoutEnd
from .._protocol.outcomes import (
    OF_STATE,
    ExtraPayout,
    ExtraTotals,
    Outcome,
    RowState,
    RowTotals,
    Turn,
    add_rows,
    by_currency,
    count_rows,
)
from .ledger import Ledger
from .tables import batches, decided_by, has_turn, now, payouts, rows
from .values import currency_of, halves, total_of

_DECIDED: Final = (RowState.CREATED.value, RowState.REJECTED.value, RowState.CONFLICT.value)
"""States of rows that count as decided: one given back or in doubt has a time as well."""
_RECENT: Final = 60.0  # seconds of which the pace is made


@attrs.frozen
class Figures:
    """Counts and sums of a batch, of one moment."""

    at: float  # by the database's clock
    totals: RowTotals
    extra: ExtraTotals
    is_balanced: bool  # True if rows and sums are those that were imported
    others: int = 0
    """Rows of an outbox that are for a key of the other environment: they are never sent by this one."""
    unreadable: tuple[str, ...] = ()  # what is wrong with rows that are in no sum

    def count(self, *outcomes: Outcome) -> int:
        """Count the rows of any of these outcomes."""
        return count_rows(self.totals, *outcomes)


_ENDS: Final = (
    (
        sa.and_(
            rows.c.payout_end == PayoutEnd.FAILED.value,
            _arrived := sa.or_(rows.c.had_arrived, rows.c.earlier_arrived),
        ),
        Outcome.RETURNED.value,
    ),
    (rows.c.payout_end == PayoutEnd.FAILED.value, Outcome.FAILED.value),
    (rows.c.payout_end == PayoutEnd.ARRIVED.value, Outcome.ARRIVED.value),
)
OUTCOME: Final = sa.case(
    *(
        (rows.c.state == state.value, outcomes[0].value)
        for state, outcomes in OF_STATE.items()
        if state is not RowState.CREATED
    ),
    *_ENDS,
    else_=Outcome.NOT_FINAL.value,
)
"""What became of a row, as SQL says it: `outcome_of` says the same of a value."""


async def figures(ledger: Ledger, environment: str = "", decided_before: float | None = None) -> Figures:
    """Read the figures. `environment`: of an outbox, whose rows count. Raises LedgerError.

    `decided_before`: none that is new, and only those whose latest word, or whose taker's time, is older.
    """

    async def work(connection: AsyncConnection) -> Figures:
        mine = rows.c.batch_id == ledger.batch_id
        is_ours = (rows.c.environment == environment,) if environment else ()
        if decided_before is not None:
            is_taken = rows.c.state == RowState.IN_FLIGHT.value
            is_older = sa.case((is_taken, rows.c.due <= decided_before), else_=decided_by(decided_before))
            is_ours = (*is_ours, rows.c.state != RowState.NEW.value, is_older)
        wrong = list[str]()
        grouped = await connection.execute(_summed(OUTCOME, rows).where(mine, *is_ours))
        totals = _added(grouped.mappings(), Outcome, wrong)
        is_beside = payouts.c.batch_id == ledger.batch_id, payouts.c.beside.is_not(None)
        others = await connection.execute(_summed(payouts.c.beside, payouts).where(*is_beside))
        extra = _added(others.mappings(), ExtraPayout, wrong)
        elsewhere = 0
        if environment and decided_before is None:
            others_rows = sa.select(sa.func.count()).where(mine, rows.c.environment != environment)
            elsewhere = (await connection.execute(others_rows)).scalar_one()
        at = (await connection.execute(sa.select(now()))).scalar_one()
        known = ledger.known
        sums = {code: amount for code, amount in known.totals.items() if amount}
        is_as_imported = count_rows(totals, *Outcome) == known.rows and by_currency(totals) == sums
        is_free = known.is_outbox or known.forgotten_at is not None
        is_balanced = not wrong and (is_free or is_as_imported)
        return Figures(at, totals, extra, is_balanced, elsewhere, tuple(wrong))

    return await ledger.database.read(work)


def _summed(word: sa.ColumnElement[Any], table: sa.Table) -> sa.Select[Any]:
    """Count and sum a table's amounts by a word, currency and scale."""
    what, (high, low) = word.label("what"), halves(table.c.units)
    sums = (sa.func.count().label("count"), sa.func.sum(high).label("high"), sa.func.sum(low).label("low"))
    places = (what, table.c.currency, table.c.scale)
    return sa.select(*places, *sums).group_by(*places)


def _added(found: Any, kind: Any, wrong: list[str]) -> dict[Any, tuple[int, Decimal]]:
    """Add up the groups of a sum, whose amounts have several scales: {(word, currency): (count, sum)}.

    `wrong`: gets what is wrong with groups that cannot be added.
    """
    totals = dict[Any, tuple[int, Decimal]]()
    for each in found:
        try:
            place = kind(each["what"]), currency_of(each["currency"])
            amount = total_of(each["high"] or 0, each["low"] or 0, each["scale"])
        except ValueError as error:
            wrong.append(f"{each['count']:,} of the batch cannot be read: {error}")
            continue
        add_rows(totals, place, each["count"], amount)
    return totals


@attrs.frozen
class Next:
    """What is left to do."""

    posts: bool  # whether any row is to be posted, now or later
    ready: bool  # whether one is due
    looks: bool  # whether any is looked for in the list
    waits: bool
    """Whether a row waits for a reading of the list before it may be posted."""
    doubts: bool
    """Whether a row is to be posted again of which the list may show a payout."""
    due: float | None
    """Seconds until the next row may be posted that may not be posted yet; None without one."""


async def next_of(ledger: Ledger, environment: str) -> Next:
    """Read what is left to do. Raises LedgerError."""

    mine = rows.c.batch_id == ledger.batch_id
    post = (mine, has_turn(Turn.POST), rows.c.environment == environment, rows.c.id <= _LAST_ROW)
    first = sa.select(sa.func.min(rows.c.due)).where(*post, rows.c.due > now()).scalar_subquery()
    what = {
        "posts": post,
        "ready": (*post, rows.c.due <= now()),
        "looks": (mine, has_turn(Turn.LOOK)),
        "waits": (*post, rows.c.generation > 0, rows.c.due <= now()),
        "doubts": (*post, rows.c.doubted),
    }
    there = [sa.exists(sa.select(rows.c.id).where(*where)).label(word) for word, where in what.items()]
    (found,) = await ledger.database.find(sa.select(*there, (first - now()).label("due")))
    return Next(**{word: bool(found[word]) for word in what}, due=found["due"])


_LAST_ROW: Final = sa.func.coalesce(
    sa.select(batches.c.last_row)
    .where(batches.c.batch_id == rows.c.batch_id)
    .correlate(rows)
    .scalar_subquery(),
    (1 << 62) - 1,
)
"""The last row that may be taken."""


@attrs.frozen
class Awaited:
    """Created payouts that may still end."""

    count: int
    since: float | None
    """When the oldest was created at the latest; None where that is not known of each."""


async def awaited(ledger: Ledger) -> Awaited:
    """Read which created payouts may still end. Raises LedgerError."""
    waiting = sa.select(
        sa.func.count().label("count"),
        sa.func.min(rows.c.decided_at).label("oldest"),
        sa.func.sum(sa.cast(rows.c.is_found, sa.Integer)).label("found"),
    ).where(
        rows.c.batch_id == ledger.batch_id,
        rows.c.state == RowState.CREATED.value,
        rows.c.payout_end == PayoutEnd.OPEN.value,
    )
    (each,) = await ledger.database.find(waiting)
    return Awaited(int(each["count"]), None if each["found"] else each["oldest"])


async def only_own(ledger: Ledger) -> bool:
    """Whether each row was created by the answer to this ledger's own request, and none otherwise decided.

    An earlier ledger, since lost, may have paid any other long ago. Raises LedgerError.
    """
    other = sa.select(rows.c.id).where(
        rows.c.batch_id == ledger.batch_id,
        sa.or_(rows.c.state != RowState.CREATED.value, rows.c.is_found, rows.c.generation > 0),
    )
    return not await ledger.database.has(other)


async def pace(ledger: Ledger) -> float:
    """Rows that were decided a second over the last minute. Raises LedgerError."""
    decided = sa.select(sa.func.count(), sa.func.min(rows.c.decided_at), now()).where(
        rows.c.batch_id == ledger.batch_id, rows.c.state.in_(_DECIDED), rows.c.decided_at > now() - _RECENT
    )

    async def work(connection: AsyncConnection) -> float:
        number, first, at = (await connection.execute(decided)).one()
        return 0.0 if first is None else number / min(_RECENT, max(1.0, at - first))

    return await ledger.database.read(work)
