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

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import partial
from math import ceil, inf
from typing import Final, Literal, NamedTuple

from .. import _assumptions
from .clocks import Clocks
from .state import Run, SumsState

LEASE: Final = 60.0  # seconds after a reservation in which attempts may begin
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
    account text PRIMARY KEY, serial bigint, now double precision, windows text,
    boot text, ticks double precision, clock double precision, wall double precision)""",
    """CREATE TABLE guard_amounts (
    account text, write text, first double precision, claim text, currency text, units bigint,
    counts_from double precision, paid smallint, PRIMARY KEY (account, write, first))""",
    "CREATE INDEX guard_amounts_counted ON guard_amounts (account, currency, counts_from, units, paid)",
)

# Hold the guard's row until the transaction ends: who comes meanwhile waits, and then sees what was reserved.
_HOLD: Final = """
SELECT serial, now, windows, boot, ticks, clock, wall FROM guards WHERE account = :account FOR UPDATE"""
_MAKE: Final = """
INSERT INTO guards VALUES (:account, :serial, :clock, '[]', :boot, :ticks, :clock, :wall)
ON CONFLICT DO NOTHING
"""
_NOTE: Final = """
UPDATE guards SET serial = :serial, now = :now, boot = :boot, ticks = :ticks, clock = :clock, wall = :wall
WHERE account = :account
"""
_TRUST: Final = "UPDATE guards SET windows = :windows WHERE account = :account"
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
    write: str  # identifies the idempotency key and body
    currency: str
    amount: Decimal
    claim: str  # tells apart the calls that reserve it


class SumFigures(NamedTuple):
    """What counts in one window."""

    currency: str
    seconds: int
    most: Decimal
    paid: Decimal
    held: Decimal  # reserved, without an outcome
    wait: float  # seconds until the window is trusted; 0.0 if it is

    @property
    def left(self) -> Decimal:
        return max(EXACT.subtract(EXACT.subtract(self.most, self.paid), self.held), Decimal(0))


class Shortage(NamedTuple):
    """Why an amount does not fit: the window, and the seconds until there may be room."""

    window: SumFigures
    wait: float


class _Seen(NamedTuple):
    """What a process saw last of a guard's sums."""

    serial: int
    now: float
    ticks: float  # when it asked for that


class _HeldSums(NamedTuple):
    """A transaction that holds the guard's row. Times are seconds of the guard's own."""

    run: Run
    """Runs a statement for the guard's account."""
    serial: int
    """How far the state has come: the number of its changes, from its first moment in milliseconds on."""
    now: float
    clocks: Clocks
    known_from: dict[tuple[str, int], float]
    """{(currency, seconds of a window): from when on it is trusted}."""

    @property
    def settled(self) -> float:
        """When an attempt that may begin from now on is carried out at the latest."""
        return self.now + LEASE + SETTLING

    def trust_from(self, known_from: Mapping[tuple[str, int], float]) -> None:
        """Change from when on windows are trusted."""
        self.known_from.update(known_from)
        self.run(_TRUST, windows=json.dumps([(*window, at) for window, at in self.known_from.items()]))

    def used(self, currency: str, seconds: int) -> tuple[int, int]:
        """What was paid and what is held in a window."""
        paid, held = self.run(_USED, currency=currency, after=self.now - seconds).fetchone()
        return int(paid), int(held)

    def figures(self, currency: str, seconds: int, most: Decimal) -> SumFigures:
        """What counts in a window."""
        paid, held = map(amount_of, self.used(currency, seconds))
        wait = max(self.known_from[currency, seconds] - self.now, 0.0)
        return SumFigures(currency, seconds, most, paid, held, wait)

    def shortage(self, currency: str, seconds: int, most: Decimal, amount: Decimal) -> Shortage | None:
        """Why a window has no room for an amount; None if it has. One whose sum is not known yet has none."""
        missing = sum(self.used(currency, seconds)) + units_of(amount) - units_of(most)
        if missing <= 0 and self.known_from[currency, seconds] <= self.now:
            return None
        window = self.figures(currency, seconds, most)
        if window.wait:
            return Shortage(window, window.wait)
        found = self.run(_ROOM, currency=currency, after=self.now - seconds, missing=missing).fetchone()
        # what is held may be given back at any time
        return Shortage(window, 1.0 if found is None else max(found[0] + seconds - self.now, 0.0))


