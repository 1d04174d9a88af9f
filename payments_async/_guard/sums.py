"""Sums of money over sliding windows: a row for each amount, and transactions that hold their guard's row.

An amount counts from before its first attempt until `counts_from` is a window's length ago. For one that was
paid that moment is when its answer came. For one without outcome it is the last at which it may still be
carried out: `SETTLING` seconds after the last at which an attempt may begin.

So no window holds more than its sum, wherever it begins. Of all payouts that the service made in it, take the
one that was reserved last: in its transaction each of the others was counted.

A window is trusted from `known_from` on. One that is new, or whose state was lost or put back, is trusted
once it has passed since the last payout that may have been forgotten, or when an operator says so (`begin`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final, Literal, NamedTuple

from .. import _assumptions
from .clocks import Clocks
from .state import Place, Run, SumsState

LEASE: Final = 60.0
"""Seconds after a reservation in which attempts may begin."""
SETTLING: Final = 900.0
"""Seconds after the lease in which the last attempt may still be carried out."""
DIGITS: Final = 4
"""Decimals of an amount that are counted, as many as any currency has; what is beyond them is rounded up."""
EXACT: Final = Context(prec=200, traps=[Inexact, InvalidOperation])
"""Reckons without rounding, whatever the program's own context is."""

Limits = Mapping[str, Sequence[tuple[int, Decimal]]]
"""{currency: (seconds of a window, most in it), …}, the shortest first."""
Outcome = Literal["paid", "unpaid", "never"]
"""It was paid; this call paid nothing; no call ever did."""
TABLES: Final = (
    """CREATE TABLE guards (
    account text PRIMARY KEY, born double precision, serial bigint, now double precision,
    boot text, ticks double precision, clock double precision, wall double precision)""",
    """CREATE TABLE guard_windows (
    account text, currency text, seconds bigint, known_from double precision,
    PRIMARY KEY (account, currency, seconds))""",
    """CREATE TABLE guard_amounts (
    account text, write text, first double precision, claim text, currency text, units bigint,
    counts_from double precision, paid smallint, PRIMARY KEY (account, write, first))""",
    "CREATE INDEX guard_amounts_counted ON guard_amounts (account, currency, counts_from, units, paid)",
)

# Hold the guard's row until the transaction ends: who comes meanwhile waits, and then sees what was reserved.
_HOLD: Final = (
    "SELECT born, serial, now, boot, ticks, clock, wall FROM guards WHERE account = :account FOR UPDATE"
)
_MAKE: Final = """
INSERT INTO guards VALUES (:account, :born, 0, :clock, :boot, :ticks, :clock, :wall) ON CONFLICT DO NOTHING
"""
_NOTE: Final = """
UPDATE guards SET born = :born, serial = :serial, now = :now, boot = :boot, ticks = :ticks, clock = :clock,
    wall = :wall
WHERE account = :account
"""
_WINDOWS: Final = "SELECT currency, seconds, known_from FROM guard_windows WHERE account = :account"
_NEW_WINDOW: Final = "INSERT INTO guard_windows VALUES (:account, :currency, :seconds, :known_from)"
_TRUST: Final = "UPDATE guard_windows SET known_from = :now WHERE account = :account AND known_from > :now"
# A copy was put back: what it lacks has left each window once that has passed since the last of it.
_DISTRUST: Final = "UPDATE guard_windows SET known_from = :settled + seconds WHERE account = :account"
# What counts in no window any more; a row is kept while its idempotency key protects the payout.
_FORGET: Final = """
DELETE FROM guard_amounts WHERE account = :account AND currency = :currency AND counts_from <= :before
"""
# What one write has reserved last.
_OF_WRITE: Final = """
SELECT first, counts_from FROM guard_amounts WHERE account = :account AND write = :write
ORDER BY first DESC LIMIT 1
"""
# A refusal to one of two who have reserved a write proves nothing: the claim of both is nobody's.
_RENEW: Final = """
UPDATE guard_amounts SET claim = CASE WHEN claim = :claim THEN claim ELSE '' END,
    counts_from = CASE WHEN paid = 1 OR counts_from > :settled THEN counts_from ELSE :settled END
WHERE account = :account AND write = :write AND first = :first
"""
_RESERVE: Final = """
INSERT INTO guard_amounts VALUES (:account, :write, :now, :claim, :currency, :units, :settled, 0)
"""
# What counts in one window: what was paid, and what has no outcome.
_USED: Final = """
SELECT coalesce(sum(units * paid), 0), coalesce(sum(units * (1 - paid)), 0) FROM guard_amounts
WHERE account = :account AND currency = :currency AND counts_from > :after
"""
# From when on so much less of what was paid counts.
_ROOM: Final = """
SELECT counts_from FROM (
    SELECT counts_from, sum(units) OVER (ORDER BY counts_from) AS freed FROM guard_amounts
    WHERE account = :account AND currency = :currency AND counts_from > :after AND paid = 1
) AS paid WHERE freed >= :missing ORDER BY counts_from LIMIT 1
"""
_PAID: Final = """
UPDATE guard_amounts SET paid = 1, counts_from = :now
WHERE account = :account AND write = :write AND paid = 0
"""
_NEVER: Final = "DELETE FROM guard_amounts WHERE account = :account AND write = :write AND paid = 0"
_SETTLE: Final = {"paid": _PAID, "never": _NEVER, "unpaid": f"{_NEVER} AND claim = :claim"}


