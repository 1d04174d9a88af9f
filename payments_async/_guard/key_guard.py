"""The guards of one secret key in this process: each write is judged once, and its amount is reserved.

All guards that clients of the key were given hold. Of sums over one window the lower figure holds, and there
is one state for all. A write is known by its idempotency key and body.
"""

from __future__ import annotations

import hashlib
import threading
from asyncio import CancelledError
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from math import inf
from typing import Final, Protocol

import attrs

from .. import _assumptions
from .._codec.payment_body import Payment, read_payment
from .._emitter import warn_caller
from .._runtime import Runtime, renewed_in_child
from ..errors import ConfigurationError, GuardRefused, LimitStoreUnavailable
from ..guard import Guard, GuardRequest
from ..models._minor_units import MINOR_UNITS, PUBLISHED
from . import rules
from .account import PATIENCE, GuardAccount, database_state, state_at
from .asking import answer
from .rules import GuardRefusal, Write
from .sqlite import FileState, MemoryState
from .state import SumsState
from .sums import LEASE, GuardSums, Limits, Outcome, WriteAmount

ASKING: Final = 900.0
"""Seconds in which `ask` may answer where the call has no deadline."""
_KNOWN: Final = 10_000
"""Writes that are remembered at most; one that is forgotten is judged as new."""


@attrs.frozen
class GuardOwner:
    """Whose guard it is, and what its clients say of the state of its sums."""

    address: str  # the service's, normalised
    fingerprint: str
    database: str | None = attrs.field(default=None, repr=False)
    """The limit store's address, which keeps the sums where the guard names no file."""
    insecure_database: bool = False


@attrs.define(eq=False, repr=False)
class _JudgedWrite:
    payment: Payment
    first: float  # when it was judged; monotonic seconds
    doubted: bool = False
    """True if a call ended without a definite answer: a later refusal proves nothing then."""


class Admission:
    """A call's permission to begin attempts of a write."""

    __slots__ = ("_guard", "_is_reserved", "_judged", "amount", "until")

    def __init__(self, guard: KeyGuard, judged: _JudgedWrite, amount: WriteAmount) -> None:
        self._guard, self._judged = guard, judged
        self._is_reserved = False
        self.amount: WriteAmount = amount
        self.until: float = inf
        """An attempt may begin until then; a later one renews the reservation first, if there is one."""

    @property
    def doubted(self) -> bool:
        """True if an earlier call of the write ended without a definite answer."""
        return self._judged.doubted

    async def renew(self, left: float | None) -> None:
        """Reserve the amount for attempts that begin from now on; `left`: seconds at most.

        Raises GuardRefused, LimitStoreUnavailable, and TimeoutError for a deadline that has passed.
        """
        asked = self._guard.monotonic()
        try:
            await self._guard.reserve(self.amount, left)
        except (CancelledError, TimeoutError, LimitStoreUnavailable):
            if not self._is_reserved:  # it may be by now, and nothing was sent
                self._guard.settle(self.amount, "unpaid")
            raise
        self._is_reserved = True
        self.until = asked + LEASE

    def settle(self, outcome: Outcome | None) -> None:
        """Note how the call ended; None for one in doubt."""
        if outcome is None:
            self._judged.doubted = True
            return
        if outcome == "never" or (outcome == "unpaid" and not self.doubted):
            self._guard.forget(self.amount)
        if self._is_reserved:
            self._guard.settle(self.amount, outcome)


