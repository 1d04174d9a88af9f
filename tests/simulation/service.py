"""The model service: its books, and every behaviour of it that the interface leaves open.

What it promises (Endpoints, POST /payouts; Limits, Idempotency): a reference is unique for ever, checked in
the moment of creation; the first answer to a key is replayed for 24 hours, as far as it is stored at all;
the list shows every payout sooner or later. A request that nobody waits for any more is carried out within
15 minutes or never.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from decimal import Decimal

import attrs

from payments_async.bulk._protocol.attempts import AttemptReply
from payments_async.models import Verdict

from .loop import SimulatedLoop, host_context, settle
from .plan import DAY, HOUR, Body, Plan

EPOCH = 1_700_000_000.0
"""The service's clock when the world begins."""


@attrs.frozen(eq=False)
class Request:
    """A creation under way."""

    key: str
    reference: str
    body: Body
    proof: str | None
    origin: tuple[str, str, int]
    """Ledger, row, generation."""


@attrs.define(eq=False)
class Payment:
    """A payout in the books."""

    id: str
    reference: str
    amount: Decimal
    currency: str
    proof: str | None
    body: Body | None
    """None when somebody else made it."""
    origin: tuple[str, str, int] | None
    created: float
    visible: float
    final: float
    """When its status becomes final."""
    failed: bool
    """Whether that status will be a failure."""


Waiter = asyncio.Future[AttemptReply]


def client_verdict(status: int, *, replayed: bool) -> Verdict:
    """What the client says of an attempt with this answer, when it carries no record."""
    if not 400 <= status < 500 or status == 408 or (replayed and status in (409, 429)):
        return "in_doubt"
    return "not_executed"