class WriteAmount(NamedTuple):
    """One amount to be reserved."""

    write: str
    """Identifies the idempotency key and body."""
    currency: str
    amount: Decimal
    claim: str
    """Tells apart the calls that reserve it."""


class Shortage(NamedTuple):
    """Why an amount does not fit."""

    currency: str
    window: int
    limit: Decimal
    used: Decimal
    """What counts in the window."""
    wait: float
    """Seconds until there may be room."""
    is_known: bool
    """False if the state does not know all that was paid in the window."""


class SumFigures(NamedTuple):
    """What a state has of one sum."""

    currency: str
    seconds: int
    most: Decimal
    paid: Decimal
    held: Decimal
    """Reserved, without an outcome."""
    wait: float
    """Seconds until the window is trusted; 0.0 if it is."""


class _Seen(NamedTuple):
    """What a process saw last of a guard's sums."""

    place: Place
    now: float
    ticks: float
    """When it asked for that."""


class GuardSums:
    """The sums of one guard in a state. Its methods wait for the state, and raise as `SumsState` does."""

    def __init__(self, state: SumsState, account: str) -> None:
        """`account`: whose sums they are."""
        self.state = state
        self.account = account
        self.limits: Limits = {}
        self.seen: _Seen | None = None

    def reserve(self, amount: WriteAmount) -> Shortage | None:
        """Reserve an amount, or renew its reservation. Returns why it does not fit."""
        with self._transaction() as sums:
            return sums.reserve(amount)

    def settle(self, amount: WriteAmount, outcome: Outcome) -> None:
        """Note how a call ended. A refusal frees an amount only for the call that alone has reserved it."""
        with self._transaction() as sums:
            sums.settle(amount, outcome)

    def begin(self) -> None:
        """Trust all windows from now on, whatever was paid in them before the state knew them."""
        with self._transaction() as sums:
            sums.trust()

    def figures(self) -> list[SumFigures]:
        """What was paid and is held in each window. It changes nothing."""
        with self._transaction(keeps=False) as sums:
            return sums.figures()

    @contextmanager
    def _transaction(self, *, keeps: bool = True) -> Iterator[_HeldSums]:
        with self.state.transaction(keeps=keeps) as run:
            held = _HeldSums(self, run)
            yield held
            place = held.close()
        if keeps:  # now that it is committed: a state behind this was put back
            self.seen = _Seen(place, held.now, held.clocks.ticks)
            self.state.note(self.account, place)


