"""Looks for earlier payouts of a row before one of a later generation is sent: one may live again.

A row of generation 1 was paid once, and that payout had failed. Banks change their minds. So no request for
such a row leaves without a whole reading of the list that this run made after the row was made new, at most
15 minutes ago.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import Final

from ...errors import PaymentsError
from .._ledger.ledger import Ledger
from .._protocol.listed_payouts import lacks_earlier
from .._protocol.records import LedgerRow
from .._protocol.responses import FATAL, stop_of, why
from .._protocol.row_state import UNFINISHED
from .payout_list import pages
from .reading import ListReading
from .recorder import Recorder
from .service import Service
from .stopping import Stopping

_VALID: Final = 900.0
"""Seconds after its beginning until which a request may leave."""
_LEFT: Final = 60.0
"""Seconds that a reading must have left for a request."""
_AGAIN: Final = 60.0
"""Seconds after a reading that failed before the next."""


class SendPermission(StrEnum):
    """What may be done for a row of a later generation."""

    SEND = "send"
    DECIDED = "decided"
    """The reading has decided the row: nothing is sent."""
    LOOK_UP = "look up"
    """An earlier payout lives or is not shown, or the list could not be read whole: the row's own may only be
    looked for."""


class EarlierPayouts:
    """The readings of one run, each for all rows that ask while it counts."""

    def __init__(self, ledger: Ledger, service: Service, recorder: Recorder, stopping: Stopping) -> None:
        self._ledger, self._service = ledger, service
        self._recorder, self._stopping = recorder, stopping
        self._reading: ListReading | None = None
        self._began = self._failed_at = -_VALID
        self._command = 0
        self._turn = asyncio.Lock()

    @property
    def seconds_left(self) -> float:
        """Seconds in which a request may leave that the last reading allows."""
        return self._began + _VALID - self._service.runtime.monotonic()

    async def permission(self, row: LedgerRow, *, unsent: bool) -> SendPermission:
        """Say whether a claimed row may be sent. `unsent`: no request for it can have made a payout.

        Raises LedgerError.
        """
        async with self._turn:
            reading = await self._valid_reading()
        if reading is None:
            return SendPermission.LOOK_UP
        judged = await reading.judge_again(row.number, unsent=unsent)
        if judged.before.state not in UNFINISHED or judged.judgement.outcome is not None:
            return SendPermission.DECIDED
        is_alive = any(each.is_alive for each in judged.payouts)
        is_unseen = lacks_earlier(judged.row, judged.payouts)  # one that is not shown may live again
        return SendPermission.LOOK_UP if is_alive or is_unseen else SendPermission.SEND

    async def _valid_reading(self) -> ListReading | None:
        """The last reading if it counts, else a new one; None if the list could not be read whole now."""
        now, command = self._service.runtime.monotonic(), await self._ledger.latest_command()
        if self._reading is not None and self.seconds_left >= _LEFT and command == self._command:
            return self._reading
        if now - self._failed_at < _AGAIN:
            return None
        self._reading, self._began, self._command = None, now, command
        reading = ListReading(self._ledger, self._service, record=self._recorder.record)
        try:
            async for page in pages(self._service):
                await reading.take(page)
                if self._stopping.draining:
                    return None
        except PaymentsError as error:
            self._failed_at = self._service.runtime.monotonic()
            if isinstance(error, FATAL):
                self._stopping.halt(why(error), stop_of(error))
            return None
        await reading.end()
        self._reading = reading
        return reading
