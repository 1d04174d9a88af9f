"""A process's connection to the database: it breaks, it is cut, and a commit's answer may not come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import attrs

from payments_async.bulk._protocol.machines import OwnCommits, loss_of

from ..loop import host_context
from .database import Database, State
from .plan import Fleet

T = TypeVar("T")
Transaction = Callable[[], T]
"""What is done in the database, all of it at once."""
_SERVER = host_context("database")


class Unreachable(Exception):
    """No answer: what was asked for may have been done."""


class Line:
    """One process's."""

    def __init__(
        self,
        database: Database,
        fleet: Fleet,
        chance: Callable[[], float],
        clock: Any,
        note: Callable[[str], None],
        on_suspect: Callable[[], object],
    ) -> None:
        self._database, self._fleet, self._chance = database, fleet, chance
        self._clock, self._note, self._on_suspect = clock, note, on_suspect
        self._session = -1
        self._losses = 0
        self.heads: dict[int, int] = {}
        """The last entries that this process saw committed, by chunk."""
        self.is_cut = False
        self.loses_answers = True

    async def run(self, loop: asyncio.AbstractEventLoop, transaction: Transaction[T]) -> T:
        """Its answer. Raises Unreachable."""
        answer: asyncio.Future[T] = loop.create_future()
        loop.call_later(0.01 + 0.02 * self._chance(), self._arrive, transaction, answer, context=_SERVER)
        return await answer

    def _arrive(self, transaction: Transaction[T], answer: asyncio.Future[T]) -> None:
        try:
            result = self.reach(transaction)
        except Unreachable:
            answer.get_loop().call_later(3.0, partial(_fail, answer), context=_SERVER)
            return
        if self.loses_answers and self._chance() < 0.02:
            self._note("the answer to a commit was lost")
            _fail(answer)
        elif not answer.done():
            answer.set_result(result)

    def reach(self, transaction: Transaction[T]) -> T:
        """The same without any delay. Raises Unreachable."""
        database = self._database
        if self.is_cut or not database.up:
            raise Unreachable
        if self._session != database.sessions:
            self._greet()
        self._clock.note(database.now())
        return transaction()

    @property
    def is_connected(self) -> bool:
        """Whether it would be reached without a new connection."""
        return self._session == self._database.sessions and self._database.up and not self.is_cut

    def _greet(self) -> None:
        """See whether commits were lost, before anything else."""
        database, state = self._database, self._database.state
        loss = loss_of(state.store, database.store, self._fleet.standbys, self._own(state))
        if loss is not None:
            self._note(f"loss: {loss.name}")
            database.void_leases(self._clock.moment())
            self._on_suspect()
        elif state.store != database.store:
            self._note("another server with every commit")
            database.commit(attrs.evolve(state, store=database.store))
        self._session = database.sessions
        if self._losses != database.state.losses:
            self.heads.clear()
            self._losses = database.state.losses

    def _own(self, state: State) -> OwnCommits:
        """Whether this process's last commits are there, as far as it can tell: not across a recovery."""
        if not self.heads or self._losses < state.losses:
            return OwnCommits.NONE
        there = all(head in state.chunks[chunk].entries for chunk, head in self.heads.items())
        return OwnCommits.THERE if there and self._losses == state.losses else OwnCommits.MISSING


def _fail(answer: asyncio.Future[Any]) -> None:
    if not answer.done():
        answer.set_exception(Unreachable())
