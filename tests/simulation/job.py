"""One row in one run of the model engine: every turn it takes is the protocol's decision."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import attrs

from payments_async.bulk._protocol import row_state
from payments_async.bulk._protocol.attempts import (
    AttemptReply,
    Kind,
    SendBlock,
    Step,
    after_attempt,
    kind_of,
    may_have_paid,
    send_block,
)
from payments_async.bulk._protocol.clocks import (
    INTENT_LIFETIME,
    ElapsedRange,
    Timestamps,
    age,
    since_last_send,
)
from payments_async.bulk._protocol.row_state import RowKnowledge, RowState
from payments_async.bulk._protocol.rows_in_doubt import (
    Action,
    ListScan,
    NextStep,
    after_scan,
    at_start,
    post_again_after,
)

from .ledger import Entry
from .lookup import compare, scan
from .plan import Body
from .service import Request
from .worker import Worker

Next: TypeAlias = "Callable[[], Awaitable[Next]] | None"
"""What to do next; None when the row is done with for this run."""
_TRIES, _SCANS = 4, 4
_NEVER = ElapsedRange(0.0, 0.0)


class Job:
    """A row in hand."""

    def __init__(self, worker: Worker, row: str) -> None:
        self._worker, self._row = worker, row
        self._world, self._note = worker.world, worker.world.note
        self._seen: tuple[Timestamps | None, Timestamps] = (None, worker.clock.moment())
        """The latest intent known of, and when this session first knew it."""
        self._under_way = 0
        self._clean: RowKnowledge | None = None
        """The account of this job's own intent, when all requests so far surely made nothing."""
        self._exists = self._refused = self._everywhere = False
        self._scans = _SCANS
        self._times = 0
        """How often the row was posted again after a back-off."""

    @property
    def _entry(self) -> Entry:
        return self._worker.ledger.rows[self._row]

    async def run(self) -> None:
        """Until nothing is left to do for the row, or the program stops."""
        step = self._first()
        while step is not None and not self._worker.ended:
            step = await step()

    def _age(self, then: Timestamps | None) -> ElapsedRange:
        now, intended = self._worker.clock.moment(), self._entry.intended
        if intended != self._seen[0]:
            self._seen = (intended, now)
        return _NEVER if then is None else age(then, now, self._seen[1])

    def _body(self, entry: Entry) -> Body:
        """The body as this release of the client writes it."""
        return attrs.evolve(entry.body, encoding=self._worker.encoding)

    def _first(self) -> Next:
        entry = self._entry
        same = self._body(entry) == entry.body
        action = at_start(entry.known.state, self._age(entry.key_made), same_bytes=same)
        if action is Action.RESOLVE:
            self._note("another encoding: not sent" if not same else "key over 23 hours")
            return self._resolve
        if action is Action.SEND_AGAIN:
            self._note("sent again at once")
        return None if action is Action.NOTHING else self._send

    # Sending

    async def _send(self) -> Next:
        entry = self._entry
        return await self._take(entry, next_epoch=False, absent=entry.known == self._clean)

    async def _take(self, entry: Entry, *, next_epoch: bool, absent: bool) -> Next:
        """Record an intent, then post under it."""
        fresh = entry.known.state is RowState.NEW or next_epoch
        now = self._worker.clock.moment()
        known = row_state.intend(entry.known, next_epoch=next_epoch, absent=absent)
        taken = Entry(
            body=self._body(entry) if fresh else entry.body,
            known=known,
            first_intent=entry.first_intent or now,
            key_made=now if fresh else entry.key_made,
            intended=now,
            intended_at=self._world.loop.time(),
        )
        waiting = self._worker.ledger.intend(self._row, entry.known, taken)
        if waiting is None:
            self._note("another worker was faster")
            return None
        self._claim(entry, known)
        return await self._post(taken, waiting)

    async def _post(self, entry: Entry, waiting: asyncio.Future[bool]) -> Next:
        """One retry loop under one intent."""
        tries, doubt = _TRIES, entry.known.was_doubtful
        while not self._worker.ended:
            match self._send_block(entry, waiting):
                case None:
                    pass
                case SendBlock.NOT_DURABLE if await waiting:
                    continue
                case SendBlock.STALE:
                    self._note("intent renewed")
                    self._clean = None if doubt else entry.known
                    return self._first()
                case _:
                    self._worker.stop("disk")
                    return None
            reply = await self._exchange(entry, waiting)
            tries -= 1
            doubt = doubt or may_have_paid(reply.verdict)
            step = after_attempt(reply, doubt=doubt, tries_left=tries)
            self._note(f"answer: {kind_of(reply)}")
            if step is Step.AGAIN:
                await self._worker.sleep((0.5 + self._worker.random()) * 2.0 ** (_TRIES - tries))
            elif step is Step.PAUSE:
                tries += 1
                await self._worker.sleep((1.0, 30.0, 400.0)[int(3 * self._worker.random())])
            else:
                return self._after(entry, reply, step)
        return None

    def _send_block(self, entry: Entry, waiting: asyncio.Future[bool]) -> SendBlock | None:
        return send_block(
            durable=waiting.done() and waiting.result(),
            under_way=self._under_way,
            same_bytes=self._body(entry) == entry.body,
            age_of_intent=self._age(entry.intended).at_most,
        )

    async def _exchange(self, entry: Entry, waiting: asyncio.Future[bool]) -> AttemptReply:
        """One request, and a second one if the rules allow it."""
        answer = self._leave(entry)
        self._under_way += 1
        if self._send_block(entry, waiting) is None:
            self._leave(entry)
        reply = await answer
        self._under_way -= 1
        self._world.promises.heard(self._worker.ledger.disk, self._worker.named(entry)[1], entry, reply)
        return reply

    def _leave(self, entry: Entry) -> asyncio.Future[AttemptReply]:
        worker, known = self._worker, entry.known
        reference, key = worker.named(entry)
        proof = worker.identity(entry).proof(entry.body.content).text if self._world.plan.proofs else None
        ledger = worker.ledger.disk
        request = Request(
            key, reference, self._body(entry), proof, (ledger.name, self._row, known.generation)
        )
        under_way, world = self._under_way, self._world

        def depart() -> None:
            world.promises.sending(request, ledger, entry, under_way, world.loop.time())

        return worker.post(request, entry, depart, INTENT_LIFETIME - self._age(entry.intended).at_most)

    def _after(self, entry: Entry, reply: AttemptReply, step: Step) -> Next:
        known = entry.known
        if step is Step.CONFIRM:
            if known.epoch:
                self._note("next epoch made it")
            self._record(row_state.confirm(known, reply.payout_id))
        elif step is Step.REJECT:
            self._note("rejected after proven absence" if known.intents > 1 else "rejected")
            self._record(row_state.refuse(known))
        elif step is Step.RESOLVE:
            self._exists, self._refused = reply.status == 409, kind_of(reply) is Kind.REFUSED
            if self._refused:
                self._note("refused in doubt")
            self._record(row_state.doubt(known))
            self._times = 0
            return self._resolve
        elif step is Step.LATER:
            self._record(row_state.doubt(known))
            return self._later
        else:
            self._worker.stop(str(step))
        return None

    async def _later(self) -> Next:
        """Post the same again after a back-off, or leave the row to the list."""
        seconds = post_again_after(self._times) if self._worker.is_patient else None
        self._times = 0 if seconds is None else self._times + 1
        if seconds is None:
            self._exists = self._refused = False
            return self._resolve
        self._note("posted again after a back-off")
        await self._worker.sleep(seconds)
        return self._first()

    def _record(self, known: RowKnowledge) -> None:
        before = self._entry
        self._claim(before, self._worker.ledger.record(self._row, known))

    def _claim(self, entry: Entry, known: RowKnowledge) -> None:
        """The ledger says something new of the row: it had better be true."""
        reference = self._worker.named(entry)[0]
        self._world.promises.claiming(self._worker.ledger.disk.name, entry, known, reference)

    # Resolving

    async def _resolve(self) -> Next:
        entry = self._entry
        if entry.known.state not in (RowState.IN_FLIGHT, RowState.IN_DOUBT):
            return None
        began = since_last_send(self._age(entry.intended))
        whole, payment = await scan(self._worker, entry, everywhere=self._everywhere)
        matched = None if payment is None else compare(self._worker, entry, payment)
        resolution = after_scan(
            ListScan(matched, whole, self._everywhere, began),
            since_send=since_last_send(self._age(entry.intended)),
            epoch=entry.known.epoch,
            exists=self._exists,
            refused=self._refused,
            scans_left=self._scans,
        )
        self._note(f"resolution: {resolution.step}")
        match resolution.step:
            case NextStep.CONFIRM if payment is not None:
                self._record(row_state.confirm(entry.known, payment.id))
                return None
            case NextStep.CONTRADICT:
                self._record(row_state.contradict(entry.known))
                return None
            case NextStep.NEXT_EPOCH:  # a new key, so the bytes may be new as well
                self._exists = self._refused = False
                return await self._take(entry, next_epoch=True, absent=resolution.absent)
            case NextStep.SCAN_AGAIN | NextStep.WAIT if not self._worker.is_patient:
                self._record(row_state.doubt(entry.known))
                return None
            case NextStep.SCAN_AGAIN:
                self._scans -= 1
                await self._worker.sleep(60.0 * (_SCANS - self._scans))
            case NextStep.SCAN_EVERYWHERE:
                self._everywhere = True
            case NextStep.WAIT:
                await self._worker.sleep(resolution.wait)
            case _:
                self._record(row_state.doubt(entry.known))
                return None
        return self._resolve