class KeyGuard:
    def __init__(self, owner: GuardOwner, runtime: Runtime) -> None:
        self._owner, self._runtime = owner, runtime
        self.monotonic: Callable[[], float] = runtime.monotonic
        self.guards: tuple[Guard, ...] = ()
        self._account: GuardAccount | None = None
        self._kept_at: object = None
        self._judged: dict[str, _JudgedWrite] = {}
        self._order: deque[str] = deque()

    @property
    def sums(self) -> GuardSums | None:
        return None if self._account is None else self._account.sums

    @property
    def limits(self) -> Limits:
        """The lower figures of all guards."""
        return {} if self.sums is None else self.sums.limits

    @property
    def digest(self) -> str:
        """Identifies the rules of all its guards."""
        return "+".join(sorted({guard.digest for guard in self.guards}))

    def join(self, guard: Guard) -> None:
        """Add a guard. Raises ConfigurationError when its sums are kept elsewhere than another's."""
        if guard in self.guards:
            return
        for currency in guard.most.keys() - MINOR_UNITS if guard.decimals else ():
            warn_caller(
                f"guard: ISO 4217 of {PUBLISHED} gives {currency} no decimals (it may be withdrawn), so "
                "those of its amounts are not judged"
            )
        if guard.sums:
            sums = self._sums_for(guard)
            limits = {currency: [*windows] for currency, windows in sums.limits.items()}
            for currency, most, seconds in guard.sums:
                figures = dict(limits.get(currency, ()))
                figures[seconds] = min(most, figures.get(seconds, most))
                limits[currency] = sorted(figures.items())
            sums.limits = limits
            if guard.budgets:
                sums.begin()
        self.guards = (*self.guards, guard)  # last: another thread may judge by it at once

    def _sums_for(self, guard: Guard) -> GuardSums:
        """The sums that a guard shares with those before it."""
        database = None if guard.state or guard.budgets else _postgresql_of(self._owner.database)
        kept_at = (guard.budgets, guard.state, database, guard.name)
        if self._kept_at not in (None, kept_at):
            raise ConfigurationError("guards of one key in one process keep their sums in different places")
        if self._account is None:
            owner = f"{self._owner.address} {f'name {guard.name}' if guard.name else self._owner.fingerprint}"
            self._account = GuardAccount(self._state_of(guard, database, owner), owner, self._runtime)
            self._kept_at = kept_at
        return self._account.sums

    def _state_of(self, guard: Guard, database: str | None, owner: str) -> SumsState:
        runtime = self._runtime
        if guard.state is not None:
            return state_at(guard.state, partial(FileState, guard.state, runtime))
        if database is not None:
            insecure = self._owner.insecure_database
            return state_at(database, partial(database_state, database, runtime, insecure_database=insecure))
        return state_at(owner, partial(MemoryState, runtime)) if guard.name else MemoryState(runtime)

    # One write

    async def admit(
        self, write: Write, idempotency_key: str, left: float | None, *, may_ask: bool
    ) -> Admission | None:
        """Judge a write, and reserve its amount. `left`: seconds of the call's deadline.

        None for a write that needs no account. Raises LimitStoreUnavailable, and GuardRefused, whose effect
        is unknown where an earlier call of this process may have carried the write out.
        """
        for guard in () if write.is_ours else self.guards:
            self._refuse(write, rules.judge_path(guard, write))
        if not any(rules.is_judged(guard, write) for guard in self.guards):
            return None
        if self._account is None and all(guard.ask is None for guard in self.guards):
            await self._allowed(write, left, may_ask=may_ask)
            return None  # nothing to give back, and to ask again costs nobody anything
        name = hashlib.sha256(f"{idempotency_key}\0{write.place}\0".encode() + write.body).hexdigest()[:24]
        known = self._judged.get(name)
        try:
            if known is None or self.monotonic() - known.first > _assumptions.KEY_TRUSTED_FOR:
                payment = await self._allowed(write, left, may_ask=may_ask)
                known = self._judged[name] = _JudgedWrite(payment, self.monotonic())
                self._order.append(name)
                if len(self._order) > _KNOWN:  # a name that was remembered twice may go early
                    self._judged.pop(self._order.popleft(), None)
            currency, amount = known.payment.currency, known.payment.amount
            claim = self._runtime.token(8).hex()  # drawn: a copied process may reserve the same write
            admission = Admission(self, known, WriteAmount(name, currency, amount, claim))
            if write.pays_out and currency in self.limits:
                await admission.renew(left)
        except GuardRefused as refusal:
            if known is not None and known.doubted:
                refusal.effect = "unknown"
            raise
        return admission

    async def reserve(self, amount: WriteAmount, left: float | None) -> None:
        """Reserve an amount, or renew its reservation. Raises as `Admission.renew` does."""
        assert self._account is not None
        shortage = await self._account.reserve(amount, PATIENCE if left is None else left)
        if shortage is not None:
            room_at = self._runtime.now() + timedelta(seconds=shortage.wait)
            raise rules.refused("payouts.create", rules.no_room(shortage, amount.amount), room_at=room_at)

    def settle(self, amount: WriteAmount, outcome: Outcome) -> None:
        assert self._account is not None
        self._account.settle(amount, outcome)

    def forget(self, amount: WriteAmount) -> None:
        """Judge a write as new when it comes again."""
        self._judged.pop(amount.write, None)

    def judged(self, body: bytes) -> Payment | GuardRefusal:
        """What a payout that this package wrote would pay, or why the rules refuse it.

        `ask` and the room in the sums are left out.
        """
        payment = read_payment(body, is_ours=True)
        if isinstance(payment, str):
            return rules.unreadable(payment)
        for guard in self.guards:
            if found := rules.judge(guard, payment, pays_out=True) or rules.judge_most(guard, payment):
                return found
        return rules.judge_sums(self.limits.get(payment.currency, ()), payment) or payment

    def refuse_doubtful(self, operation: str, doubt: str) -> None:
        """Raise GuardRefused for an amount that may be meant otherwise, where decimals are judged."""
        if any(guard.decimals for guard in self.guards):
            raise rules.refused(operation, GuardRefusal("decimals", doubt))

    async def _allowed(self, write: Write, left: float | None, *, may_ask: bool) -> Payment:
        """What a write would pay, if the rules allow it. Raises GuardRefused."""
        payment = rules.read(write)
        if isinstance(payment, GuardRefusal):
            raise rules.refused(write.operation.name, payment)
        for guard in self.guards:
            if not rules.is_judged(guard, write):
                continue
            self._refuse(write, rules.judge(guard, payment, pays_out=write.pays_out))
            above = rules.judge_most(guard, payment)
            if above is not None and may_ask and guard.ask is not None:
                if await self._asked(guard, write, payment, left):
                    continue
                above = above._replace(text=f"{above.text}. The guard asked, and the answer was no")
            self._refuse(write, above)
        if write.pays_out:
            self._refuse(write, rules.judge_sums(self.limits.get(payment.currency, ()), payment))
        return payment

    async def _asked(self, guard: Guard, write: Write, payment: Payment, left: float | None) -> bool:
        assert guard.ask is not None
        request = GuardRequest(
            operation=write.operation.name,
            amount=payment.amount,
            currency=payment.currency,
            method=payment.method,
            country=payment.country,
            reference=payment.reference,
            most=guard.most[payment.currency],
        )
        seconds = ASKING if left is None else min(left, ASKING)
        return await answer(guard.ask, request, seconds=seconds, runtime=self._runtime)

    def _refuse(self, write: Write, refusal: GuardRefusal | None) -> None:
        if refusal is not None:
            raise rules.refused(write.operation.name, refusal)


def _postgresql_of(limit_store: str | None) -> str:
    """The database that keeps sums where a guard names no file. Raises ConfigurationError."""
    if limit_store is not None and limit_store.partition(":")[0].lower() in ("postgresql", "postgres"):
        return limit_store
    raise ConfigurationError(
        "guard: sums need a state: a file (state='guard.sqlite'), the client's limit_store in PostgreSQL, or "
        "budgets='process' for this process alone"
    )


class GuardPlace(Protocol):
    """Where all clients of a key find its guard."""

    guard: KeyGuard | None


def join(shared: GuardPlace, owner: GuardOwner, runtime: Runtime, guard: Guard) -> None:
    """Put a key under one more guard, whichever threads do so at once. Raises ConfigurationError."""
    with _joining:
        known = shared.guard or KeyGuard(owner, runtime)
        known.join(guard)
        shared.guard = known


_joining = threading.Lock()


@renewed_in_child
def _after_fork() -> None:
    global _joining
    _joining = threading.Lock()
