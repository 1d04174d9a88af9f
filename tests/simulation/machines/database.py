"""The model database: rows, chunks and leases, each commit whole. A copy may lack the newest commits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import count

import attrs

from payments_async.bulk._protocol.clocks import Timestamps
from payments_async.bulk._protocol.machines import LEASE, BatchState, ServerIdentity
from payments_async.bulk._protocol.row_state import OPEN, RowKnowledge, RowState, after_loss

from ..ledger import Entry
from ..loop import SimulatedLoop
from ..service import EPOCH

OPENED = EPOCH - 100.0
"""The database's clock when the world begins."""


@attrs.frozen
class Chunk:
    """Some rows, who may send them, and the chain of commits that touched them."""

    rows: tuple[str, ...]
    lease: bytes | None = None
    look_at: float = 0.0
    """When rows in doubt are to be looked at again, by the database's clock."""
    entries: tuple[int, ...] = ()
    leases: int = 0
    """How many were granted."""


@attrs.frozen
class State:
    """All that is committed."""

    rows: Mapping[str, Entry]
    chunks: tuple[Chunk, ...]
    store: ServerIdentity
    """The database that the last commit went to."""
    imported: Timestamps
    batch: BatchState = BatchState.OPEN
    losses: int = 0
    lost: Timestamps | None = None
    """When the last loss was noticed."""
    proven: int = 0
    """The loss of which a reading of the list has shown all lost payouts."""
    commands: frozenset[int] = frozenset()

    def known(self, row: str) -> RowKnowledge:
        """What may be believed of a row, after so many losses."""
        known = self.rows[row].known
        if not self.losses or known.state not in OPEN:
            return known
        counted = after_loss(known, self.losses)
        is_clear = known.state is RowState.NEW and self.proven == self.losses
        return attrs.evolve(counted, cleared=counted.intents) if is_clear else counted

    def with_row(self, row: str, entry: Entry) -> State:
        """The same with other facts of a row."""
        return attrs.evolve(self, rows={**self.rows, row: entry})

    def with_chunk(self, number: int, chunk: Chunk) -> State:
        """The same with another chunk."""
        return attrs.evolve(self, chunks=(*self.chunks[:number], chunk, *self.chunks[number + 1 :]))

    def with_entry(self, number: int, entry: int) -> State:
        """The same with another entry in a chunk's chain."""
        chunk = self.chunks[number]
        return self.with_chunk(number, attrs.evolve(chunk, entries=(*chunk.entries, entry)))

    def chunk_of(self, row: str) -> int:
        """The chunk that a row is in."""
        return next(number for number, chunk in enumerate(self.chunks) if row in chunk.rows)

    def suspect(self, store: ServerIdentity, at: Timestamps) -> State:
        """The same once commits may have been lost: all leases are void, and nothing may be sent."""
        chunks = tuple(attrs.evolve(chunk, lease=None) for chunk in self.chunks)
        facts = {"losses": self.losses + 1, "lost": at, "store": store, "chunks": chunks}
        return attrs.evolve(self, batch=BatchState.SUSPECT, **facts)


