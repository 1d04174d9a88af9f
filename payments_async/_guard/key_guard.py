"""The guards of one secret key in this process: judges each write once, and keeps account of its sums.

All guards that clients of the key were given hold. Of sums over one window the lower figure holds, and there
is one state for all. A write is known by its idempotency key and body; known ones are not judged again while
the state counts them.
"""

from __future__ import annotations

import hashlib
import threading
from asyncio import CancelledError
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from math import inf
from typing import Any, Final, Literal, Protocol
from weakref import WeakSet

from .. import _assumptions
from .._codec.payment_body import Payment, read_payment
from .._emitter import warn_caller
from .._http.types import Secret
from .._rate_limit.store import LimitRow
from .._runtime import Runtime, renewed_in_child
from ..errors import ConfigurationError, GuardRefused, LimitStoreUnavailable
from ..guard import Guard, GuardRequest
from ..models._minor_units import MINOR_UNITS, PUBLISHED
from . import rules
from ._state.store_client import StoreClient
from .asking import answer
from .budget_client import PATIENCE, BudgetClient, Granted
from .budgets import LEASE, MOST_REFUSALS, SETTLING, Budgets, Outcome, Shortage, WriteAmount
from .rules import PAYOUTS, GuardRefusal, QuickRules, Write

ASKING: Final = 900.0
"""Seconds in which `ask` may answer where the call has no deadline."""
_KNOWN: Final = 10_000
"""Writes that are remembered at most; one that is forgotten is judged and reserved as new."""
OpenStore = Callable[[Secret], StoreClient]
"""Gives the process's client of the store at an address."""


class ProcessSums:
    """Sums that this process keeps. Those of a guard with a name outlive a rotated key."""

    def __init__(self, now: float) -> None:
        self.budgets: Budgets = Budgets(now)
        self.settled: deque[tuple[str, Outcome, float, str, int]] = deque()
        """Outcomes that the next reservation takes in: whoever reports one takes no lock."""
        self.lock = threading.Lock()


class Admission:
    """A write that may be sent."""

    __slots__ = ("_calls", "_guard", "amount", "counted_until", "doubted", "first", "is_reserved", "until")

    def __init__(self, guard: KeyGuard, amount: WriteAmount, now: float) -> None:
        self._guard = guard
        self._calls = 0
        self.amount: WriteAmount = amount
        self.first: float = now
        """When it was judged; monotonic seconds, as the others."""
        self.until: float = inf
        """An attempt may begin until then; a later one renews the reservation first, if there is one."""
        self.counted_until: float = now + _assumptions.KEY_TRUSTED_FOR
        self.is_reserved: bool = False
        """True once its amount was reserved: attempts may have been made since then."""
        self.doubted: bool = False
        """True if an attempt ended without a definite answer: a later refusal proves nothing then."""

    def counts(self, now: float) -> bool:
        """Whether another call may send the write without being judged."""
        return now < self.counted_until and now - self.first < _assumptions.KEY_TRUSTED_FOR

    def entered(self) -> Admission:
        """The admission of one more call: several may send the same write."""
        self._calls += 1
        return self

    @property
    def is_unused(self) -> bool:
        """True if no call has it, and none has left it in doubt."""
        return not self._calls and not self.doubted

    async def renew(self, left: float | None) -> None:
        """Renew its reservation, for attempts that begin from now on; `left`: seconds at most.

        Raises GuardRefused, LimitStoreUnavailable.
        """
        await self._guard.renew(self, left)

    def settle(self, outcome: Outcome | None) -> None:
        """Note how a call ended; None for one in doubt. The last one to end may give the amount back."""
        self._calls -= 1
        if outcome == "paid" or (outcome == "never" and not self._calls) or (outcome and self.is_unused):
            self._guard.settle(self, outcome)
        elif outcome is None:
            self.doubted = True


