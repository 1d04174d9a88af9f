"""Finds out from a payout's fields whether it has arrived or failed. Pure (States; gaps H, I)."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from typing import Final

import attrs

from ..._request.comparison import value_of
from ...models import Amount, Payout, PayoutStatus
from ...models.payouts import ending_of
from ...models.statuses import STATUS_ENDS, PayoutEnd
from .outcomes import as_text

_MOST_DIGITS: Final = 60  # a number that has more is shown with its exponent
_CODE: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}", re.ASCII)


def end_of(payout: Payout, *, had_arrived: bool = False) -> PayoutEnd:
    """How a payout has ended, by all its fields; UNCLEAR when they contradict each other.

    `had_arrived`: the service said so before, so that its time of arrival does not contradict a failure.
    """
    end, by_status = ending_of(payout), STATUS_ENDS.get(payout.status or "")
    is_return = end is PayoutEnd.UNCLEAR and had_arrived and by_status is PayoutEnd.FAILED
    return PayoutEnd.FAILED if is_return else end


def shows_arrival(status: str | None, end: PayoutEnd) -> bool:
    """True if a payout that is shown so has arrived, though it may have come back since."""
    return end is PayoutEnd.ARRIVED or status == PayoutStatus.REVERSED


def seconds_of(moment: object) -> float | None:
    """A time of the service in seconds since 1970; None for one that is missing, or is no time."""
    return moment.timestamp() if isinstance(moment, datetime) else None


def ended_at(payout: Payout) -> float | None:
    """The service's time of a payout's end: of the failure where it shows both; None while it shows none."""
    return seconds_of(payout.failed_at) or seconds_of(payout.completed_at)


def storable(payout: Payout) -> Payout:
    """The payout, without the character that no database can hold in its id and status."""
    if "\0" not in payout.id and "\0" not in (payout.status or ""):
        return payout
    status = payout.status and without_nul(payout.status)
    return attrs.evolve(payout, id=without_nul(payout.id), status=status)


def without_nul(text: str) -> str:
    """The text, with a mark in place of the character that no database can hold."""
    return text.replace("\0", "\ufffd")


def status_of(payout: Payout) -> str | None:
    """Read a payout's status, or derive it from its timestamps when none is shown."""
    if payout.status is not None:
        return payout.status
    by_time = {PayoutEnd.ARRIVED: PayoutStatus.COMPLETED, PayoutEnd.FAILED: PayoutStatus.FAILED}
    return by_time.get(ending_of(payout))


def described(payout: Payout, *, had_arrived: bool = False) -> str:
    status = status_of(payout)
    if end_of(payout, had_arrived=had_arrived) is not PayoutEnd.UNCLEAR:
        return str(status)
    names = ("completed_at", "failed_at")
    times = " and ".join(name for name in names if getattr(payout, name) is not None)
    return f"{status or 'without a status'} with {times}: the service contradicts itself"


def failure_of(payout: Payout) -> str | None:
    """Give the reason why a payout has finally failed, without account data."""
    code = payout.failure.code.value if payout.failure and payout.failure.code else None
    return _plain(code) or status_of(payout)


def facts_of(payout: Payout) -> str:
    """Describe a payout in words: its id, amount and status, without account data."""
    facts = [_plain(payout.id) or "a payout"]
    facts += filter(None, [money_of(payout), _plain(payout.status)])
    return ", ".join(facts)


def money_of(payout: Payout) -> str:
    """Write the amount of a payout: `XOF 10.3`; "" where none is shown."""
    amount = payout.amount or Amount()
    return " ".join(filter(None, (_plain(amount.currency), _amount(value_of(amount)))))


def _plain(word: str | None) -> str | None:
    return word if word and _CODE.fullmatch(word) else None


def _amount(value: Decimal | str | None) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.upper() if len(value) <= _MOST_DIGITS else f"{value[:_MOST_DIGITS]}…"
    return as_text(value) if abs(value.adjusted()) <= _MOST_DIGITS else str(value)
