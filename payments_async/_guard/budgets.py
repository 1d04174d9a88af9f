"""Sums of money over sliding windows: the rule, as a state machine without a clock or I/O.

An amount is *held* from its reservation until its outcome is known. Attempts may begin for `LEASE` seconds
after the reservation or its last renewal. An amount that was paid counts in each window of its currency for
the window's length after its answer. One without outcome counts as paid `SETTLING` seconds after its lease.

So no window holds more than its sum, wherever it begins. Of all payouts that the service made in it, take the
one that was reserved last: at that moment each of the others was held, or answered within the window.

A window is trusted from `known_from` on. One that the state has never counted, because it is new, was lost or
was put back, is trusted once it has passed since the last payout that may have been forgotten, or at once
when an operator says so (`begin`).
"""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import reduce
from typing import Any, Final, Literal, NamedTuple

LEASE: Final = 60.0
"""Seconds after a reservation in which attempts may begin."""
SETTLING: Final = 900.0
"""Seconds after the lease from which an amount without an outcome counts as paid."""
STEPS: Final = 200
"""Parts of a window: an amount counts longer than it must by at most one."""
HOST_CLOCKS: Final = 300.0
"""Seconds by which the clocks of two hosts may differ."""
CLOCK_STEP: Final = 2.5
"""Seconds by which the store's clock and a process's may differ from one exchange to the next."""
MOST_REFUSALS: Final = 100
"""Refusals that are kept for `payments guard show`."""

_NOTHING: Final = Decimal(0)
EXACT: Final = Context(prec=200, traps=[Inexact, InvalidOperation])
"""Adds amounts without rounding, whatever the program's own context is."""

Limits = Mapping[str, Sequence[tuple[int, Decimal]]]
"""{currency: (seconds of a window, most in it), …}."""
Outcome = Literal["paid", "unpaid", "never"]
"""It was paid; this attempt paid nothing; no attempt ever did."""


class WriteAmount(NamedTuple):
    """One amount to be reserved."""

    name: str
    """Identifies the idempotency key and body."""
    currency: str
    amount: Decimal
    claim: int = 0
    """Tells apart those of one process who reserve it."""


class Shortage(NamedTuple):
    """Why an amount does not fit."""

    currency: str
    window: int
    limit: Decimal
    used: Decimal
    """Paid within the window, and held."""
    wait: float
    """Seconds until there may be room."""
    is_known: bool
    """False if the state does not know what was paid in the window."""


class HeldAmount:
    """An amount without an outcome."""

    __slots__ = ("amount", "claimant", "currency", "until")

    def __init__(self, currency: str, amount: Decimal, until: float, claimant: str | None) -> None:
        self.currency: str = currency
        self.amount: Decimal = amount
        self.until: float = until
        """When its lease ends."""
        self.claimant: str | None = claimant
        """Who has reserved it; None if several have: a refusal to one proves nothing then."""


class Window:
    """What was paid in one currency within one window."""

    __slots__ = ("_per_second", "known_from", "paid", "parts", "seconds")

    def __init__(self, seconds: int, known_from: float, parts: Iterable[tuple[int, Decimal]] = ()) -> None:
        self.seconds: int = seconds
        self.known_from: float = known_from
        self._per_second = STEPS / seconds
        self.parts: deque[list[Any]] = deque(map(list, parts))
        """[number, amount]: it counts until the part of this number ends. The first ends first."""
        self.paid: Decimal = reduce(EXACT.add, (amount for _, amount in self.parts), _NOTHING)

    def add(self, amount: Decimal, answered: float) -> None:
        """Count an amount for the window's length after its answer, and to the end of that part."""
        self.paid = EXACT.add(self.paid, amount)
        number, parts = int((answered + self.seconds) * self._per_second) + 1, self.parts
        if parts and parts[-1][0] >= number:
            parts[-1][1] = EXACT.add(parts[-1][1], amount)
        else:
            parts.append([number, amount])

    def forget(self, now: float) -> None:
        """Leave out what counts no longer."""
        present = int(now * self._per_second)
        while self.parts and self.parts[0][0] <= present:
            self.paid = EXACT.subtract(self.paid, self.parts.popleft()[1])

    def room_after(self, missing: Decimal, now: float) -> float:
        """Seconds until so much counts no longer; a second for what is held."""
        for number, amount in self.parts:
            missing = EXACT.subtract(missing, amount)
            if missing <= 0:
                return max(float(number / self._per_second) - now, 0.0)
        return 1.0

    def shift(self, seconds: float) -> None:
        """Follow a clock that was set."""
        self.known_from += seconds
        for part in self.parts:
            part[0] += math.ceil(seconds * self._per_second)

    def shorter(self, seconds: int, now: float) -> Window:
        """The window of fewer seconds, which ends at the same time."""
        counted_from = max(now, self.known_from - self.seconds)
        window = Window(seconds, min(self.known_from, counted_from + seconds))
        for number, amount in self.parts:
            window.add(amount, number / self._per_second - self.seconds)
        window.forget(now)
        return window