class Database:
    """One server at a time, and all that was ever committed."""

    def __init__(
        self, loop: SimulatedLoop, state: State, *, rate: float, note: Callable[[str], None]
    ) -> None:
        """`rate`: how fast its clock goes."""
        self._loop, self._rate, self._note = loop, rate, note
        self._commits = [state]
        self._entries = count(1)
        self._offset = 0.0
        self.state = state
        self.store = state.store
        """What a connection is shown of the server."""
        self.expires = dict[int, float]()
        """When leases end, by chunk. That a copy lacks a renewal makes no difference."""
        self.up = True
        self.sessions = 0
        """Grows whenever all connections break."""
        self.history = 0
        """The truth that nothing in this world knows: how often commits were lost."""
        self.is_noticed = True
        """Whether the last loss was."""

    def now(self) -> float:
        """Its clock."""
        return OPENED + self._rate * self._loop.time() + self._offset

    def commit(self, state: State) -> None:
        """All of it, at once."""
        self.state = state
        self._commits.append(state)

    def new_entry(self) -> int:
        """A hash of a chain's entry: never the same again."""
        return next(self._entries)

    # Leases

    def grantable(self) -> list[tuple[int, str]]:
        """The chunks that anybody may be granted now, and what for: `send` or `look`."""
        if self.state.batch is not BatchState.OPEN:
            return []
        now, send, look = self.now(), list[tuple[int, str]](), list[tuple[int, str]]()
        for number, states in self._open_chunks():
            if self.expires.get(number, now) > now:
                continue
            if RowState.NEW in states or RowState.IN_FLIGHT in states:
                send.append((number, "send"))
            elif self.state.chunks[number].look_at <= now:
                look.append((number, "look"))
        return send or look

    def next_grant(self) -> float:
        """Seconds until any chunk may be granted, if nothing happens before; infinite when none has work."""
        now, lost = self.now(), self.state.lost
        if self.state.batch is not BatchState.OPEN:
            return 1.0 if lost is not None and now < lost.wall + 60.0 else 120.0
        chunks = self.state.chunks
        ends = [max(self.expires.get(n, 0.0), chunks[n].look_at) for n, _ in self._open_chunks()]
        return max(0.0, min(ends, default=math.inf) - now)

    def _open_chunks(self) -> list[tuple[int, set[RowState]]]:
        rows = self.state.rows
        found = []
        for number, chunk in enumerate(self.state.chunks):
            states = {rows[row].known.state for row in chunk.rows}
            if not states.isdisjoint(OPEN):
                found.append((number, states))
        return found

    def grant(self, number: int, lease: bytes) -> None:
        """Lease a chunk, and commit that."""
        chunk = self.state.chunks[number]
        leased = attrs.evolve(chunk, lease=lease, leases=chunk.leases + 1)
        self.commit(self.state.with_chunk(number, leased))
        self.expires[number] = self.now() + LEASE

    def renew(self, number: int, lease: bytes) -> bool:
        """Renew a lease; False when the chunk has another one. Equality alone decides."""
        if self.state.batch is not BatchState.OPEN or self.state.chunks[number].lease != lease:
            return False
        self.expires[number] = self.now() + LEASE
        return True

    def give_back(self, number: int, lease: bytes, look_after: float) -> None:
        """Free a chunk, unless it has another lease. Rows in doubt are looked at after so many seconds."""
        chunk = self.state.chunks[number]
        if chunk.lease == lease:
            look_at = self.now() + look_after
            self.commit(self.state.with_chunk(number, attrs.evolve(chunk, lease=None, look_at=look_at)))
            self.expires.pop(number, None)

    def void_leases(self, at: Timestamps) -> None:
        """Make the batch suspect, and commit that."""
        self.commit(self.state.suspect(self.store, at))
        self.is_noticed = True
        self.expires = {number: void_until(self.now()) for number in range(len(self.state.chunks))}

    # What befalls it

    def set_clock(self, seconds: float) -> None:
        """Set it forward, or back."""
        self._offset += seconds

    def restart(self) -> None:
        """The same server with all its commits."""
        self.sessions += 1
        if self.store.timeline is None:
            self.store = attrs.evolve(self.store, started=f"{self.sessions}")

    def fail_over(self, lag: int, ahead: float) -> None:
        """A copy that lacks so many commits goes on, with a clock that is so many seconds ahead."""
        self.restart()
        self.set_clock(ahead)
        if self.store.timeline is not None:
            self.store = attrs.evolve(self.store, timeline=self.store.timeline + 1)
        self._fall_back(lag)

    def restore(self, lag: int) -> None:
        """A dump from before the last so many commits goes on."""
        self.restart()
        system, tables = self.store.system, self.store.tables + 1
        self.store = attrs.evolve(self.store, system=system and system + 1, tables=tables)
        self._fall_back(lag)

    def _fall_back(self, lag: int) -> None:
        lag = min(lag, len(self._commits) - 1)
        if not lag:
            self._note("a copy took over with every commit")
            return
        before, self._commits = self.state, self._commits[:-lag]
        self.state = self._commits[-1]
        self.history += 1
        self.is_noticed = False
        for what in lost(before, self.state):
            self._note(f"lost: {what}")


def void_until(now: float) -> float:
    """When all leases that were granted before have ended for their holders, who may not have heard of it."""
    return now + LEASE


def _leases(state: State) -> int:
    return sum(chunk.leases for chunk in state.chunks)


def lost(before: State, after: State) -> list[str]:
    """What the older of two states lacks."""
    pairs = [(before.rows[row].known, entry.known) for row, entry in after.rows.items()]
    facts = {
        "an intent": any(newer.intents > older.intents for newer, older in pairs),
        "an outcome": any(newer.state not in OPEN and older.state in OPEN for newer, older in pairs),
        "a lease": _leases(before) > _leases(after),
        "a command": before.commands > after.commands,
        "a recovery": before.losses > after.losses,
    }
    return [what for what, is_lost in facts.items() if is_lost]
