"""The transactions of a recovery: what is known of a loss, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import attrs

from ...ledger_errors import LedgerUnavailable
from ...protocol.clocks import Timestamps
from ...protocol.machines import BatchState, Loss, LossState, OperatorCommand
from .. import chunks as _chunks
from ..chunks import WHOLE, Batch, Entered, Locked
from ..database import Transaction
from ..rows import readable
from ..statements import Rows
from .batches import Clock, commit, noted, standbys
from .driver.database import Database
from .failover import mark

_LOSS: Final = (
    "SELECT b.state, b.reason, b.losses, e.wall, e.monotonic, e.session, e.server FROM payments.batches b "
    "LEFT JOIN payments.entries e ON e.batch = b.batch AND e.chunk = 0 AND e.number = b.lost_in "
    "WHERE b.batch = %s"
)
_COMMANDS: Final = (
    "SELECT kind, wall, monotonic, session, server, changes FROM payments.entries "
    "WHERE batch = %s AND chunk = 0 AND kind <> ALL('{header,server,loss,recover,root}') ORDER BY number"
)
_DATE: Final = "UPDATE payments.batches SET lost_in = %s WHERE batch = %s"
_PROVEN: Final = "UPDATE payments.batches SET lost_in = NULL WHERE batch = %s"
_CONFIRMED: Final = (
    "UPDATE payments.batches SET state = resumes_as, resumes_as = NULL, reason = NULL, standbys = %s "
    "WHERE batch = %s AND state = 'suspect'"
)


@attrs.frozen
class Recovery:
    """The recovery of one batch. Every method may raise LedgerError."""

    database: Database
    batch: Batch
    clock: Clock

    async def begin(self, *, by_hand: bool) -> LossState | None:
        """Read what is known of a loss; None when there is none. `by_hand`: there is one now."""

        async def work(transaction: Transaction) -> Entered | None:
            locking = _chunks.locking(transaction, self.batch.batch, [WHOLE])
            found, loss = await transaction.read(locking, (_LOSS, (self.batch.batch,)))
            locked, lost = Locked.of(found), _lost(loss)
            if by_hand:  # also of a batch that has lost some already: an older copy may be of before that
                return mark(transaction, self.batch, locked, self.clock, Loss.BY_HAND, "{}")
            if lost is None or lost.server is not None or self.clock().server is None:
                return None
            # the loss gets a moment on the service's clock: it alone tells later sessions how old that is
            entered = noted(transaction, self.batch, locked, self.clock, "recover", "{}")
            transaction.write((_DATE, (entered.entry.number, self.batch.batch)))
            return entered

        await commit(self.database, self.batch, work)
        return await self._state()

    async def end(self, state: LossState, *, confirmed: bool, proven: bool) -> None:
        """Record what was found. Raises LedgerUnavailable when more commits were lost meanwhile."""
        seen_now = await standbys(self.database)
        text = json.dumps({"confirmed": confirmed, "proven": proven})

        async def work(transaction: Transaction) -> Entered | None:
            (found,) = await transaction.read(_chunks.locking(transaction, self.batch.batch, [WHOLE]))
            locked = Locked.of(found)
            if locked.losses != state.losses or not locked.is_here:
                raise LedgerUnavailable(
                    self.database.label, "commits were lost again meanwhile: recover again"
                )
            if proven:
                transaction.write((_PROVEN, (self.batch.batch,)))
            if confirmed:
                transaction.write((_CONFIRMED, (seen_now.value, self.batch.batch)))
            return noted(transaction, self.batch, locked, self.clock, "recover", text)

        await commit(self.database, self.batch, work)

    async def _state(self) -> LossState | None:
        loss, commands = await self.database.read(
            (_LOSS, (self.batch.batch,)), (_COMMANDS, (self.batch.batch,))
        )
        with readable("an entry"):
            state, reason, losses, *_ = loss[0]
            is_suspect, lost = state == BatchState.SUSPECT, _lost(loss)
            if not is_suspect and lost is None:
                return None
            (_, *imported, _), *_ = commands
            return LossState(
                reason or "commits were lost",
                is_suspect,
                lost,
                losses,
                Timestamps(*imported),
                tuple(map(_command, commands)),
            )


def _lost(found: Rows) -> Timestamps | None:
    """Read the moment after which nothing was lost any more; None when all is proven."""
    *_, wall, monotonic, session, server = found[0]
    return None if session is None else Timestamps(wall, monotonic, session, server)


def _command(values: Sequence[Any]) -> OperatorCommand:
    kind, wall, *_, changes = values
    facts = json.loads(changes)
    return OperatorCommand(kind, wall, int(facts.get("rows", 0)) if isinstance(facts, dict) else 0)
