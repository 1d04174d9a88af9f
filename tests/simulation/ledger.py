"""The model disk and ledger: group commits, full disks, errors of commit, power cuts."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import attrs

from payments_async.bulk._protocol.clocks import Timestamps
from payments_async.bulk._protocol.row_state import RowKnowledge, merge, rank
from payments_async.bulk._protocol.stop_rules import Account

from .loop import SimulatedLoop, host_context
from .plan import Body


@attrs.frozen
class Entry:
    """A row of the ledger."""

    body: Body
    known: RowKnowledge = attrs.field(factory=RowKnowledge)
    first_intent: Timestamps | None = None
    key_made: Timestamps | None = None
    intended: Timestamps | None = None
    intended_at: float = 0.0
    """True time of that, for the promises only."""


class Disk:
    """What survives a power cut."""

    def __init__(self, name: str, rows: dict[str, Entry], place: Account | None = None) -> None:
        self.name = name
        self.rows = rows
        self.place = place

    @property
    def is_touched(self) -> bool:
        """Whether anything of it may have been sent."""
        return any(entry.known.intents or entry.known.generation for entry in self.rows.values())

    def copy(self, name: str) -> Disk:
        """Another file with the same content."""
        return Disk(name, dict(self.rows), self.place)


class Breach(Exception):
    """The protocol broke a promise; the text says which."""


class Ledger:
    """An open ledger: what its process sees, and a queue of what is not on disk yet."""

    def __init__(
        self, loop: SimulatedLoop, host: str, disk: Disk, chance: random.Random, note: Callable[[str], None]
    ) -> None:
        self._loop, self._random, self._note = loop, chance.random, note
        self._context = host_context(host)
        self._queue: list[tuple[str, Entry, asyncio.Future[Any]]] = []
        self._committing = False
        self.disk = disk
        self.rows = dict(disk.rows)
        self.healthy = False
        self.full = False
        """No room, except for outcomes (the ballast)."""

    def intend(self, row: str, base: RowKnowledge, entry: Entry) -> asyncio.Future[bool] | None:
        """Compare and set; then wait for the commit, which may fail. None when somebody else was faster."""
        return None if self.rows[row].known != base else self._put(row, entry)

    def record(self, row: str, known: RowKnowledge) -> RowKnowledge:
        """An outcome, and what is known with it. It may come late: what is known only grows."""
        entry = self.rows[row]
        merged = merge(entry.known, known)
        if rank(merged) < rank(entry.known):
            raise Breach("a late outcome took away what was known")
        if merged != entry.known:
            self._put(row, attrs.evolve(entry, known=merged))
        return merged

    def _put(self, row: str, entry: Entry) -> asyncio.Future[bool]:
        self.rows[row] = entry
        done = self._loop.create_future()
        self._queue.append((row, entry, done))
        if not self._committing:
            self._committing = True
            self._loop.call_later(0.02 * self._random(), self._commit, context=self._context)
        return done

    def _commit(self) -> None:
        """One transaction for all that waits: it is on disk with the end of this callback, or not at all."""
        self._committing = False
        queue, self._queue = self._queue, []
        kept, told = self._fate(queue)
        if kept:
            self.disk.rows.update({row: entry for row, entry, _ in queue})
        for _, _, done in queue:
            if not done.done():
                done.set_result(told)

    def _fate(self, queue: list[tuple[str, Entry, asyncio.Future[Any]]]) -> tuple[bool, bool]:
        """Whether it gets to disk, and whether the ledger says so."""
        if self.healthy:
            return True, True
        draw = self._random()
        if draw < 0.006:
            self._note("error of commit")
            self.full = True  # the handle is poisoned: nothing more through it
            return draw < 0.003, False
        if draw < 0.015:
            self.full = True
        if not self.full:
            return True, True
        intents = any(entry.known.state == "IN_FLIGHT" for _, entry, _ in queue)
        self._note("disk full at intent" if intents else "disk full at outcome")
        return not intents, not intents
