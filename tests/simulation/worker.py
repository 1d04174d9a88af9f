"""The model engine: one start of the program. It moves; the real protocol decides."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from functools import cache

import attrs

from payments_async.bulk._protocol.attempts import AttemptReply
from payments_async.bulk._protocol.clocks import Timestamps
from payments_async.bulk._protocol.identifiers import Identity
from payments_async.bulk._protocol.row_state import RowState
from payments_async.bulk._protocol.stop_rules import Account, account_mismatch

from .ledger import Entry, Ledger
from .loop import SimulatedLoop, settle
from .plan import Body, Plan
from .promises import Promises
from .service import EPOCH, Payment, Request, Service, Waiter

BATCH = "b"
_TIMEOUT = 30.0


@attrs.frozen(eq=False)
class World:
    """What all parts of a schedule share."""

    loop: SimulatedLoop
    plan: Plan
    promises: Promises
    note: Callable[[str], None]


@attrs.define(eq=False)
class Clock:
    """A session's clocks."""

    loop: SimulatedLoop
    session: str
    started: float
    wrong: float
    """By how much the wall clock is off; it may jump."""
    knows_server: bool = False

    def moment(self) -> Timestamps:
        """Now."""
        now = self.loop.time()
        server = EPOCH + now if self.knows_server else None
        return Timestamps(EPOCH + now + self.wrong, now - self.started, self.session, server)


@cache
def named(identity: Identity, body: str) -> tuple[str, str]:
    """The reference and the idempotency key."""
    return identity.reference(), identity.idempotency_key(body)


def reference_prefix(_host: str, _body: Body) -> str:
    """In front of a reference: nothing that differs by run or by body."""
    return ""


class Worker:
    """One process."""

    is_patient = True
    """Whether it waits for rows in doubt until they can be decided."""

    def __init__(
        self,
        world: World,
        host: str,
        ledger: Ledger,
        service: Service,
        place: Account,
        clock: Clock,
        encoding: int,
        seed: object,
    ) -> None:
        self.world, self.host, self.ledger, self.service = world, host, ledger, service
        self.place, self.clock, self.encoding = place, clock, encoding
        self.random = random.Random(f"{seed}:{host}:network").random
        self.ended = ""
        """Why it stopped before the batch was complete."""
        self._sleepers: dict[asyncio.Future[None], None] = {}  # in order, as all here is reproducible

    async def run(self) -> None:
        """From start to end."""
        if not await self._start():
            return
        rows = self.ledger.rows
        doubtful = [row for row, entry in rows.items() if entry.known.state in ("IN_FLIGHT", "IN_DOUBT")]
        fresh = [row for row, entry in rows.items() if entry.known.state is RowState.NEW]
        queue = deque(doubtful + fresh)
        lanes = [self._lane(queue) for _ in range(self.world.plan.concurrency)]
        await asyncio.gather(*lanes)

    async def _lane(self, queue: deque[str]) -> None:
        from .job import Job

        while queue and not self.ended:
            await Job(self, queue.popleft()).run()

    async def _start(self) -> bool:
        """Reach the service, learn its time, and see that the ledger belongs here."""
        for _ in range(3):
            shown = await self.page(None, None, None)
            if shown is not None:
                break
        else:
            self.stop("unreachable")
            return False
        disk = self.ledger.disk
        known = self.ledger.rows.values()
        problem = account_mismatch(
            disk.place or self.place,
            self.place,
            untouched=not any(entry.known.intents or entry.known.generation for entry in known),
            visible=await self._sees_own(),
        )
        if problem is not None:
            self.world.note(f"refused: {problem.name.lower()}")
            self.stop("displaced")
            return False
        if disk.place is not None and disk.place != self.place:
            self.world.note("went on with a rotated key")
        disk.place = disk.place or self.place
        return True

    async def _sees_own(self) -> bool:
        """Whether a payout of this ledger is visible with this key."""
        mine = {entry.known.payout_id for entry in self.ledger.rows.values() if entry.known.payout_id}
        references = {self.named(entry)[0] for entry in self.ledger.rows.values() if entry.known.payout_id}
        shown = await self.page(None, None, None) if mine else []
        return any(payment.id in mine and payment.reference in references for payment in shown or [])

    def stop(self, why: str) -> None:
        """Take no new rows, start no new attempts, wake whoever sleeps."""
        self.ended = self.ended or why
        for sleeper in self._sleepers:
            settle(sleeper, None)

    async def sleep(self, seconds: float) -> None:
        """Wait, unless the program is asked to stop."""
        if self.ended:
            return
        sleeper = self.world.loop.create_future()
        self._sleepers[sleeper] = None
        timer = self.world.loop.call_later(seconds, settle, sleeper, None)
        await sleeper
        timer.cancel()
        self._sleepers.pop(sleeper, None)

    def identity(self, entry: Entry) -> Identity:
        """Whose payout it is."""
        known, environment = entry.known, self.place.environment
        prefix = reference_prefix(self.host, entry.body)
        counts = (known.generation, known.epoch, known.revision)
        return Identity(environment, BATCH, entry.body.row, *counts, prefix=prefix)

    def named(self, entry: Entry) -> tuple[str, str]:
        """The row's reference and idempotency key."""
        return named(self.identity(entry), entry.body.hash)

    def post(self, request: Request, entry: Entry, depart: Callable[[], None], seconds: float) -> Waiter:
        """Send a creation; the answer, a timeout or an error comes through the future.

        `depart` is called when its first byte leaves, within so many seconds.
        """
        waiter: Waiter = self.world.loop.create_future()
        depart()
        self._leave(request, waiter)
        return waiter

    def _leave(self, request: Request, waiter: Waiter) -> None:
        loop, note, service = self.world.loop, self.world.note, self.service
        weather = 0.0 if service.healthy else self.world.plan.weather
        draw = self.random() / weather if weather else 1.0
        if draw < 0.03:
            note("not sent")
            loop.call_later(0.1, settle, waiter, AttemptReply(verdict="not_sent"))
        elif draw < 0.033:
            note("tls name error")
            loop.call_later(0.1, settle, waiter, AttemptReply(verdict="not_sent", untrusted=True))
        elif draw < 0.07:
            note("request lost")
        elif draw < 0.12:
            note("abandoned request carried out later")
            service.later(30 + 750 * self.random() ** 0.5, service.arrive, request, waiter)
        else:
            service.later(0.005 + 0.05 * self.random(), service.arrive, request, waiter)
        timer = loop.call_later(_TIMEOUT, settle, waiter, AttemptReply())
        waiter.add_done_callback(lambda _: timer.cancel())

    async def page(
        self, since: float | None, currency: str | None, after: Payment | None
    ) -> list[Payment] | None:
        """The payouts of the list older than `after`; None when the read failed."""
        waiter: asyncio.Future[None] = self.world.loop.create_future()
        self.service.later(0.02 + 0.1 * self.random(), settle, waiter, None)
        await waiter
        if self.service.chance(0.15):
            return None
        self.clock.knows_server = self.world.plan.dates
        shown = self.service.shown(since, currency)
        return shown if after is None else [p for p in shown if p.created < after.created]