class GuardSums:
    """The sums of one guard in a state. Its methods wait for the state, and raise as `SumsState` does."""

    def __init__(self, state: SumsState, account: str) -> None:
        """`account`: whose sums they are."""
        self.state = state
        self.account = account
        self.limits: Limits = {}
        self.seen: _Seen | None = None

    def reserve(self, amount: WriteAmount) -> Shortage | None:
        """Reserve an amount, or renew its reservation. Returns why it does not fit.

        A write that counts already, and that its key protects, takes nothing more.
        """
        write, currency, value, claim = amount
        windows = self.limits[currency]
        protects = _assumptions.KEY_TRUSTED_FOR
        with self._held() as held:
            kept = max(protects, *(length for _, length in held.known_from))
            held.run(_FORGET, currency=currency, before=held.now - kept)
            first, counts_from = held.run(_OF_WRITE, write=write).fetchone() or (-inf, -inf)
            # in the shortest window it counts, and so in all of them
            if first > held.now - protects and counts_from > held.now - windows[0][0]:
                held.run(_RENEW, write=write, first=first, claim=claim, settled=held.settled)
                return None
            for seconds, most in windows:
                if (shortage := held.shortage(currency, seconds, most, value)) is not None:
                    return shortage
            new = {"currency": currency, "units": units_of(value), "now": held.now, "settled": held.settled}
            held.run(_RESERVE, write=write, claim=claim, **new)
        return None

    def settle(self, amount: WriteAmount, outcome: Outcome) -> None:
        """Note how a call ended. A refusal frees an amount only for the call that alone has reserved it."""
        with self._held() as held:
            held.run(_SETTLE[outcome], write=amount.write, claim=amount.claim, now=held.now)

    def begin(self) -> None:
        """Trust all windows from now on, whatever was paid in them before the state knew them."""
        with self._held() as held:
            held.trust_from({window: min(at, held.now) for window, at in held.known_from.items()})

    def figures(self) -> list[SumFigures]:
        """What the state has of each sum. Nothing is changed."""
        with self._held(keeps=False) as held:
            return [
                held.figures(currency, seconds, most)
                for currency, windows in self.limits.items()
                for seconds, most in windows
            ]

    @contextmanager
    def _held(self, *, keeps: bool = True) -> Iterator[_HeldSums]:
        """Context of a transaction that holds the guard's row, and notes its time and number last."""
        with self.state.transaction(keeps=keeps) as run:
            held = self._hold(partial(run, account=self.account))
            yield held
            held.run(_NOTE, serial=held.serial, now=held.now, **held.clocks._asdict())
        if keeps:  # now that it is committed: a state behind this was put back
            self.seen = _Seen(held.serial, held.now, held.clocks.ticks)
            self.state.note(self.account, held.serial)

    def _hold(self, run: Run) -> _HeldSums:
        seen = self.seen
        reached = max(self.state.reached(self.account), 0 if seen is None else seen.serial)
        row = run(_HOLD).fetchone()
        clocks = self.state.clocks()  # after the wait for the row
        if row is None:
            run(_MAKE, serial=max(int(clocks.wall * 1_000), reached + 1), **clocks._asdict())
            row = run(_HOLD).fetchone()
        serial, before, windows, *then = row
        now = before + clocks.since(Clocks(*then))
        if seen is not None:  # what has passed here at most: no clock can add to it
            now = max(before, min(now, seen.now + clocks.ticks - seen.ticks))
        known_from = {(currency, seconds): at for currency, seconds, at in json.loads(windows)}
        held = _HeldSums(run, max(serial, reached) + 1, now, clocks, known_from)
        unknown = [(currency, seconds) for currency, sums in self.limits.items() for seconds, _ in sums]
        if serial >= reached:
            unknown = [window for window in unknown if window not in known_from]
        else:  # a copy was put back: what it lacks has left each window once that has passed since then
            unknown += known_from
        if unknown:
            held.trust_from({window: held.settled + window[1] for window in unknown})
        return held


def units_of(amount: Decimal) -> int:
    """An amount as a state counts it."""
    return ceil(EXACT.scaleb(amount, DIGITS))


def amount_of(units: int) -> Decimal:
    """What a state counts as an amount, exact and without zeros at its end."""
    whole, part = divmod(units, 10**DIGITS)
    return Decimal(f"{whole}.{part:0{DIGITS}d}".rstrip("0").rstrip("."))
