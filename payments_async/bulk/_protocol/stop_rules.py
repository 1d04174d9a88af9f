"""Rules for a whole run: the account it may pay from, stops, completeness, exit codes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Final

import attrs

from ..._http.addresses import same_service
from .outcomes import CREATED, EXACT, OPEN, Outcome, RowTotals, by_currency, count_rows, payable

_O = Outcome
ALL_CREATED, SOME_REFUSED, NO_ACCESS, SOME_IN_DOUBT, STOPPED = 0, 1, 2, 3, 75
"""Exit codes."""


class Stop(StrEnum):
    """The change that is needed before a run that ended early can be run again."""

    TEMPORARY = "temporary"
    """No change: run it again."""
    RULE = "rule"
    """The operator's own rule ended the run, and would again."""
    NO_ACCESS = "no access"
    """The service refused the key: every run would end like this one."""
    NOT_THE_SERVICE = "not the service"
    """Something else answered at its address: TLS does not prove its name, or a redirect or 404 came."""


def balances(totals: RowTotals, rows: int, sums: Mapping[str, Decimal]) -> bool:
    """True if every imported row, and every amount, is in exactly one class:

    N = created + rejected + conflict + cancelled + in doubt + not started.
    """
    return rows == count_rows(totals, *_O) and by_currency(totals) == dict(sums)


def is_complete(totals: RowTotals) -> bool:
    """True if nothing is left to do: no row not started, under way or in doubt."""
    return count_rows(totals, *OPEN) == 0


def exit_code(totals: RowTotals, *, stop: Stop | None = None, extra: bool = False) -> int:
    """The exit code: 0 every row created, 1 complete otherwise, 3 rows in doubt, 75 stopped, resumable.

    2 when the service cannot be used with this key or address (`Stop.NO_ACCESS`, `Stop.NOT_THE_SERVICE`).
    `extra`: a payout stands for no row, which leaves a complete batch at 1.
    """
    if is_complete(totals):
        refused = extra or count_rows(totals, *set(_O) - {_O.NOT_FINAL, _O.ARRIVED})
        return SOME_REFUSED if refused else ALL_CREATED
    return stopped_code(stop) if count_rows(totals, _O.NOT_STARTED, _O.UNDER_WAY) else SOME_IN_DOUBT


def stopped_code(stop: Stop | None) -> int:
    """The exit code of work that ended early."""
    return NO_ACCESS if stop in (Stop.NO_ACCESS, Stop.NOT_THE_SERVICE) else STOPPED


def resumable(stop: Stop | None) -> str:
    """Tell when work that ended early can be run again: `now`, or `after_change` of its cause."""
    return "now" if stop in (None, Stop.TEMPORARY) else "after_change"


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
