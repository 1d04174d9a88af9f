"""The ledger of a worker: the chunks of a batch that it holds. The engine works on it as on a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

from ..._protocol.clocks import Timestamps
from ..._protocol.outcomes import Outcome
from ..._protocol.records import Claim, IntentTimes, LedgerRow, Resend
from ...ledger_errors import NO_INTENT, LeaseLost, LedgerDamaged, LedgerError, LedgerMissing
from ..chunks import BATCH_CHUNK, Chunk
from ..statements import Statement
from .database import Database
from .leases import Lease
from .ledger import PostgresLedger


class LeasedChunks(PostgresLedger):
    """Chunks of one batch, each under a lease. It sends their rows, and counts no others in `totals`.

    It records outcomes of any row of the batch.
    """

    def __init__(
        self, database: Database, batch_id: str, clock: Callable[[], Timestamps], leases: Sequence[Lease]
    ) -> None:
        """Use `under`."""
        super().__init__(database, batch_id, clock)
        self._leases = {lease.chunk: lease for lease in leases}
        self.failure: LedgerError | None = None
        """The error, other than a lost lease, for which the last intent was refused."""
        self._claimed: dict[int, int] = {}
        """{chunk: the highest number of its rows that was claimed}."""

    @classmethod
    async def under(
        cls, database: Database, leases: Sequence[Lease], *, clock: Callable[[], Timestamps]
    ) -> Self:
        """Open the chunks of these leases, all of one batch. The database stays open.

        Raises LedgerMissing, and LedgerError.
        """
        ledger = cls(database, leases[0].batch.batch_id, clock, leases)
        await ledger.refresh()
        if ledger.is_empty:
            raise LedgerMissing(ledger.path, "the batch is no longer there")
        return ledger

    async def close(self) -> None:
        """Do nothing: other chunks' ledgers use the database too."""

    def _counted(self, batch: int) -> Statement:
        return self._sql.chunks_numbered, (batch, sorted(self._leases.keys() - {BATCH_CHUNK}))

    def may_send(self, row: LedgerRow) -> Callable[[], bool] | None:
        """The question to ask right before the first byte of a claimed row is sent."""
        return self._leases[self.facts.batch.chunk_of(row.number)].is_valid

    def _claiming(self) -> Iterable[tuple[int, int]]:
        return [(chunk, self._claimed.get(chunk, 0)) for chunk in self._leases]

    async def claim(self, limit: int) -> Claim:
        """Mark up to `limit` NEW rows of one held chunk IN_FLIGHT. Raises one of `NO_INTENT`."""
        for chunk, after in self._claiming():
            if not self._figures[chunk].count(Outcome.NOT_STARTED):
                continue
            lease = self._leases[chunk]
            with self._noting_loss():
                commit = await self._committer.claim(chunk, after=after, limit=limit, lease=lease.id)
            if commit.rows:
                self._claimed[chunk] = commit.rows[-1].number
                return Claim(commit.rows, commit.at)
        return Claim((), self._clock())

    async def resend(self, resends: Iterable[Resend]) -> Claim:
        """Record intents to post unfinished rows of held chunks again. Raises one of `NO_INTENT`."""
        leases = {chunk: lease.id for chunk, lease in self._leases.items()}
        with self._noting_loss():
            commit = await self._committer.resend(resends, leases)
        return Claim(commit.rows, commit.at)

    async def intent_times(self, rows: Iterable[LedgerRow]) -> Mapping[int, IntentTimes]:
        """{row number: times of its intents}, without rows that have none under their present key.

        Raises LeaseLost when an intent of theirs is among commits that a fail-over lost.
        """
        asked = tuple(rows)
        try:
            return await super().intent_times(asked)
        except LedgerDamaged:
            with self._noting_loss():
                for chunk in self.facts.batch.chunks_of(row.number for row in asked):
                    await self._committer.claim(chunk, after=0, limit=0, lease=self._leases[chunk].id)
            raise

    @contextmanager
    def _noting_loss(self) -> Iterator[None]:
        """Context of an intent. When it is refused, no request begins under these leases any more."""
        try:
            yield
        except LeaseLost:
            for lease in self._leases.values():
                lease.is_lost = True
            raise
        except NO_INTENT as error:
            self.failure = error
            raise

    async def _left(self) -> list[tuple[Chunk, int | None]]:
        chunks = await self._chunks(self._leases)
        return [(chunk, self._leases[chunk.number].begun_in) for chunk in chunks]
