"""The guards of one secret key in this process: each write is judged once, and its amount is reserved.

All guards that clients of the key were given hold. Of sums over one window the lower figure holds, and there
is one state for all. A write is known by its idempotency key and body.
"""

from __future__ import annotations

import hashlib
import threading
from asyncio import CancelledError
from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from math import inf
from typing import Final, Protocol

import attrs

from .. import _assumptions
from .._codec.payment_body import Payment, read_payment
from .._emitter import logger, warn_caller
from .._extras import needs
from .._runtime import Runtime, renewed_in_child
from ..errors import ConfigurationError, GuardRefused, LimitStoreUnavailable
from ..guard import Guard, GuardRequest
from ..models._minor_units import MINOR_UNITS, PUBLISHED
from . import rules
from .asking import Ask, answer
from .rules import GuardRefusal, Write
from .sqlite import FileState, MemoryState
from .state import PATIENCE, StateUnavailable, SumsState
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
        self.sums: GuardSums | None = None
        self._kept_at: object = None
        self._judged: OrderedDict[str, _JudgedWrite] = OrderedDict()

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
        kept_at = (guard.budgets, guard.state, guard.name)
        if self._kept_at not in (None, kept_at):
            raise ConfigurationError("guards of one key in one process keep their sums in different places")
        if self.sums is None:
            owner = f"{self._owner.address} {f'name {guard.name}' if guard.name else self._owner.fingerprint}"
            self.sums = GuardSums(self._state_of(guard, owner), owner)
            self._kept_at = kept_at
        return self.sums

    def _state_of(self, guard: Guard, owner: str) -> SumsState:
        """The process's one state at the place that a guard names, or the memory of one key's guards."""
        if guard.budgets and not guard.name:
            return MemoryState(self._runtime)
        place = owner if guard.budgets else guard.state or _postgresql_of(self._owner.database)
        if place not in _states:
            _states[place] = self._made(guard, place)
        return _states[place]

    def _made(self, guard: Guard, place: str) -> SumsState:
        if guard.budgets:
            return MemoryState(self._runtime)
        if guard.state is not None:
            return FileState(place, self._runtime)
        try:
            from .postgresql import DatabaseState
        except ImportError as error:
            raise ConfigurationError(needs("sums in PostgreSQL need", "postgresql")) from error
        return DatabaseState(place, self._runtime, insecure_database=self._owner.insecure_database)

    # One write

    async def admit(
        self, write: Write, idempotency_key: str, left: float | None, *, may_ask: bool
    ) -> Admission | None:
        """Judge a write, and reserve its amount. `left`: seconds of the call's deadline.

        None for a write that needs no account. Raises LimitStoreUnavailable, and GuardRefused, whose effect
        is unknown where an earlier call of this process may have carried the write out.
        """
        for guard in () if write.is_ours else self.guards:
            if (refusal := rules.judge_path(guard, write)) is not None:
                raise rules.refused(write.operation.name, refusal)
        if not any(rules.is_judged(guard, write) for guard in self.guards):
            return None
        if self.sums is None and all(guard.ask is None for guard in self.guards):
            await self._allowed(write, left, may_ask=may_ask)
            return None  # nothing to give back, and to ask again costs nobody anything
        name = hashlib.sha256(f"{idempotency_key}\0{write.place}\0".encode() + write.body).hexdigest()[:24]
        known = self._judged.get(name)
        try:
            if known is None or self.monotonic() - known.first > _assumptions.KEY_TRUSTED_FOR:
                payment = await self._allowed(write, left, may_ask=may_ask)
                self._judged.pop(name, None)  # the order is that of the latest judgement
                known = self._judged[name] = _JudgedWrite(payment, self.monotonic())
                if len(self._judged) > _KNOWN:
                    self._judged.popitem(last=False)
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
        assert self.sums is not None
        work = partial(self.sums.reserve, amount)
        shortage = await self.sums.state.ask(work, PATIENCE if left is None else left)
        if shortage is not None:
            room_at = self._runtime.now() + timedelta(seconds=shortage.wait)
            no_room = rules.no_room(shortage.window, amount.amount)
            raise rules.refused("payouts.create", no_room, room_at=room_at)

    def settle(self, amount: WriteAmount, outcome: Outcome) -> None:
        """Note how a call ended, before the next reservation and the end of the process.

        Where that fails the amount counts for longer, as one without outcome does.
        """
        assert self.sums is not None
        self.sums.state.tell(partial(_settle, self.sums, amount, outcome))

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
        refusals = rules.judge(self.guards, self.limits, payment, pays_out=True)
        return next((refusal for _, refusal in refusals), payment)

    def refuse_doubtful(self, operation: str, doubt: str) -> None:
        """Raise GuardRefused for an amount that may be meant otherwise, where decimals are judged."""
        if any(guard.decimals for guard in self.guards):
            raise rules.refused(operation, GuardRefusal("decimals", doubt))

    async def _allowed(self, write: Write, left: float | None, *, may_ask: bool) -> Payment:
        """What a write would pay, if the rules allow it. Raises GuardRefused."""
        payment = rules.read(write)
        if isinstance(payment, GuardRefusal):
            raise rules.refused(write.operation.name, payment)
        judges = [guard for guard in self.guards if rules.is_judged(guard, write)]
        for ask, refusal in rules.judge(judges, self.limits, payment, pays_out=write.pays_out):
            said = refusal
            if ask is not None and may_ask:
                if await self._asked(ask, write, payment, refusal, left):
                    continue
                said = refusal._replace(text=f"{refusal.text}. The guard asked, and the answer was no")
            raise rules.refused(write.operation.name, said)
        return payment

    async def _asked(
        self, ask: Ask, write: Write, payment: Payment, refusal: GuardRefusal, left: float | None
    ) -> bool:
        assert refusal.allowed is not None
        request = GuardRequest(
            operation=write.operation.name,
            amount=payment.amount,
            currency=payment.currency,
            method=payment.method,
            country=payment.country,
            reference=payment.reference,
            most=refusal.allowed,
        )
        seconds = ASKING if left is None else min(left, ASKING)
        return await answer(ask, request, seconds=seconds, runtime=self._runtime)


def _settle(sums: GuardSums, amount: WriteAmount, outcome: Outcome) -> None:
    try:
        sums.settle(amount, outcome)
    except (StateUnavailable, ConfigurationError) as error:
        logger.warning("the guard's sums could not be told how a payout ended: %s", error)


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
_states: Final[dict[str, SumsState]] = {}
"""By the file, the database's address, or the account of a guard with a name."""


@renewed_in_child
def _after_fork() -> None:
    global _joining
    _joining = threading.Lock()