class Service:
    """One project."""

    def __init__(self, loop: SimulatedLoop, plan: Plan, seed: str, note: Callable[[str], None]) -> None:
        self._loop, self._plan, self._note = loop, plan, note
        self._random = random.Random(seed).random
        self._context = host_context("service")
        self._stored: dict[str, tuple[float, int, Payment | None]] = {}
        self._under_way: dict[str, int] = {}
        self.by_reference: dict[str, Payment] = {}
        self.payments: list[Payment] = []
        self.healthy = False
        self._opened: float | None = None
        """When the first creation arrived."""

    def chance(self, probability: float) -> bool:
        """Whether something bad of that probability happens now."""
        return not self.healthy and self._random() < probability * self._plan.weather

    def later(self, delay: float, callback: Callable[..., object], *args: object) -> asyncio.TimerHandle:
        """The service lives on, whoever dies."""
        return self._loop.call_later(delay, callback, *args, context=self._context)

    def now(self) -> float:
        """Its own clock."""
        return EPOCH + self._loop.time()

    # Creation

    def arrive(self, request: Request, waiter: Waiter) -> None:
        """A request is here."""
        if self._is_out():
            self._note("gate 500")
            self._answer(waiter, 500)
            return
        if not self.healthy and self._plan.weather and self._turned_away(request, waiter):
            return
        stored = self._stored.get(request.key)
        if stored is not None and self._loop.time() - stored[0] < DAY:
            self._note(f"replayed {stored[1]}")
            self._answer(waiter, stored[1], stored[2], request, replayed=True)
        elif request.key in self._under_way and self._plan.parallel != "race":
            if self._plan.parallel == "wait":
                self.later(1.0, self.arrive, request, waiter)
            else:
                self._note("409 in flight")
                self._answer(waiter, 409)
        else:
            self._begin(request, waiter)

    def _is_out(self) -> bool:
        if self._opened is None:
            self._opened = self._loop.time()
        return not self.healthy and self._loop.time() < self._opened + self._plan.outage

    def _turned_away(self, request: Request, waiter: Waiter) -> bool:
        """What a gateway in front may say; a stored error is among the worst of it."""
        draw = self._random() / self._plan.weather
        for limit, status in _ASTRAY if self._plan.astray else _AT_THE_GATE:
            if draw < limit:
                self._note(f"gate {status}")
                if status in (429, 500) and self._plan.stores == "all" and self._random() < 0.5:
                    self._stored.setdefault(request.key, (self._loop.time(), status, None))
                self._answer(waiter, status)
                return True
        return False

    def _begin(self, request: Request, waiter: Waiter) -> None:
        self._under_way[request.key] = self._under_way.get(request.key, 0) + 1
        slow = self.chance(0.06)
        if slow:
            self._note("slow")
        takes = 1 + 39 * self._random() if slow else 0.1 * self._random()
        self.later(takes, self._carry_out, request, waiter)

    def _carry_out(self, request: Request, waiter: Waiter) -> None:
        """The moment of truth: one callback, so nothing comes between the check and the creation."""
        if status := self._refusal(request):
            self._finish(request, waiter, status, None)
        elif self.chance(0.03):
            self._note("5xx in the middle")
            self._finish(request, waiter, 502, None)
        else:
            payment = self._create(request)
            broken = self.chance(0.05)
            if broken:
                self._note("5xx after the commit")
            self._finish(request, waiter, 500 if broken else 201, None if broken else payment)

    def _refusal(self, request: Request) -> int:
        moody = self._plan.moody and self.chance(0.4)
        bad = 422 if request.body.bad or moody else 0
        taken = 409 if request.reference in self.by_reference else 0
        if moody and taken:
            self._note("moody about a payout that exists")
        return (bad or taken) if self._plan.checks_first else (taken or bad)

    def _create(self, request: Request) -> Payment:
        now = self._loop.time()
        payment = Payment(
            id=f"po_{len(self.payments)}",
            reference=request.reference,
            amount=request.body.amount,
            currency="XOF",
            proof=request.proof,
            body=request.body,
            origin=request.origin,
            created=now,
            visible=now + self._plan.lag * self._random() ** 0.5,
            final=now + 2 * HOUR * self._random(),
            failed=self._random() < 0.15,
        )
        self.enter(payment)
        return payment

    def enter(self, payment: Payment) -> None:
        """Into the books."""
        self.payments.append(payment)
        self.by_reference[payment.reference] = payment

    def _finish(self, request: Request, waiter: Waiter, status: int, payment: Payment | None) -> None:
        left = self._under_way[request.key] - 1
        if left:
            self._under_way[request.key] = left
        else:
            del self._under_way[request.key]
        if self._keeps(status):
            self._stored.setdefault(request.key, (self._loop.time(), status, payment))
        self._answer(waiter, status, payment, request)

    def _keeps(self, status: int) -> bool:
        kept = {"all": 600, "definite": 500, "2xx": 300, "none": 0}
        return status < kept[self._plan.stores]

    def _answer(
        self,
        waiter: Waiter,
        status: int,
        payment: Payment | None = None,
        request: Request | None = None,
        *,
        replayed: bool = False,
    ) -> None:
        """Send it; the way back is as bad as the way there."""
        if self.chance(0.06):
            self._note("answer lost")
            return
        reply = AttemptReply(status, client_verdict(status, replayed=replayed), replayed)
        if payment is not None and request is not None:
            reply = self._success(status, payment, request, replayed)
        self.later(0.005 + 0.05 * self._random(), settle, waiter, reply)

    def _success(self, status: int, payment: Payment, request: Request, replayed: bool) -> AttemptReply:
        if self.chance(0.04):
            self._note("answer cut short")
            return AttemptReply(status, "in_doubt", replayed)
        if len(self.payments) > 1 and self.chance(0.03):
            payment = self.payments[int(self._random() * len(self.payments))]
        matches = payment.reference == request.reference and payment.amount == request.body.amount
        if not matches:
            self._note("another record came back")
            return AttemptReply(status, "in_doubt", replayed, "other", payment.id)
        return AttemptReply(status, "executed", replayed, "matching", payment.id)

    # Reading

    def has_finally_failed(self, payout_id: str) -> bool:
        """What a read of the payout says now."""
        now = self._loop.time()
        return any(p.id == payout_id and p.failed and p.final <= now for p in self.payments)

    def shown(self, since: float | None, currency: str | None) -> list[Payment]:
        """What the list shows now, newest first; `since` by the service's clock."""
        now = self._loop.time()
        return [
            payment
            for payment in reversed(self.payments)
            if payment.visible <= now
            and (since is None or EPOCH + payment.created >= since)
            and (currency is None or payment.currency == currency)
        ]


_AT_THE_GATE = (
    (0.04, 429),
    (0.08, 500),
    (0.085, 408),
    (0.09, 401),
    (0.095, 403),
    (0.10, 404),
    (0.105, 302),
    (0.12, 200),
)
"""Cumulative probabilities. The 200 is a captive portal's page: nothing was created."""
_ASTRAY = ((0.04, 429), (0.06, 500), (0.12, 404), (0.18, 302), (0.20, 200))
"""The same where requests go astray, to an address or a proxy that is not the service's."""
