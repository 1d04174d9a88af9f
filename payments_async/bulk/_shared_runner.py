"""The work on a batch in a database, which other processes may work on at the same time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import attrs

from ..client import AsyncPayments
from ..errors import PaymentsError
from ._ledger.opening import SHARED
from ._options import composed
from ._reconcile import same_account
from ._runner import BatchRunner
from ._session import BatchSession, OnProgress

if TYPE_CHECKING:
    from ._engine.engine import Pace
    from ._engine.stopping import Stopping
    from ._ledger.postgresql.ledger import PostgresLedger
    from ._protocol.stop_rules import StopRules
    from ._reconcile.recover import RecoveryReport
    from ._report import Snapshot


class SharedSession(BatchSession):
    """One batch of a database, between opening and closing."""

    _needs = SHARED

    def __init__(
        self,
        address: str,
        client: AsyncPayments | None,
        *,
        create: bool,
        batch_id: str | None,
        insecure_database: bool,
    ) -> None:
        super().__init__(address, client, create=create, batch_id=batch_id)
        self.insecure_database: bool = insecure_database
        """True if a database on another host needs no proof of its name."""

    @property
    def file(self) -> None:
        """None: the ledger is no file."""

    @property
    def ledger(self) -> PostgresLedger:
        """The open ledger. Raises BulkError."""
        return cast("PostgresLedger", super().ledger)  # as `_opened` has made it

    async def open(self) -> None:
        """Connect to the database, whose clock decides from then on. Raises LedgerError, BulkError."""
        await super().open()
        if self._service is not None:
            self._service.follow(self.ledger.now)

    async def _opened(self, *, create: bool, must_exist: bool, read_only: bool) -> PostgresLedger:
        from ._ledger.opening import open_shared

        return await open_shared(
            self.address,
            batch_id=composed(self.batch_id),
            clock=self.moment,
            runtime=self.runtime,
            create=create,
            must_exist=must_exist,
            insecure_database=self.insecure_database,
        )

    def share_limits(self) -> None:
        """Take the client's rate from the database, unless it has a limit store or a part."""
        assert self.client is not None  # or there is no work
        self.client._internal.use_limit_store(self.address, insecure_database=self.insecure_database)

    async def learn_time(self) -> None:
        """Learn the service's time for the import: a recovery reads the list from then on."""
        if self.ledger.is_empty:
            with contextlib.suppress(PaymentsError):  # then a recovery reads the whole list
                await self.service.check_access()


class SharedRunner(BatchRunner):
    """Runs the work of this process on one batch."""

    _session: SharedSession

    @property
    def _hold(self) -> str | None:
        return self._session.ledger.hold_reason

    async def plan(self, rules: StopRules, *, lossy_standby: bool) -> None:
        """Let workers begin under these rules. Without a client they check the account themselves."""
        ledger = self._session.ledger
        await ledger.refresh()
        if self._session.client is not None:
            await same_account.require_place(ledger, self._session.service)
        await ledger.plan(rules, lossy_standby=lossy_standby)

    async def snapshot(self) -> Snapshot:
        """Read what a reader shows, and which workers hold rows."""
        ledger = self._session.ledger
        found = await super().snapshot()
        return attrs.evolve(found, rule=ledger.stopped, workers=await ledger.workers())

    async def recover(
        self, on_progress: OnProgress | None, *, commands_complete: bool, by_hand: bool
    ) -> RecoveryReport:
        """Learn from the list what the database has lost."""
        from ._reconcile.recover import recover

        ledger, service = self._session.ledger, self._session.service
        async with self._under_way("reconciling", on_progress):
            await same_account.require_place(ledger, service)
            on_commit = self._on_commit(on_progress)
            return await recover(
                ledger, service, on_commit, commands_complete=commands_complete, by_hand=by_hand
            )

    async def _pay(self, pace: Pace, stopping: Stopping, on_commit: Callable[[], object]) -> None:
        """Plan, then pay beside other processes that may do so."""
        from .workers._batch_run import FiguresReader, batch_run, note_hold

        session, ledger = self._session, self._session.ledger
        await ledger.plan(pace.rules)
        batch_id = ledger.header.binding.batch_id
        assert session.client is not None  # or there is no service
        figures = FiguresReader(ledger, session.service.runtime, on_commit)
        place = (session.client, session.address, batch_id)
        run = batch_run(*place, pace, stopping, figures.note, insecure_database=session.insecure_database)
        self._engine = run
        async with figures.reading():
            await run.run()
        await note_hold(ledger, stopping, session.client._internal.guard_digest)
