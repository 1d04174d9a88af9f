"""What the protocol must never do, watched from outside it, request by request and claim by claim.

Most of these are belt and braces: a reference alone keeps a row from being paid twice. They are promised all
the same, and each is checked here with the true time and the true books.
"""

from __future__ import annotations

from payments_async.bulk._protocol.attempts import AttemptReply
from payments_async.bulk._protocol.clocks import INTENT_LIFETIME
from payments_async.bulk._protocol.row_state import RowKnowledge, RowState

from .ledger import Breach, Disk, Entry
from .plan import DAY
from .service import Payment, Request, Service

_ABANDONED = 900.0


class Promises:
    """Watches one world."""

    def __init__(self, services: list[Service]) -> None:
        self._services = services
        self._first_use: dict[str, tuple[float, str, int]] = {}
        self._stuck: set[tuple[str, str, int]] = set()
        self._last_send: dict[tuple[str, str, int], tuple[int, float]] = {}
        self.corrections_may_be_lost = False
        """Whether a row's own payout may have another body than its ledger knows."""

    def history(self, disk: Disk) -> str:
        """The name of a ledger, which is another one once it has lost commits."""
        return disk.name

    def is_recorded(self, disk: Disk, entry: Entry) -> bool:
        """Whether the ledger has had this intent on its disk."""
        return disk.rows[entry.body.row].known.intents >= entry.known.intents

    def sending(self, request: Request, disk: Disk, entry: Entry, under_way: int, now: float) -> None:
        """A request is about to leave. Raises Breach."""
        if not self.is_recorded(disk, entry):
            raise Breach("sent before its intent was on disk")
        if under_way:
            raise Breach("two requests for one row at once")
        if (self.history(disk), request.key, entry.known.intents) in self._stuck:
            raise Breach("asked again with a key whose stored answer is an error")
        if now - entry.intended_at > INTENT_LIFETIME + 1:
            raise Breach("sent under an intent of long ago")
        self._check_key(request, disk, entry.known.revision, now)
        self._check_epoch(request, entry.known, now)

    def heard(self, disk: Disk, key: str, entry: Entry, reply: AttemptReply) -> None:
        """An answer came: a stored error stays the answer to its key."""
        if reply.replayed and reply.status in (408, 409, 429, 500, 502):
            self._stuck.add((self.history(disk), key, entry.known.intents))

    def _check_key(self, request: Request, disk: Disk, revision: int, now: float) -> None:
        use = (now, request.body.hash, revision)
        used, body, for_revision = self._first_use.setdefault(f"{self.history(disk)} {request.key}", use)
        if body != request.body.hash:
            raise Breach("one idempotency key with two bodies")
        if for_revision != revision:
            raise Breach("asked for anew with the idempotency key that was refused")
        if now - used >= DAY:
            raise Breach("an idempotency key used after the service forgot it")

    def _check_epoch(self, request: Request, known: RowKnowledge, now: float) -> None:
        epoch, last = self._last_send.get(request.origin, (known.epoch, now))
        if known.epoch > epoch and now - last < _ABANDONED:
            raise Breach("the next key while a request of the last one could still be carried out")
        self._last_send[request.origin] = (known.epoch, now)

    def claiming(self, ledger: str, entry: Entry, known: RowKnowledge, reference: str) -> None:
        """A ledger is about to claim something of a row. Raises Breach."""
        origin = (ledger, entry.body.row, known.generation)
        if known.cleared > entry.known.cleared and self._made_by(origin):
            raise Breach(f"{known.state}: requests are said to have made nothing, but made a payout")
        if known.state is RowState.CREATED:
            self.check_created(entry, known, reference)
        elif known.state is RowState.CONFLICT:
            self.check_conflict(entry, known, reference, ledger)

    def _made_by(self, origin: tuple[str, str, int]) -> list[Payment]:
        return [p for service in self._services for p in service.payments if p.origin == origin]

    def check_created(self, entry: Entry, known: RowKnowledge, reference: str) -> None:
        """The payout of a created row is in the books, as the row asks for it. Raises Breach."""
        for service in self._services:
            payment = service.by_reference.get(reference)
            if payment is not None and payment.id == known.payout_id and is_same(payment, entry, known):
                return
        raise Breach("CREATED: the books have no such payout")

    def check_conflict(self, entry: Entry, known: RowKnowledge, reference: str, ledger: str) -> None:
        """The reference of a row in conflict is somebody else's or another body's. Raises Breach."""
        payments = [service.by_reference.get(reference) for service in self._services]
        if not any(payments):
            raise Breach("CONFLICT: nobody has the reference")
        for payment in payments:
            own = payment is not None and payment.origin == (ledger, entry.body.row, known.generation)
            if own and not self.corrections_may_be_lost:
                raise Breach("CONFLICT: the payout is the row's own")
            if payment is not None and is_same(payment, entry, known):
                raise Breach("CONFLICT: the payout is as the row asks for it")


def is_same(payment: Payment, entry: Entry, known: RowKnowledge) -> bool:
    """Whether a payout is what a row asks for, whichever ledger sent it."""
    if payment.origin is None or payment.body is None:
        return False
    asked = (entry.body.row, known.generation, entry.body.content)
    return asked == (*payment.origin[1:], payment.body.content)