class Budgets:
    """The state of all sums of one guard. Times are seconds on one clock."""

    def __init__(self, now: float, born: float = 0.0) -> None:
        self.born: float = max(born, now)
        """Tells apart states of which one replaced the other; the later one is greater."""
        self.serial: int = 0
        """Counts the changes."""
        self.ahead: float | None = None
        """Seconds by which the store's clock was ahead of that of the process that came last."""
        self.at: float = now
        self.held: dict[str, HeldAmount] = {}
        """The lease that ends first stands first."""
        self.sums: dict[str, Decimal] = {}
        """{currency: held}."""
        self.windows: dict[str, dict[int, Window]] = {}
        """{currency: {seconds: window}}."""

    def reserve(
        self, amounts: Iterable[WriteAmount], limits: Limits, now: float, worker: str = ""
    ) -> tuple[int, Shortage | None]:
        """Reserve amounts in order for a process. Returns how many, and why the next does not fit.

        An amount that is held already is renewed.
        """
        self.pass_time(now)
        count = 0
        for amount in amounts:
            name, currency, value, claim = amount
            claimant = f"{worker} {claim}"
            known = self.held.pop(name, None)
            if known is None:
                held = self.sums.get(currency, _NOTHING)
                used = EXACT.add(value, held)
                for seconds, most in limits.get(currency, ()):
                    window = self.window(currency, seconds, now)
                    if window.known_from > now or EXACT.add(used, window.paid) > most:
                        return count, _shortage(amount, window, most, held, now)
                known = HeldAmount(currency, value, now + LEASE, claimant)
                self.sums[currency] = used
            else:
                known.until = now + LEASE
                known.claimant = claimant if known.claimant == claimant else None
            self.held[name] = known
            count += 1
        return count, None

    def settle(self, name: str, outcome: Outcome, now: float, worker: str = "", claim: int = 0) -> None:
        """Note an outcome. A refusal frees an amount only for the one who alone has reserved it."""
        held = self.held.get(name)
        if held is None or (outcome == "unpaid" and held.claimant != f"{worker} {claim}"):
            return
        self._let_go(name, held)
        if outcome == "paid":
            for window in self.windows[held.currency].values():
                window.add(held.amount, now)

    def pass_time(self, now: float) -> None:
        """Count as paid what has had no outcome for long."""
        self.at = now
        while self.held:
            name, held = next(iter(self.held.items()))
            if held.until + SETTLING > now:
                return
            self._let_go(name, held)
            for window in self.windows[held.currency].values():
                window.add(held.amount, held.until + SETTLING)

    def begin(self, limits: Limits, now: float) -> None:
        """Trust all windows from now on, whatever was paid in them before the state knew them."""
        for currency, sums in limits.items():
            for seconds, _ in sums:
                self.window(currency, seconds, now).known_from = now

    def used(self, currency: str, seconds: int, now: float) -> tuple[Decimal, Decimal, float]:
        """Of one window: what was paid, what is held, and from when on it is known."""
        window = self.window(currency, seconds, now)
        return window.paid, self.sums.get(currency, _NOTHING), window.known_from

    def shift(self, seconds: float) -> None:
        """Follow a clock that was set: all times move with it."""
        self.at += seconds
        for held in self.held.values():
            held.until += seconds
        for windows in self.windows.values():
            for window in windows.values():
                window.shift(seconds)

    def window(self, currency: str, seconds: int, now: float) -> Window:
        """The window, without what counts no longer. A new one is derived from a longer one."""
        windows = self.windows.get(currency)
        if windows is None:
            windows = self.windows[currency] = {}
        window = windows.get(seconds)
        if window is None:
            window = windows[seconds] = _new_window(windows, seconds, now)
        window.forget(now)
        return window

    def _let_go(self, name: str, held: HeldAmount) -> None:
        del self.held[name]
        self.sums[held.currency] = EXACT.subtract(self.sums[held.currency], held.amount)


def _shortage(amount: WriteAmount, window: Window, most: Decimal, held: Decimal, now: float) -> Shortage:
    used = EXACT.add(window.paid, held)
    is_known = window.known_from <= now
    missing = EXACT.subtract(EXACT.add(used, amount.amount), most)
    wait = window.room_after(missing, now) if is_known else window.known_from - now
    return Shortage(amount.currency, window.seconds, most, used, wait, is_known)


def _new_window(windows: Mapping[int, Window], seconds: int, now: float) -> Window:
    """A window that the state has not counted yet. A longer one has all that it needs."""
    longer = [each for each in windows.values() if each.seconds > seconds]
    if not longer:
        # what a lost state had reserved may still be carried out
        return Window(seconds, now + LEASE + SETTLING + seconds)
    return min(longer, key=lambda each: each.seconds).shorter(seconds, now)