class KeyGuard:
    """The guards of one key, and their sums."""

    def __init__(self, place: tuple[str, str], runtime: Runtime) -> None:
        """`place`: the service's address and the key's fingerprint."""
        self._place, self._runtime = place, runtime
        self.guards: tuple[Guard, ...] = ()
        self.limits: dict[str, list[tuple[int, Decimal]]] = {}
        """{currency: windows and the most in each}, the lower figures of all guards."""
        self.client: BudgetClient | None = None
        """Keeps the sums in a store; None for sums of this process, and without sums."""
        self.refused: deque[dict[str, Any]] = deque(maxlen=MOST_REFUSALS)
        self._sums: ProcessSums | None = None
        self._known: dict[str, Admission] = {}
        self._order: deque[str] = deque()
        self._kept_at: object = None
        self._remembers = False
        self._quick = QuickRules((), {})
        _guards.add(self)

    def join(self, guard: Guard, limit_store: Secret | None, open_store: OpenStore) -> None:
        """Add a guard. Raises ConfigurationError when its sums are kept elsewhere than another's."""
        if guard in self.guards:
            return
        for currency in guard.most.keys() - MINOR_UNITS if guard.decimals else ():
            warn_caller(
                f"guard: ISO 4217 of {PUBLISHED} gives {currency} no decimals (it may be withdrawn), so "
                "those of its amounts are not judged"
            )
        if guard.sums:
            self._keep(guard, limit_store, open_store)
        guards, limits = (*self.guards, guard), dict(self.limits)
        for currency, most, seconds in guard.sums:
            figures = dict(limits.get(currency, ()))
            figures[seconds] = min(most, figures.get(seconds, most))
            limits[currency] = sorted(figures.items())
        self._quick, self.limits = QuickRules(guards, limits), limits
        if self.client is not None:
            self.client.limits = limits
        self._remembers = any(each.sums or each.ask is not None for each in guards)
        self.guards = guards  # last: another thread may judge by it at once

    @property
    def digest(self) -> str:
        """Identifies the rules of all its guards."""
        return "+".join(sorted({guard.digest for guard in self.guards}))

    def _keep(self, guard: Guard, limit_store: Secret | None, open_store: OpenStore) -> None:
        address = Secret(f"sqlite:{guard.state}") if guard.state else limit_store
        where: object = guard.budgets or (address, guard.name)
        if where == (None, guard.name):
            raise ConfigurationError(
                "guard: sums need a state: a file (state='guard.sqlite'), the client's limit_store, or "
                "budgets='process' for this process alone"
            )
        if self._kept_at not in (None, where):
            raise ConfigurationError("guards of one key in one process keep their sums in different places")
        if self._kept_at is None and guard.budgets:
            sums = ProcessSums(self._runtime.monotonic())
            self._sums = _named.setdefault((self._place[0], guard.name), sums) if guard.name else sums
        elif self._kept_at is None:
            assert address is not None
            service, fingerprint = self._place
            row = LimitRow(service, f"name {guard.name}" if guard.name else fingerprint, "guard")
            self.client = BudgetClient(open_store(address), row, self._runtime)
        if self._sums is not None:
            limits = {each.currency: [(each.seconds, each.most)] for each in guard.sums}
            self._sums.budgets.begin(limits, self._runtime.monotonic())
        self._kept_at = where

    # One write

    def admit_at_once(
        self, path: str, body: bytes, idempotency_key: str
    ) -> Admission | Literal[False] | None:
        """Admit a payout that this package wrote and that clearly breaks no rule; else False.

        None for a payout that needs no account. Where a store keeps the sums, it has to be asked: False.
        """
        if path != PAYOUTS or self.client is not None:
            return False
        found = self._quick.amount_of(body)
        if found is None:
            return False
        return (
            self._account(self._amount(self._name(idempotency_key, PAYOUTS, body), *found))
            if self._remembers
            else None
        )

    def _account(self, amount: WriteAmount) -> Admission | Literal[False]:
        """Admit a payout that the rules allow, if this process keeps the sums and has room."""
        now = self._runtime.monotonic()
        known = self._known.get(amount.name)
        if known is not None:
            return known.entered() if known.counts(now) else False
        admission = Admission(self, amount, now)
        if amount.currency in self.limits:
            if self._reserve_here((amount,), now)[1] is not None:
                return False
            admission.until = now + LEASE
            admission.counted_until = admission.until + SETTLING
            admission.is_reserved = True
        self._remember(admission)
        return admission.entered()

    async def admit(
        self, write: Write, idempotency_key: str, left: float | None, *, may_ask: bool
    ) -> Admission | None:
        """Judge a write, and reserve its amount. `left`: seconds of the call's deadline.

        None for a write that needs no account. Raises LimitStoreUnavailable, and GuardRefused, whose effect
        is unknown where an earlier call of this process may have carried the write out.
        """
        elsewhere = filter(None, (rules.judge_path(each, write) for each in self.guards))
        self._refuse(write.operation.name, next(elsewhere, None))
        if not any(rules.is_judged(guard, write) for guard in self.guards):
            return None
        if not self._remembers:
            await self._judge(write, self._read(write), left, may_ask=may_ask)
            return None
        name = self._name(idempotency_key, write.place, write.body)
        known = self._known.get(name)
        if known is not None and known.counts(self._runtime.monotonic()):
            return known.entered()
        try:
            admission = await self._admitted(write, name, left, may_ask=may_ask)
        except GuardRefused as refusal:
            if known is not None and known.doubted:
                refusal.effect = "unknown"
            raise
        self._remember(admission)
        return admission.entered()

    async def _admitted(self, write: Write, name: str, left: float | None, *, may_ask: bool) -> Admission:
        payment = self._read(write)
        await self._judge(write, payment, left, may_ask=may_ask)
        amount = self._amount(name, payment.currency, payment.amount)
        admission = Admission(self, amount, self._runtime.monotonic())
        if write.pays_out and payment.currency in self.limits:
            await self.renew(admission, left)
        return admission

    async def renew(self, admission: Admission, left: float | None) -> None:
        """Reserve an amount, or renew its reservation. Raises GuardRefused, LimitStoreUnavailable."""
        _, shortage = await self._reserve([admission], left)
        if shortage is not None:
            self._refuse("payouts.create", rules.no_room(shortage, admission.amount.amount), shortage)

    def settle(self, admission: Admission, outcome: Outcome) -> None:
        """Note the outcome of a write."""
        amount, now = admission.amount, self._runtime.monotonic()
        if outcome == "paid":
            windows = self.limits.get(amount.currency)
            admission.until = admission.counted_until = now + (
                windows[0][0] if windows else _assumptions.KEY_TRUSTED_FOR
            )
        else:
            self._known.pop(amount.name, None)
        if amount.currency not in self.limits:
            return
        if self.client is not None:
            self.client.settle(amount, outcome)
        else:
            assert self._sums is not None
            self._sums.settled.append((amount.name, outcome, now, "", amount.claim))

    def judged(self, body: bytes) -> Payment | GuardRefusal:
        """What a payout that this package wrote would pay, or why the rules refuse it.

        `ask` and the room in the sums are left out.
        """
        payment = read_payment(body, is_ours=True)
        if isinstance(payment, str):
            return GuardRefusal("body", f"the guard cannot read it: it {payment}")
        for guard in self.guards:
            if found := rules.judge(guard, payment, pays_out=True) or rules.judge_most(guard, payment):
                return found
        return rules.judge_sums(self.limits.get(payment.currency, ()), payment) or payment

    def refuse_doubtful(self, operation: str, doubt: str) -> None:
        """Raise GuardRefused for an amount that may be meant otherwise, where decimals are judged."""
        if any(guard.decimals for guard in self.guards):
            self._refuse(operation, GuardRefusal("decimals", doubt))

    def forked(self) -> None:
        """Begin anew in a forked child."""
        if self._sums is not None:
            self._sums.lock = threading.Lock()
        if self.client is not None:
            self.client.forked()

    def _read(self, write: Write) -> Payment:
        found = rules.read(write)
        if isinstance(found, GuardRefusal):
            self._refuse(write.operation.name, found)
        assert isinstance(found, Payment)
        return found

    async def _judge(self, write: Write, payment: Payment, left: float | None, *, may_ask: bool) -> None:
        pays_out = write.pays_out
        for guard in self.guards:
            if rules.is_judged(guard, write):
                self._refuse(write.operation.name, rules.judge(guard, payment, pays_out=pays_out))
                above = rules.judge_most(guard, payment)
                if above is not None and (not may_ask or guard.ask is None):
                    self._refuse(write.operation.name, above)
                elif above is not None and not await self._allows(guard, write, payment, above, left):
                    text = f"{above.text}. The guard asked, and the answer was no"
                    self._refuse(write.operation.name, above._replace(text=text))
        if pays_out:
            self._refuse(
                write.operation.name, rules.judge_sums(self.limits.get(payment.currency, ()), payment)
            )

    async def _allows(
        self, guard: Guard, write: Write, payment: Payment, above: GuardRefusal, left: float | None
    ) -> bool:
        assert guard.ask is not None
        assert above.allowed is not None
        request = GuardRequest(
            write.operation.name,
            *(payment.amount, payment.currency, payment.method, payment.country, payment.reference),
            above.allowed,
        )
        seconds = ASKING if left is None else min(left, ASKING)
        return await answer(guard.ask, request, seconds=seconds, runtime=self._runtime)

    async def _reserve(self, admissions: Sequence[Admission], left: float | None) -> Granted:
        amounts, asked = [each.amount for each in admissions], self._runtime.monotonic()
        if self.client is None:
            granted = self._reserve_here(amounts, asked)
        else:
            try:
                granted = await self.client.reserve(amounts, PATIENCE if left is None else left)
            except (CancelledError, TimeoutError, LimitStoreUnavailable):  # they may be reserved by now
                for admission in admissions:
                    if not admission.is_reserved:
                        self.client.settle(admission.amount, "unpaid")
                raise
        for admission in admissions[: granted[0]]:
            admission.until = asked + LEASE
            admission.counted_until = admission.until + SETTLING
            admission.is_reserved = True
        return granted

    def _reserve_here(self, amounts: Sequence[WriteAmount], now: float) -> Granted:
        sums = self._sums
        assert sums is not None
        with sums.lock:
            while sums.settled:
                sums.budgets.settle(*sums.settled.popleft())
            return sums.budgets.reserve(amounts, self.limits, now)

    def _amount(self, name: str, currency: str, amount: Decimal) -> WriteAmount:
        claim = int.from_bytes(self._runtime.token(7))  # drawn: a copied process may reserve the same write
        return WriteAmount(name, currency, amount, claim)

    def _name(self, idempotency_key: str, place: str, body: bytes) -> str:
        """Identifies a write: to all processes where a store keeps the sums. It shows nothing of the body."""
        if self.client is None:
            return f"{idempotency_key} {place} {hash(body)}"
        return hashlib.sha256(f"{idempotency_key}\0{place}\0".encode() + body).hexdigest()[:24]

    def _remember(self, admission: Admission) -> None:
        name = admission.amount.name
        self._known[name] = admission
        self._order.append(name)
        if len(self._order) > _KNOWN:  # a name that was remembered twice may go early
            self._known.pop(self._order.popleft(), None)

    def _refuse(self, operation: str, refusal: GuardRefusal | None, shortage: Shortage | None = None) -> None:
        """Raise GuardRefused, if there is a refusal, and keep it for `payments guard show`."""
        if refusal is None:
            return
        now = self._runtime.now()
        room_at = None if shortage is None else now + timedelta(seconds=shortage.wait)
        error = rules.refused(operation, refusal, room_at=room_at)
        fact = {"at": now.timestamp(), "operation": operation, "rule": refusal.rule, "text": refusal.text}
        self.refused.append(fact)
        if self.client is not None:
            self.client.note_refusal(fact)
        raise error


class GuardPlace(Protocol):
    """Where all clients of a key find its guard."""

    guard: KeyGuard | None


def join(
    shared: GuardPlace,
    place: tuple[str, str],
    runtime: Runtime,
    guard: Guard,
    limit_store: Secret | None,
    open_store: OpenStore,
) -> None:
    """Put a key under one more guard, whichever threads do so at once. Raises ConfigurationError."""
    with _joining:
        known = shared.guard or KeyGuard(place, runtime)
        known.join(guard, limit_store, open_store)
        shared.guard = known


_guards: Final[WeakSet[KeyGuard]] = WeakSet()
_named: Final[dict[tuple[str, str], ProcessSums]] = {}
"""{(address, guard's name): sums}."""
_joining = threading.Lock()


@renewed_in_child
def _after_fork() -> None:
    global _joining
    _joining = threading.Lock()
    for guard in list(_guards):
        guard.forked()
