"""Reads how a row's payout has ended from what the service shows of it. Pure (States; gaps H, I)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from ...models import Payout, PayoutStatus
from ...models.statuses import STATUS_ENDS, PayoutEnd, ending_of
from . import row_state
from .matching import Match, compare
from .records import LedgerRow, RowOutcome
from .row_state import UNFINISHED, RowState
from .totals import as_text

OTHER_CONTENT: Final = "other content under its reference"
"""Reason of a conflict: the row's own payout with other content; without proofs perhaps a stranger's."""
OTHER_PAYOUT: Final = "reference of another payout"
"""Reason of a conflict: another payout has the row's reference."""
_CODE: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}", re.ASCII)


def end_of(payout: Payout, *, had_arrived: bool = False) -> PayoutEnd:
    """How a payout has ended, by all its fields; UNCLEAR when they contradict each other.

    `had_arrived`: the service said so before, so that its time of arrival does not contradict a failure.
    """
    end, by_status = ending_of(payout), STATUS_ENDS.get(payout.status or "")
    is_return = end is PayoutEnd.UNCLEAR and had_arrived and by_status is PayoutEnd.FAILED
    return PayoutEnd.FAILED if is_return else end


def status_of(payout: Payout) -> str | None:
    """Read a payout's status, or derive it from its timestamps when none is shown."""
    if payout.status is not None:
        return payout.status
    by_time = {PayoutEnd.ARRIVED: PayoutStatus.COMPLETED, PayoutEnd.FAILED: PayoutStatus.FAILED}
    return by_time.get(ending_of(payout))


def described(payout: Payout, *, had_arrived: bool = False) -> str:
    """Describe a payout's status in words."""
    status = status_of(payout)
    if end_of(payout, had_arrived=had_arrived) is not PayoutEnd.UNCLEAR:
        return str(status)
    names = ("completed_at", "failed_at")
    times = " and ".join(name for name in names if getattr(payout, name) is not None)
    return f"{status or 'without a status'} with {times}: the service contradicts itself"


def failure_of(payout: Payout, *, had_arrived: bool = False) -> str | None:
    """Give the reason why a payout has finally failed, without account data; None when it has not."""
    if end_of(payout, had_arrived=had_arrived) is not PayoutEnd.FAILED:
        return None
    code = payout.failure.code.value if payout.failure and payout.failure.code else None
    return _plain(code) or status_of(payout)


def mirrored(row: LedgerRow, payout: Payout) -> RowOutcome | None:
    """Make a created row's outcome from its payout; None if nothing is new, or the payout is another's.

    What the service says last counts, also after a final status; `turn_of` reports such a turn.
    """
    if not _is_own(row, payout):
        return None
    end, status = end_of(payout, had_arrived=row.had_arrived), status_of(payout)
    failure = failure_of(payout, had_arrived=row.had_arrived)
    known = row.service_status, row.payout_end, row.failure_code if failure else None
    says_nothing = status is None and end is PayoutEnd.OPEN
    if says_nothing or known == (status, end, failure):
        return None
    return RowOutcome(
        row.number,
        row.known,
        status,
        end,
        failure_code=failure,
        body_hash=row.body_hash,
        latest=True,
    )


def turn_of(row: LedgerRow, payout: Payout) -> str | None:
    """Describe the turn of a payout that had ended, and is now shown otherwise; None without one."""
    if not _is_own(row, payout) or not row.is_final:
        return None
    end, status = end_of(payout, had_arrived=row.had_arrived), status_of(payout)
    if (end, status) == (row.payout_end, row.service_status):
        return None
    shown = described(payout, had_arrived=row.had_arrived)
    return f"row {row.number}: {payout.id} had ended as {row.service_status}, and the list shows {shown}"


def status_finding(row: LedgerRow, payout: Payout) -> str | None:
    """Describe a payout that contradicts itself, or the row as it is recorded; None when it does neither."""
    if not _is_own(row, payout):
        return None
    end, shown = end_of(payout, had_arrived=row.had_arrived), described(payout, had_arrived=row.had_arrived)
    if end is PayoutEnd.UNCLEAR:
        return f"row {row.number}: {payout.id} is {shown}"
    if status_of(payout) in (None, row.service_status) and end is row.payout_end:
        return None
    return f"row {row.number}: {payout.id} is {shown} on the list, and {row.service_status} in the ledger"


def _is_own(row: LedgerRow, payout: Payout) -> bool:
    return row.state is RowState.CREATED and payout.id == row.known.payout_id


def settled(row: LedgerRow, payout: Payout, later: Sequence[str] = ()) -> RowOutcome | None:
    """Settle a row in doubt whose reference the list shows. Returns None when it stays in doubt.

    `later`: what the list shows of its later payouts (`_later`), to be reported where the row seems unpaid.
    """
    if row.state not in UNFINISHED or not payout.id:
        return None
    matched = compare(row, payout)
    if matched is Match.EQUAL:
        made = row_state.confirm(row.known, payout.id)
        failure = failure_of(payout)
        later_payouts = _found(later) if failure and later else None
        facts = (status_of(payout), end_of(payout), failure, later_payouts)
        return RowOutcome(row.number, made, *facts, row.body_hash)
    if matched is Match.UNCLEAR:
        return None
    contradicted = row_state.contradict(row.known)
    code = OTHER_CONTENT if matched is Match.OTHER_BODY else OTHER_PAYOUT
    return RowOutcome(
        row.number,
        contradicted,
        failure_code=code,
        failure_message=_found([facts_of(payout), *later]),
        body_hash=row.body_hash,
    )


def _found(shown: Sequence[str]) -> str:
    return f"the list shows {'; and '.join(shown)}"


def facts_of(payout: Payout) -> str:
    """Describe a payout in words: its id, amount and status, without account data."""
    facts = [_plain(payout.id) or "a payout"]
    if payout.amount is not None:
        facts.append(" ".join(filter(None, (_plain(payout.amount.currency), _amount(payout.amount.value)))))
    facts += filter(None, [_plain(payout.status)])
    return ", ".join(facts)


def _plain(word: str | None) -> str | None:
    return word if word and _CODE.fullmatch(word) else None


def _amount(value: Decimal | None) -> str | None:
    return None if value is None else as_text(value)


def retry_block(row: LedgerRow, payout: Payout) -> str | None:
    """Give the reason why a row must not be paid again, by its payout on the list; None when it may be."""
    if row.state is not RowState.CREATED or payout.id != row.known.payout_id:
        return f"the list shows {payout.id} under its reference, which is not the row's payout"
    if end_of(payout, had_arrived=row.had_arrived) is not PayoutEnd.FAILED:
        return f"its payout is {described(payout)}"
    if row.payout_end is PayoutEnd.ARRIVED:  # one page of one reading may be wrong
        return turn_of(row, payout)
    return None if compare(row, payout) is Match.EQUAL else "the list shows its payout differently"
