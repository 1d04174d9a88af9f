"""Rules for a whole run: the account that it may pay from, and the limits that stop it. Pure."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Final

import attrs

from ..._http.addresses import same_service
from .outcomes import CREATED, EXACT, Outcome, RowTotals, by_currency, count_rows, payable

_O = Outcome


@attrs.frozen
class Account:
    """The account that pays a batch."""

    environment: str
    """`live` or `sandbox`."""
    base_url: str
    key: str
    """A fingerprint of the API key, never the key."""


class AccountMismatch(StrEnum):
    """The reason why a ledger must not be used with an account."""

    ENVIRONMENT = "the ledger belongs to the other environment"
    BASE_URL = "the ledger belongs to another base URL"
    PROJECT = "with this key none of the ledger's payouts is visible: it may belong to another project"


def account_mismatch(
    ledger: Account, here: Account, *, untouched: bool, visible: bool
) -> AccountMismatch | None:
    """Give the reason why a ledger's batch must not be paid from `here`, or None.

    With another key than before, the project is proven by one of the ledger's payouts (`visible`), unless
    nothing was ever sent (`untouched`).
    """
    if ledger.environment != here.environment:
        return AccountMismatch.ENVIRONMENT
    if not same_service(ledger.base_url, here.base_url):
        return AccountMismatch.BASE_URL
    return None if ledger.key == here.key or visible or untouched else AccountMismatch.PROJECT


@attrs.frozen
class StopRules:
    """The operator's limits for taking new rows. None means no limit."""

    max_amount: Decimal | None = None
    """The largest sum of each currency, in major units."""
    max_rows: int | None = None
    max_failure_rate: float | None = None
    """The largest share of failures among decided rows, 0 to 1; applied from twenty rows on."""


_ENOUGH: Final = 20


_TAKEN: Final = tuple(outcome for outcome in _O if outcome not in (_O.NOT_STARTED, _O.CANCELLED))


def stop_reason(rules: StopRules, totals: RowTotals, *, amount: Decimal, currency: str) -> str | None:
    """Give the reason why the next row must not be taken; None when it may. Rows taken count in full."""
    taken = count_rows(totals, *_TAKEN)
    if rules.max_rows is not None and taken >= rules.max_rows:
        return f"{taken} row{' was' if taken == 1 else 's were'} taken, as many as --max-rows allows"
    spent = by_currency({place: total for place, total in totals.items() if place[0] in _TAKEN})
    if rules.max_amount is not None and EXACT.add(spent.get(currency, Decimal(0)), amount) > rules.max_amount:
        return f"the next row would take {currency} over --max-amount"
    failed = count_rows(totals, _O.REJECTED, _O.CONFLICT)
    decided = failed + count_rows(totals, *CREATED)
    rate = rules.max_failure_rate
    if rate is not None and decided >= _ENOUGH and failed > decided * rate:
        return f"{failed} of {decided} rows rejected or in conflict, more than --max-failure-rate allows"
    return None


def allows_any(rules: StopRules, totals: RowTotals, rows: int) -> bool:
    """True if any next rows may be taken, so that they need not be read first."""
    most = rules.max_rows is None or count_rows(totals, *_TAKEN) + rows <= rules.max_rows
    sums = payable(totals).values()
    affordable = rules.max_amount is None or all(total <= rules.max_amount for total in sums)
    rest = StopRules(max_failure_rate=rules.max_failure_rate)
    return most and affordable and stop_reason(rest, totals, amount=Decimal(0), currency="") is None