class _HeldSums:
    """The sums of one guard within a transaction that holds its row. Times are seconds of the guard's own."""

    def __init__(self, sums: GuardSums, run: Run) -> None:
        self._do, self._account, self._limits = run, sums.account, sums.limits
        seen, noted = sums.seen, sums.state.reached(sums.account)
        known = [place for place in (noted, seen and seen.place) if place is not None]
        reached = max(known, default=(0.0, 0))
        row = self._run(_HOLD).fetchone()
        self.clocks: Clocks = sums.state.clocks()  # after the wait for the row
        if row is None:
            self._run(_MAKE, born=max(self.clocks.wall, reached[0] + 1.0), **self.clocks._asdict())
            row = self._run(_HOLD).fetchone()
        born, serial, before, *then = row
        self.now: float = before + self.clocks.since(Clocks(*then))
        if seen is not None and seen.place[0] == born:  # what has passed here at most: no clock can add to it
            self.now = max(before, min(self.now, seen.now + self.clocks.ticks - seen.ticks))
        self._settled = self.now + LEASE + SETTLING
        self._place = max((born, serial), reached)
        if (born, serial) < reached:
            self._run(_DISTRUST, settled=self._settled)
        self._known_from = {(currency, seconds): at for currency, seconds, at in self._run(_WINDOWS)}
        for currency, windows in self._limits.items():
            for seconds, _ in windows:
                if (currency, seconds) not in self._known_from:
                    self._known_from[currency, seconds] = known_from = self._settled + seconds
                    self._run(_NEW_WINDOW, currency=currency, seconds=seconds, known_from=known_from)

    def _run(self, statement: str, **values: Any) -> Any:
        return self._do(statement, {"account": self._account, **values})

    def trust(self) -> None:
        """Trust all windows."""
        self._run(_TRUST, now=self.now)

    def reserve(self, amount: WriteAmount) -> Shortage | None:
        """Reserve an amount. A write that counts already, and that its key protects, takes nothing more."""
        write, currency, value, claim = amount
        kept = max(_assumptions.KEY_TRUSTED_FOR, *(length for _, length in self._known_from))
        self._run(_FORGET, currency=currency, before=self.now - kept)
        windows = self._limits[currency]
        known = self._run(_OF_WRITE, write=write).fetchone()
        if (
            known is not None
            and known[0] > self.now - _assumptions.KEY_TRUSTED_FOR
            and known[1] > self.now - windows[0][0]
        ):
            self._run(_RENEW, write=write, first=known[0], claim=claim, settled=self._settled)
            return None
        for seconds, most in windows:
            if (shortage := self._shortage(currency, seconds, most, value)) is not None:
                return shortage
        new = {"currency": currency, "units": units_of(value), "now": self.now, "settled": self._settled}
        self._run(_RESERVE, write=write, claim=claim, **new)
        return None

    def _shortage(self, currency: str, seconds: int, most: Decimal, value: Decimal) -> Shortage | None:
        used = sum(self._used(currency, seconds))
        missing = used + units_of(value) - units_of(most)
        wait = self._known_from[currency, seconds] - self.now
        is_known = wait <= 0
        if is_known and missing <= 0:
            return None
        if is_known:
            facts = {"currency": currency, "after": self.now - seconds, "missing": missing}
            found = self._run(_ROOM, **facts).fetchone()
            # what is held may be given back at any time
            wait = 1.0 if found is None else max(found[0] + seconds - self.now, 0.0)
        return Shortage(currency, seconds, most, amount_of(used), wait, is_known)

    def _used(self, currency: str, seconds: int) -> tuple[int, int]:
        paid, held = self._run(_USED, currency=currency, after=self.now - seconds).fetchone()
        return int(paid), int(held)

    def settle(self, amount: WriteAmount, outcome: Outcome) -> None:
        """Note how a call ended."""
        self._run(_SETTLE[outcome], write=amount.write, claim=amount.claim, now=self.now)

    def figures(self) -> list[SumFigures]:
        """What was paid and is held in each window."""
        found = []
        for currency, windows in self._limits.items():
            for seconds, most in windows:
                paid, held = map(amount_of, self._used(currency, seconds))
                wait = max(self._known_from[currency, seconds] - self.now, 0.0)
                found.append(SumFigures(currency, seconds, most, paid, held, wait))
        return found

    def close(self) -> Place:
        """Note the change, last of all. Returns how far the state has come."""
        born, serial = self._place[0], self._place[1] + 1
        self._run(_NOTE, born=born, serial=serial, now=self.now, **self.clocks._asdict())
        return born, serial


def units_of(amount: Decimal) -> int:
    """An amount as a state counts it."""
    return math.ceil(EXACT.scaleb(amount, DIGITS))


def amount_of(units: int) -> Decimal:
    """What a state counts as an amount, exact and without zeros at its end."""
    whole, part = divmod(units, 10**DIGITS)
    return Decimal(f"{whole}.{part:0{DIGITS}d}".rstrip("0").rstrip("."))
