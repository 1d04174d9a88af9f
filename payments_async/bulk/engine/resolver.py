"""Rows in doubt: one scan of the list for all of them, then for each what the rules say."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import date
from typing import Final

import attrs

from ...models import Payout
from ..ledger.ledger import Ledger
from ..protocol import row_state
from ..protocol.clocks import Timestamps, age, scan_start, since_last_send
from ..protocol.identifiers import Identity
from ..protocol.payout_status import settled
from ..protocol.records import Claim, LedgerRow, Resend, RowOutcome
from ..protocol.row_set import RowSet
from ..protocol.row_state import RowState
from ..protocol.rows_in_doubt import ListScan, NextStep, Resolution, after_scan
from .doubt_queue import SCANS, UnresolvedBatch, UnresolvedQueue, UnresolvedRow
from .mirror import LaterGenerations
from .payout_list import scan
from .recorder import Recorder
from .service import Service, day_of
from .stopping import Stopping

_SCAN_AGAIN: Final = 60.0
"""Seconds before the second look; each further one waits longer by as much."""
_GROUP: Final = 500
_OPEN: Final = (RowState.IN_FLIGHT, RowState.IN_DOUBT)
_Filters = Mapping[str, str | date]


@attrs.define
class _Scope:
    """Where the list can show the rows that are looked for."""

    rows: int = 0
    wanted: RowSet = attrs.field(factory=RowSet)
    everywhere: bool = False
    earliest: float | None = None
    is_dated: bool = True
    """True if it is known of all rows from when on the list can show them."""
    values: dict[str, set[str]] = attrs.field(factory=lambda: {"currency": set(), "method": set()})

    def add(self, row: LedgerRow, doubt: UnresolvedRow, moments: Mapping[int, Timestamps]) -> None:
        """Extend it to one more row."""
        self.rows += 1
        self.wanted.add(row.number)
        self.everywhere |= doubt.everywhere
        for name, values in self.values.items():
            values.add(getattr(row, name))
        start = scan_start(moments[row.first_intent or 0])
        if start is None:
            self.is_dated = False
        else:
            self.earliest = start if self.earliest is None else min(start, self.earliest)

    def filters(self) -> _Filters:
        """The narrowest part of the list that surely holds all payouts of these rows."""
        if self.everywhere:
            return {}
        filters: dict[str, str | date] = {
            name: next(iter(values)) for name, values in self.values.items() if len(values) == 1
        }
        if self.is_dated and self.earliest is not None:
            filters["created_on_or_after"] = day_of(self.earliest)
        return filters


@attrs.frozen
class _Scanned:
    """A scan that was made."""

    at: Timestamps
    """When it began."""
    whole: bool
    everywhere: bool
    found: RowSet


class Resolver:
    """Keeps the rows in doubt of one run. What is known of them is read from the ledger, page by page."""

    def __init__(self, ledger: Ledger, service: Service, recorder: Recorder, stopping: Stopping) -> None:
        self._ledger, self._service, self._recorder = ledger, service, recorder
        self._stopping, self._doubts = stopping, UnresolvedQueue()
        self._sought = 0
        """Rows that the scan under way looks for."""

    def add(self, doubt: UnresolvedRow) -> None:
        """Take a row."""
        self._doubts.add(doubt)

    @property
    def due(self) -> float | None:
        """When to look next, on the runtime's monotonic clock; None when nothing is in doubt."""
        return self._doubts.due

    @property
    def waiting(self) -> int:
        """Rows that wait for a look, or are looked for now."""
        return len(self._doubts) + self._sought

    async def surface(self) -> None:
        """Leave what is still in doubt to the operator."""
        async for group in self._open(self._doubts.take()):
            for row, _ in group:
                await self._record(row, row_state.doubt(row.known))

    async def look(self) -> AsyncGenerator[Claim, None]:
        """Walk the list for the rows that are due. Gives those to be sent under their next key, intended.

        The rows that it shows are settled on the way. Raises one of `responses.FATAL`, when no reading can
        succeed. A run that drains breaks it off.
        """
        await self._recorder.flush()
        taken = self._doubts.take(self._service.runtime.monotonic())
        self._sought = len(taken)
        try:
            scanned = await self._scan_list(await self._scope(taken))
        finally:
            self._sought = 0
        return self._absent(taken, scanned)

    async def _scope(self, taken: UnresolvedBatch) -> _Scope:
        scope = _Scope()
        async for group in self._open(taken):
            moments = await self._ledger.moments(row for row, _ in group)
            for row, doubt in group:
                scope.add(row, doubt, moments)
        return scope

    async def _open(
        self, taken: UnresolvedBatch
    ) -> AsyncGenerator[list[tuple[LedgerRow, UnresolvedRow]], None]:
        """The rows that are still in doubt, as the ledger has them."""
        for doubts in taken.groups(_GROUP):
            rows = await self._ledger.numbered(doubt.number for doubt in doubts)
            yield [(row, doubt) for doubt in doubts if (row := rows[doubt.number]).state in _OPEN]

    async def _scan_list(self, scope: _Scope) -> _Scanned:
        filters, at, found, left = scope.filters(), self._service.moment(), RowSet(), scope.rows
        whole, later = False, LaterGenerations(self._ledger)
        async for payouts, is_end in scan(self._service, filters):
            whole = is_end
            await later.take(payouts)  # newest first: they come before, or on the same page
            shown = {payout.reference: payout for payout in payouts if payout.reference is not None}
            for row in await self._ledger.by_references(shown):
                if row.number in scope.wanted and row.state in _OPEN and found.add(row.number):
                    await self._settle(row, shown[row.reference], later.of(row))
                    left -= 1
            if not left or self._stopping.draining:
                break
        return _Scanned(at, whole, not filters, found)

    async def _settle(self, row: LedgerRow, payout: Payout, later: Sequence[str]) -> None:
        """What the list shows under a row's reference decides."""
        learned = settled(row, payout, later) or RowOutcome(row.number, row_state.doubt(row.known))
        await self._recorder.put(learned)

    async def _absent(self, taken: UnresolvedBatch, scanned: _Scanned) -> AsyncGenerator[Claim, None]:
        """What follows for the rows that the scan has not shown."""
        async for group in self._open(taken):
            absent = [(row, doubt) for row, doubt in group if row.number not in scanned.found]
            moments = await self._ledger.moments(row for row, _ in absent)
            resends = []
            for row, doubt in absent:
                resolution = self._resolution(row, doubt, scanned, moments[row.last_intent or 0])
                if resolution.step is NextStep.NEXT_EPOCH:
                    resends.append(self._next_epoch(row, resolution))
                else:
                    # its filters may be what the service refuses
                    await self._act(
                        row, doubt._replace(everywhere=doubt.everywhere or not scanned.whole), resolution
                    )
            if resends:
                yield await self._ledger.resend(resends)

    def _resolution(
        self, row: LedgerRow, doubt: UnresolvedRow, scanned: _Scanned, last: Timestamps
    ) -> Resolution:
        began, now = self._since_send(last, scanned.at), self._since_send(last, self._service.moment())
        return after_scan(
            ListScan(None, scanned.whole, scanned.everywhere, began),
            since_send=now,
            epoch=row.known.epoch,
            exists=doubt.exists,
            refused=doubt.refused,
            scans_left=doubt.scans,
        )

    def _since_send(self, last: Timestamps, at: Timestamps) -> float:
        """Seconds that had surely passed at that moment since a row's last request."""
        return since_last_send(age(last, at, self._service.started))

    async def _act(self, row: LedgerRow, doubt: UnresolvedRow, resolution: Resolution) -> None:
        now = self._service.runtime.monotonic()
        match resolution.step:
            case NextStep.SCAN_AGAIN:
                scans = doubt.scans - 1
                self._doubts.add(doubt._replace(scans=scans), now + _SCAN_AGAIN * (SCANS - scans))
            case NextStep.SCAN_EVERYWHERE:
                self._doubts.add(doubt._replace(everywhere=True))
            case NextStep.WAIT:
                self._doubts.add(doubt, now + resolution.wait)
            case _:
                await self._record(row, row_state.doubt(row.known))

    async def _record(self, row: LedgerRow, known: row_state.RowKnowledge, code: str | None = None) -> None:
        await self._recorder.put(RowOutcome(row.number, known, failure_code=code))

    def _next_epoch(self, row: LedgerRow, resolution: Resolution) -> Resend:
        binding, known = self._ledger.header.binding, row.known
        place = (binding.environment, binding.batch_id, row.row_key, known.generation)
        identity = Identity(*place, known.epoch + 1, known.revision)
        return Resend(row.number, identity.idempotency_key(row.body_hash), absent=resolution.absent)
