"""The sums of a guard for calls on any loop: asked in a thread where processes share them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from .._emitter import logger
from .._extras import needs
from .._runtime import Runtime
from ..errors import ConfigurationError, LimitStoreUnavailable
from .sqlite import MemoryState
from .state import StateUnavailable, SumsState
from .sums import GuardSums, Outcome, Shortage, WriteAmount

PATIENCE: Final = 5.0
"""Seconds after which a state that is away refuses."""
RETRY: Final = 0.25
"""Seconds until a state that is away is tried again."""


class GuardAccount:
    """The sums of one guard, as this process's calls ask for them."""

    def __init__(self, state: SumsState, owner: str, runtime: Runtime) -> None:
        self.sums: GuardSums = GuardSums(state, owner)
        self._runtime = runtime
        self._shared = None if isinstance(state, MemoryState) else state

    async def reserve(self, amount: WriteAmount, seconds: float) -> Shortage | None:
        """Reserve an amount, within so many seconds. Returns why it does not fit.

        Raises LimitStoreUnavailable, ConfigurationError for a state that is wrong, and TimeoutError where
        less time was given than a state may take.
        """
        if self._shared is None:
            return self.sums.reserve(amount)
        why = ""
        with suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, PATIENCE)):
                while True:
                    try:
                        work = self._shared.thread.submit(partial(self.sums.reserve, amount))
                        return await asyncio.wrap_future(work)
                    except StateUnavailable as error:
                        why = str(error)
                    except ConfigurationError as error:
                        raise ConfigurationError(f"the guard's sums cannot be read: {error}") from None
                    await self._runtime.sleep(RETRY)
        if not why and seconds < PATIENCE:
            raise TimeoutError
        text = f"the guard's sums cannot be read: {why or 'it did not answer'}"
        raise LimitStoreUnavailable(text, retry_after=PATIENCE)

    def settle(self, amount: WriteAmount, outcome: Outcome) -> None:
        """Note how a call ended, before the next reservation and the end of the process.

        Where that fails the amount counts for longer, as one without outcome does.
        """
        if self._shared is None:
            self.sums.settle(amount, outcome)
            return
        self._shared.thread.submit(partial(self._settle, amount, outcome))

    def _settle(self, amount: WriteAmount, outcome: Outcome) -> None:
        try:
            self.sums.settle(amount, outcome)
        except (StateUnavailable, ConfigurationError) as error:
            logger.warning("the guard's sums could not be told how a payout ended: %s", error)


def state_at(place: str, make: Callable[[], SumsState]) -> SumsState:
    """The process's one state at a place: a file, a database, or the account of a guard with a name."""
    if place not in _states:
        _states[place] = make()
    return _states[place]


def database_state(url: str, runtime: Runtime, *, insecure_database: bool) -> SumsState:
    """A state in a database. Raises ConfigurationError for an address that cannot be used."""
    try:
        from .postgresql import DatabaseState
    except ImportError as error:
        raise ConfigurationError(needs("sums in PostgreSQL need", "postgresql")) from error
    return DatabaseState(url, runtime, insecure_database=insecure_database)


_states: Final[dict[str, SumsState]] = {}
