"""What really happens between workers and the ledger, seen from outside both. Raises Breach."""

from __future__ import annotations

import attrs

from payments_async.bulk._protocol.identifiers import Identity
from payments_async.bulk._protocol.machines import BatchState
from payments_async.bulk._protocol.row_state import RowKnowledge, RowState

from ..ledger import Breach, Disk, Entry
from ..promises import Promises
from ..service import Service
from ..worker import BATCH, named
from .database import Database, State

LEDGER = "ledger"
ENVIRONMENT = "live"


@attrs.define(eq=False)
class Lease:
    """A lease, as the worker knows it."""

    id: bytes
    chunk: int
    kind: str
    ends: float
    """For the worker itself, on its clock that counts suspension."""
    serial: int
    """The truth: how many leases of the chunk were granted before, in all histories."""
    history: int
    """The truth: the ledger's history in which it was granted."""
    is_lost: bool = False


class Watch(Promises):
    """Watches one world of several machines."""

    def __init__(self, services: list[Service], database: Database, *, steps_clock: bool) -> None:
        super().__init__(services)
        self.corrections_may_be_lost = True
        self._database, self._steps_clock = database, steps_clock
        self._newest: dict[int, int] = {}
        self._recorded: dict[int, Entry] = {}
        """Intents on the disk, by identity."""
        self.cancelled: set[str] = set()
        """Rows that the operator was told are cancelled."""

    def next_serial(self, chunk: int) -> int:
        """Count a grant: from now on no older lease of the chunk may be used."""
        serial = self._newest[chunk] = self._newest.get(chunk, 0) + 1
        return serial

    def is_newest(self, lease: Lease) -> bool:
        """Whether no newer lease of its chunk was granted."""
        return self._newest[lease.chunk] == lease.serial

    def intending(self, lease: Lease, entry: Entry, state: State) -> None:
        """An intent is committed."""
        if not self._database.is_noticed:
            raise Breach("an intent in a ledger that lost commits, before anybody noticed")
        if state.batch is not BatchState.OPEN:
            raise Breach(f"an intent while the batch is {state.batch}")
        if not self.is_newest(lease):
            raise Breach("an intent under an older lease after a newer one began")
        self._recorded[id(entry)] = entry

    def departing(self, lease: Lease, entry: Entry) -> None:
        """The first byte of a request leaves."""
        if entry.body.row in self.cancelled:
            raise Breach("a cancelled row is sent")
        if not self._steps_clock and not self.is_newest(lease):
            raise Breach("sent under an older lease after a newer one began")

    def claiming(self, ledger: str, entry: Entry, known: RowKnowledge, reference: str) -> None:
        """What a worker believes is no claim of the ledger: see `committing`."""

    def committing(self, entry: Entry, known: RowKnowledge) -> None:
        """The ledger is about to claim something of a row. Raises Breach."""
        counts = (known.generation, known.epoch, known.revision)
        if known.state in (RowState.CREATED, RowState.CONFLICT):  # what came before no longer counts
            entry = attrs.evolve(entry, known=attrs.evolve(entry.known, cleared=known.cleared))
        reference, _ = named(Identity(ENVIRONMENT, BATCH, entry.body.row, *counts), entry.body.hash)
        super().claiming(LEDGER, entry, known, reference)

    def history(self, disk: Disk) -> str:
        """Each loss of commits begins another one."""
        lease: Lease = getattr(disk, "lease")  # noqa: B009 # a view of a leased chunk
        return f"{disk.name} {lease.history}"

    def is_recorded(self, disk: Disk, entry: Entry) -> bool:
        """Whether this very intent was committed, in whatever history."""
        return id(entry) in self._recorded
