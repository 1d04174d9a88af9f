"""Keeps a worker's leases: renews all of them every few seconds, and ends the work under one that is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Self

from ..._runtime import Runtime, Timer
from .._engine.sender import LEASE_LOST
from .._protocol import machines
from ..ledger_errors import LedgerUnavailable

if TYPE_CHECKING:
    from .._ledger.postgresql.leases import Lease, Renewal

_AGAIN: Final = 1.0
"""Seconds until a renewal that failed is tried again."""


class LeasedWork:
    """One piece of work, the leases that it needs, and the order that ended it."""

    def __init__(self, leases: Sequence[Lease], on_halt: Callable[[str], object]) -> None:
        """`on_halt`: called once, with the reason, to begin no further request."""
        self._on_halt = on_halt
        self.leases: Sequence[Lease] = leases
        self.halt: str | None = None
        """Why the work was ended before its end; None when it was not."""

    def end(self, reason: str) -> None:
        """End the work. Only the first order counts."""
        if self.halt is None:
            self.halt = reason
            self._on_halt(reason)


class LeaseKeeper:
    """Renews the leases of one worker, in a task of its own: `async with`."""

    def __init__(
        self,
        runtime: Runtime,
        renew: Callable[[Sequence[Lease]], Awaitable[Renewal]],
        on_renewal: Callable[[Renewal], object],
        on_failure: Callable[[], object],
    ) -> None:
        """`renew` raises LedgerUnavailable when the database does not answer within seconds.

        `on_failure`: called when something else is raised; the leases are lost then.
        """
        self._runtime, self._renew = runtime, renew
        self._on_renewal, self._on_failure = on_renewal, on_failure
        self._works: list[LeasedWork] = []
        self._task: asyncio.Task[None] | None = None
        self.is_answered: bool = True
        """True if the database answered the last renewal."""
        self._timer: Timer | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.ensure_future(self._keep())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.result()

    @contextmanager
    def keeping(self, leases: Sequence[Lease], on_halt: Callable[[str], object]) -> Iterator[LeasedWork]:
        """Context of work under leases, which are renewed meanwhile."""
        work = LeasedWork(leases, on_halt)
        self._works.append(work)
        self._watch()
        try:
            yield work
        finally:
            self._works.remove(work)
            self._watch()

    async def _keep(self) -> None:
        try:
            while True:
                self.is_answered = await self._renew_all()
                await self._runtime.sleep(machines.RENEW_EVERY if self.is_answered else _AGAIN)
        except Exception:
            for work in self._works:
                work.end(LEASE_LOST)
            self._on_failure()
            raise

    async def _renew_all(self) -> bool:
        """Renew all leases; False when the database did not answer."""
        try:
            renewal = await self._renew([lease for work in self._works for lease in work.leases])
        except LedgerUnavailable:
            return False
        self._on_renewal(renewal)
        for work in self._works:
            if (halt := halt_of(work.leases, renewal)) is not None:
                work.end(halt)
        self._watch()
        return True

    def _watch(self) -> None:
        """Set the timer for the first lease that ends unless it is renewed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        ends = [lease.ends for work in self._works if work.halt is None for lease in work.leases]
        now = self._runtime.boottime()
        if ends and now is not None:
            self._timer = self._runtime.call_later(max(min(ends) - now, 0.0), self._expire)

    def _expire(self) -> None:
        for work in [each for each in self._works if not all(lease.is_valid() for lease in each.leases)]:
            work.end(LEASE_LOST)
        self._watch()


def halt_of(leases: Sequence[Lease], renewal: Renewal) -> str | None:
    """Why the work under some leases begins no further request after a renewal; None to go on."""
    if any(lease.is_lost for lease in leases):
        return LEASE_LOST
    reasons = (renewal.hold_reasons.get(lease.batch.batch) for lease in leases)
    return next((f"the batch is {why}" for why in reasons if why), None)