# The state as JSON, and what processes ask of it


class BudgetRule:
    """The rule of a row in a store (`compare_and_set.RowRule`)."""

    def read(self, values: Any) -> Budgets | None:
        """The state of a row; None for one that is new, or was lost."""
        if values is None:
            return None
        budgets = Budgets(values["at"])
        budgets.born, budgets.serial, budgets.ahead = values["born"], values["serial"], values["ahead"]
        for name, (currency, amount, until, claimant) in values["held"].items():
            held = budgets.held[name] = HeldAmount(currency, Decimal(amount), until, claimant)
            budgets.sums[currency] = EXACT.add(budgets.sums.get(currency, _NOTHING), held.amount)
        for currency, seconds, known_from, parts in values["windows"]:
            amounts = [(number, Decimal(amount)) for number, amount in parts]
            budgets.windows.setdefault(currency, {})[seconds] = Window(seconds, known_from, amounts)
        return budgets

    def write(self, state: Budgets) -> Any:
        """The state as JSON."""
        held = {
            name: (each.currency, str(each.amount), each.until, each.claimant)
            for name, each in state.held.items()
        }
        windows = [
            (currency, seconds, each.known_from, [(number, str(amount)) for number, amount in each.parts])
            for currency, windows in state.windows.items()
            for seconds, each in windows.items()
        ]
        return {
            "born": state.born,
            "serial": state.serial,
            "ahead": state.ahead,
            "at": state.at,
            "held": held,
            "windows": windows,
        }

    def change(
        self, state: Budgets | None, kind: str, values: dict[str, Any], now: float, waited: float
    ) -> tuple[Budgets, Any]:
        """Settle, then reserve; `begin` trusts the windows first. The answer has JSON values."""
        seen = copy.deepcopy(state) if kind == "show" else None  # who only looks changes nothing
        ahead = None if values["wall"] is None else now - values["wall"] - waited
        if state and (reached := values["reached"]) and (state.born, state.serial) < tuple(reached):
            state = Budgets(now, reached[0] + 1.0)  # the file was put back: what was paid since is not known
        state = _current(state, values["last"], now, waited, ahead)
        now = max(now, state.at)
        state.serial += 1
        state.pass_time(now)
        limits = limits_of(values["sums"])
        if kind == "begin":
            state.begin(limits, now)
        for name, outcome, *claim in values["outcomes"]:
            state.settle(name, outcome, now, values["worker"], *claim)
        granted = []
        for group in values["groups"]:
            amounts = [
                WriteAmount(name, currency, Decimal(amount), *claim)
                for name, currency, amount, *claim in group
            ]
            count, shortage = state.reserve(amounts, limits, now, values["worker"])
            granted.append((count, shortage and [*map(_plain, shortage)]))
        used = [
            [*map(_plain, state.used(each[0], each[1], now))] for each in values["sums"] if kind == "show"
        ]
        return seen or state, {"last": (state.born, state.serial, now), "granted": granted, "used": used}


def _current(
    state: Budgets | None, last: Sequence[float] | None, now: float, waited: float, ahead: float | None
) -> Budgets:
    """The state that a process may go on with. `last`: what it saw last, and the seconds since then.

    A row that was lost or put back begins anew. When the store's clock was set, all times move with it. A
    process that comes first after that knows it by its own clock: `ahead`, seconds.
    """
    if last is None:
        state = state or Budgets(now)
        before = state.ahead
        if ahead is not None and before is not None and ahead - before > HOST_CLOCKS:
            state.shift(ahead - before)
            state.born += 1.0
        state.ahead = ahead
        return state
    born, serial, at, ago = last
    if state is None or (state.born, state.serial) < (born, serial):
        return Budgets(now, born + 1.0)
    moved = now - at - ago - waited
    if state.born == born and abs(moved) > CLOCK_STEP:
        state.shift(moved)
        state.born += 1.0
    return state


def limits_of(sums: Iterable[Sequence[Any]]) -> dict[str, list[tuple[int, Decimal]]]:
    """{currency: windows}, of (currency, seconds, most)."""
    limits: dict[str, list[tuple[int, Decimal]]] = {}
    for currency, seconds, most in sums:
        limits.setdefault(currency, []).append((seconds, Decimal(most)))
    return limits


class RefusalRule:
    """The rule of a row with the last refusals."""

    def read(self, values: Any) -> list[Any]:
        """The refusals; none in a row that is new."""
        return values or []

    def write(self, state: list[Any]) -> Any:
        """The refusals as JSON."""
        return state

    def change(
        self, state: list[Any], kind: str, values: dict[str, Any], now: float, waited: float
    ) -> tuple[list[Any], Any]:
        """Add refusals; the answer has the last ones."""
        kept = [*state, *values["refusals"]][-MOST_REFUSALS:]
        return kept, kept


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Decimal) else value


BUDGETS: Final = BudgetRule()
REFUSALS: Final = RefusalRule()
