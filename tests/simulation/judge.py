"""The books decide: no row paid twice, none lost, no verdict false, sums to the cent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from payments_async.bulk._protocol.outcomes import RowTotals, balances
from payments_async.bulk._protocol.row_state import RowState

from .ledger import Breach, Disk, Entry
from .plan import Plan
from .promises import is_same
from .service import Payment, Service


def check_end(totals: RowTotals, code: int, rows: Mapping[str, Entry]) -> None:
    """What a run says when it ends, against its own rows. Raises Breach."""
    states = Counter(entry.known.state for entry in rows.values())
    if not balances(totals, len(rows), {"XOF": sum((e.body.amount for e in rows.values()), Decimal(0))}):
        raise Breach("the classes do not add up to all rows")
    unfinished = states[RowState.NEW] + states[RowState.IN_FLIGHT] + states[RowState.IN_DOUBT]
    if code in (0, 1) and unfinished:
        raise Breach(f"exit {code} with {unfinished} rows open")
    if code == 0 and states[RowState.CREATED] != len(rows):
        raise Breach("exit 0, but not every row is created")


def check(
    disks: list[Disk],
    services: list[Service],
    plan: Plan,
    failures: list[dict[str, Any]],
    *,
    corrections_may_be_lost: bool = False,
) -> None:
    """Everything, when nothing happens any more; the first disk is the one in use. Raises Breach."""
    if failures:
        raise Breach(f"an error that nobody saw: {failures[0]}")
    payments = [payment for service in services for payment in service.payments]
    _check_paid_once(payments)
    for disk in disks:
        for entry in disk.rows.values():
            _check_verdict(entry, disk, payments, corrections_may_be_lost)
    _check_none_lost(disks[0], plan)
    _check_sums(disks[0], payments)


def _check_paid_once(payments: list[Payment]) -> None:
    paid = Counter(p.origin[1] for p in payments if p.origin is not None and not p.failed)
    for row, times in paid.items():
        if times > 1:
            raise Breach(f"PAID TWICE: {row}, {times} times")


def _check_verdict(entry: Entry, disk: Disk, payments: list[Payment], lost: bool) -> None:
    """`lost`: the row's own payout may have another body, as the ledger may have lost a correction."""
    known, row = entry.known, entry.body.row
    own = [p for p in payments if p.origin == (disk.name, row, known.generation)]
    same = [p for p in payments if is_same(p, entry, known)]
    if known.state is RowState.CREATED and not any(p.id == known.payout_id for p in same):
        raise Breach(f"FALSE CREATED: {row}")
    if known.state is RowState.REJECTED and (own or same):
        raise Breach(f"FALSE REJECTED: {row} was paid")
    if known.state is RowState.CANCELLED and own:
        raise Breach(f"FALSE CANCELLED: {row} was paid")
    if known.state is RowState.CONFLICT and (same or (own and not lost)):
        raise Breach(f"FALSE CONFLICT: {row} has its payout")


def _check_none_lost(final: Disk, plan: Plan) -> None:
    """A healthy service and time leave no row open, and reject only what the service does not take."""
    for row, entry in final.rows.items():
        state = entry.known.state
        if state in (RowState.NEW, RowState.IN_FLIGHT, RowState.IN_DOUBT) and row != plan.excused_row:
            raise Breach(f"LOST: {row} is still {state}")
        if state is RowState.REJECTED and not entry.body.bad and not plan.moody:
            raise Breach(f"FALSE REJECTED: the service takes {row}")


def _check_sums(final: Disk, payments: list[Payment]) -> None:
    """The amounts of created rows are those of their payouts."""
    by_id = {(payment.id, payment.reference): payment.amount for payment in payments}
    for row, entry in final.rows.items():
        known = entry.known
        if known.state is RowState.CREATED:
            amounts = [amount for (id_, _), amount in by_id.items() if id_ == known.payout_id]
            if entry.body.amount not in amounts:
                raise Breach(f"SUMS: {row} was paid with another amount")
