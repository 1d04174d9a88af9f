"""What a payout, as the list shows it, teaches of its row. Pure (Resources, Payout; States; gaps H, I)."""

from __future__ import annotations

import re
from typing import Final

from ..models import Payout, PayoutStatus
from . import _states
from ._evidence import testify
from ._records import LedgerRow, Outcome
from ._states import RowState
from ._witness import Witness

UNSUCCESSFUL: Final = PayoutStatus.FINAL - {PayoutStatus.COMPLETED}
"""Statuses of payouts that are over and did not arrive."""
_CODE: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}", re.ASCII)


def status_of(payout: Payout) -> str | None:
    """The payout's status; where none is shown, what its timestamps say."""
    if payout.status is not None or not payout.is_final:
        return payout.status
    return PayoutStatus.COMPLETED if payout.is_successful else PayoutStatus.FAILED


def failure_of(payout: Payout) -> str | None:
    """Why a payout has finally failed, in a word without account data; None when it has not."""
    if not payout.is_final or payout.is_successful:
        return None
    code = payout.failure.code.value if payout.failure and payout.failure.code else None
    return code if code and _CODE.fullmatch(code) else status_of(payout)


def has_failed(row: LedgerRow) -> bool:
    """Whether the ledger knows that the row's payout is over and did not arrive."""
    over = row.state is RowState.CREATED and row.final
    return over and (row.failure_code is not None or row.service_status in UNSUCCESSFUL)


def mirrored(row: LedgerRow, payout: Payout) -> Outcome | None:
    """What is new of a created row; None when nothing is, or it is another payout than the row's.

    A status that is final stays: `contradiction` tells of another one.
    """
    if row.state is not RowState.CREATED or payout.id != row.known.payout_id or contradiction(row, payout):
        return None
    status, failure = status_of(payout), failure_of(payout)
    known = row.service_status, row.final, row.failure_code if failure else None
    if status is None or known == (status, payout.is_final, failure):
        return None
    return Outcome(row.number, row.known, status, payout.is_final, failure_code=failure)


def contradiction(row: LedgerRow, payout: Payout) -> str | None:
    """What to say when a payout that was over is shown in another status than it ended in; else None."""
    if not row.final or row.state is not RowState.CREATED or payout.id != row.known.payout_id:
        return None
    shown = status_of(payout)
    if payout.is_final and shown == row.service_status:
        return None
    return f"row {row.number}: {payout.id} had ended as {row.service_status}, and the list shows {shown}"


def settled(row: LedgerRow, payout: Payout) -> Outcome | None:
    """The end of the doubt about a row whose reference the list shows; None when it stays."""
    if row.state not in (RowState.IN_FLIGHT, RowState.IN_DOUBT) or payout.id is None:
        return None
    witness = testify(row, payout)
    if witness is Witness.EQUAL:
        made = _states.confirm(row.known, payout.id)
        return Outcome(row.number, made, status_of(payout), payout.is_final, failure_code=failure_of(payout))
    if witness is Witness.UNCLEAR:
        return None
    contradicted = _states.contradict(row.known)
    return Outcome(row.number, contradicted, failure_code="reference of another payout")


def hindrance_to_retry(row: LedgerRow, payout: Payout) -> str | None:
    """Why a row must not be paid anew, given its payout as the list shows it now; None when it may be."""
    if row.state is not RowState.CREATED or payout.id != row.known.payout_id:
        return f"the list shows {payout.id} under its reference, which is not the row's payout"
    if not payout.is_final or payout.is_successful:
        return f"its payout is {status_of(payout)}"
    return None if testify(row, payout) is Witness.EQUAL else "the list shows its payout differently"
