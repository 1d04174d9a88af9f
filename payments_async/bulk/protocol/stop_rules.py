"""Rules for a whole run: the account it may pay from, stops, completeness, exit codes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from functools import reduce
from typing import Final

import attrs

from ..._http.addresses import same_service
from .outcomes import CREATED, OPEN, UNFINISHED, Outcome
from .totals import EXACT

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


@attrs.frozen
class Totals:
    """The number of rows of each outcome, and their exact amounts per currency."""

    counts: Mapping[Outcome, int]
    sums: Mapping[tuple[Outcome, str], Decimal]

    @classmethod
    def of(cls, rows: Mapping[tuple[Outcome, str], tuple[int, Decimal]]) -> Totals:
        """Make totals from a ledger's groups: {(outcome, currency): (rows, sum)}."""
        counts: dict[Outcome, int] = {}
        for (outcome, _), (number, _sum) in rows.items():
            counts[outcome] = counts.get(outcome, 0) + number
        return cls(counts, {key: total for key, (number, total) in rows.items() if number})

    def count(self, *outcomes: Outcome) -> int:
        """Count the rows of any of these outcomes."""
        return sum(self.counts.get(outcome, 0) for outcome in outcomes)

    @property
    def in_doubt(self) -> int:
        """Rows whose outcome is unknown, those in flight included."""
        return self.count(*UNFINISHED)

    @property
    def totals(self) -> dict[str, Decimal]:
        """The sum of all rows per currency, whatever their outcome."""
        found: dict[str, Decimal] = {}
        for (_, currency), total in self.sums.items():
            found[currency] = EXACT.add(found.get(currency, Decimal(0)), total)
        return found


def balances(tally: Totals, rows: int, totals: Mapping[str, Decimal]) -> bool:
    """True if every imported row, and every amount, is in exactly one class:

    N = created + rejected + conflict + cancelled + in doubt + not started.
    """
    decided = tally.count(*CREATED, _O.REJECTED, _O.CONFLICT, _O.CANCELLED)
    return rows == decided + tally.in_doubt + tally.count(_O.NOT_STARTED) and tally.totals == dict(totals)


def is_complete(tally: Totals) -> bool:
    """True if nothing is left to do: no row not started, under way or in doubt."""
    return tally.count(*OPEN) == 0


def exit_code(tally: Totals, *, stop: Stop | None = None, extra: bool = False) -> int:
    """The exit code: 0 every row created, 1 complete otherwise, 3 rows in doubt, 75 stopped, resumable.

    2 when the service cannot be used with this key or address (`Stop.NO_ACCESS`, `Stop.NOT_THE_SERVICE`).
    `extra`: a payout stands for no row, which leaves a complete batch at 1.
    """
    if is_complete(tally):
        refused = extra or tally.count(*set(_O) - {_O.NOT_FINAL, _O.ARRIVED})
        return SOME_REFUSED if refused else ALL_CREATED
    return stopped_code(stop) if tally.count(_O.NOT_STARTED, _O.UNDER_WAY) else SOME_IN_DOUBT


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


def stop_reason(rules: StopRules, tally: Totals, *, amount: Decimal, currency: str) -> str | None:
    """Give the reason why the next row must not be taken; None when it may. Rows taken count in full."""
    taken = sum(tally.counts.values()) - tally.count(_O.NOT_STARTED, _O.CANCELLED)
    if rules.max_rows is not None and taken >= rules.max_rows:
        return f"{taken} row{' was' if taken == 1 else 's were'} taken, as many as --max-rows allows"
    taken_sums = {place: total for place, total in tally.sums.items() if _is_taken(place[0])}
    spent = [total for (_, code), total in taken_sums.items() if code == currency]
    if rules.max_amount is not None and reduce(EXACT.add, spent, amount) > rules.max_amount:
        return f"the next row would take {currency} over --max-amount"
    failed = tally.count(_O.REJECTED, _O.CONFLICT)
    decided = failed + tally.count(*CREATED)
    rate = rules.max_failure_rate
    if rate is not None and decided >= _ENOUGH and failed > decided * rate:
        return f"{failed} of {decided} rows rejected or in conflict, more than --max-failure-rate allows"
    return None


def allows_any(rules: StopRules, tally: Totals, rows: int) -> bool:
    """True if any next rows may be taken, so that they need not be read first."""
    taken = sum(tally.counts.values()) - tally.count(_O.NOT_STARTED, _O.CANCELLED)
    most = rules.max_rows is None or taken + rows <= rules.max_rows
    sums: dict[str, Decimal] = {}
    for (outcome, currency), total in tally.sums.items():
        if outcome is not _O.CANCELLED:
            sums[currency] = EXACT.add(sums.get(currency, Decimal(0)), total)
    affordable = rules.max_amount is None or all(total <= rules.max_amount for total in sums.values())
    rest = StopRules(max_failure_rate=rules.max_failure_rate)
    return most and affordable and stop_reason(rest, tally, amount=Decimal(0), currency="") is None


def _is_taken(outcome: Outcome) -> bool:
    return outcome not in (_O.NOT_STARTED, _O.CANCELLED)
