"""Resolves rows in doubt: scans the list once for all of them, then applies the rules to each."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping
from datetime import date
from typing import Final

import attrs

from ..._assumptions import ABANDONED_AFTER
from .._ledger.ledger import Ledger
from .._protocol import row_state
from .._protocol.clocks import Timestamps, age, scan_start, since_last_send
from .._protocol.identifiers import Identity
from .._protocol.records import Claim, LedgerRow, Resend, RowOutcome, RowSet
from .._protocol.row_state import UNFINISHED
from .._protocol.rows_in_doubt import ListScan, NextStep, Resolution, after_scan
from .doubt_queue import SCANS, Taken, UnresolvedQueue, UnresolvedRow, in_groups
from .payout_list import scan
from .reading import ListReading
from .recorder import Recorder
from .service import Service, day_of
from .stopping import Stopping

_SCAN_AGAIN: Final = 60.0
"""Seconds before the second scan; each further one waits longer by as much."""
_GROUP: Final = 500
_Filters = Mapping[str, str | date]


@attrs.define
class _Scope:
    """The part of the list that can show the rows searched for."""

    rows: int = 0
    wanted: RowSet = attrs.field(factory=RowSet)
    everywhere: bool = False
    earliest: float | None = None
    is_dated: bool = True
    """True if the earliest possible creation time is known for all rows."""
    values: dict[str, set[str]] = attrs.field(factory=lambda: {"currency": set(), "method": set()})

    def add(self, row: LedgerRow, doubt: UnresolvedRow, first_intent: Timestamps) -> None:
        """Extend the scope to one more row."""
        self.rows += 1
        self.wanted.add(row.number)
        self.everywhere |= doubt.everywhere or bool(row.known.generation)  # for its earlier payouts
        for name, values in self.values.items():
            values.add(getattr(row, name))
        start = scan_start(first_intent)
        if start is None:
            self.is_dated = False
        else:
            self.earliest = start if self.earliest is None else min(start, self.earliest)

    def filters(self) -> _Filters:
        """Make filters for the narrowest part of the list that surely holds all payouts of these rows."""
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
    """A finished scan."""

    at: Timestamps
    """The time when the scan began."""
    whole: bool
    everywhere: bool
    found: RowSet
    earlier: Collection[int]
    """Rows of which the list shows an earlier payout that has not failed."""


class Resolver:
    """Resolves the rows in doubt of one run. Their facts are read from the ledger, page by page."""

    def __init__(self, ledger: Ledger, service: Service, recorder: Recorder, stopping: Stopping) -> None:
        self._ledger, self._service, self._recorder = ledger, service, recorder
        self._stopping, self._doubts = stopping, UnresolvedQueue()
        self._sought = 0
        """Rows that the running scan searches for."""

    def add(self, doubt: UnresolvedRow) -> None:
        """Add a row."""
        self._doubts.add(doubt)

    @property
    def due(self) -> float | None:
        """The time of the next scan, on the runtime's monotonic clock; None when nothing is in doubt."""
        return self._doubts.due

    @property
    def waiting(self) -> int:
        """The number of rows that wait for a scan, or are searched for now."""
        return len(self._doubts) + self._sought

    @property
    def is_reading(self) -> bool:
        """True while the list is read."""
        return self._sought > 0

    async def surface(self) -> None:
        """Leave the rows still in doubt to the operator."""
        async for group in self._open(self._doubts.take()):
            for row, _ in group:
                await self._record(row, row_state.doubt(row.known))

    async def look(self) -> AsyncGenerator[Claim, None]:
        """Scan the list for the rows that are due. Yields, claimed, those to be sent under their next key.

        Rows whose payouts the list shows are settled. Raises one of `responses.FATAL`, when no reading can
        succeed. A draining run ends the scan early.
        """
        await self._recorder.flush()
        taken = self._doubts.take(self._service.runtime.monotonic())
        self._sought = len(taken)
        try:
            scanned = await self._scan_list(await self._scope(taken))
        finally:
            self._sought = 0
        return self._absent(taken, scanned)

    async def _scope(self, taken: Taken) -> _Scope:
        scope = _Scope()
        async for group in self._open(taken):
            times = await self._ledger.intent_times(row for row, _ in group)
            for row, doubt in group:
                scope.add(row, doubt, times[row.number].first)
        return scope

    async def _open(self, taken: Taken) -> AsyncGenerator[list[tuple[LedgerRow, UnresolvedRow]], None]:
        """Read the rows that are still in doubt from the ledger."""
        for doubts in in_groups(taken, _GROUP):
            rows = await self._ledger.numbered(doubt.number for doubt in doubts)
            yield [(row, doubt) for doubt in doubts if (row := rows[doubt.number]).state in UNFINISHED]

    async def _scan_list(self, scope: _Scope) -> _Scanned:
        filters, at, found, left = scope.filters(), self._service.moment(), RowSet(), scope.rows
        record, whole = self._recorder.record, False
        only = scope.wanted if filters else None  # a reading of everything records all that it sees
        reading = ListReading(self._ledger, self._service, only=only, record=record)
        async for payouts, is_end in scan(self._service, filters):
            whole = is_end
            for each in await reading.take(payouts):
                if each.row.number not in scope.wanted or each.before.state not in UNFINISHED:
                    continue
                if each.shows_own and found.add(each.row.number):
                    if each.judgement.outcome is None:  # the proof of its payout cannot be read
                        await self._record(each.row, row_state.doubt(each.row.known))
                    left -= 1
            if not left or self._stopping.draining:
                break
        ended = await reading.end() if whole else []
        return _Scanned(
            at, whole, not filters, found, {each.row.number for each in ended if each.earlier_lives}
        )

    async def _absent(self, taken: Taken, scanned: _Scanned) -> AsyncGenerator[Claim, None]:
        """Apply the rules to the rows that the scan did not show."""
        async for group in self._open(taken):
            absent = [(row, doubt) for row, doubt in group if row.number not in scanned.found]
            times = await self._ledger.intent_times(row for row, _ in absent)
            resends = []
            for row, doubt in absent:
                resolution = self._resolution(row, doubt, scanned, times[row.number].last)
                if row.number in scanned.earlier:  # its own may still come: it is only looked up
                    since = self._since_send(times[row.number].last, scanned.at)
                    resolution = Resolution(NextStep.WAIT, ABANDONED_AFTER - since)
                if resolution.step is NextStep.NEXT_EPOCH:
                    resends.append(self._next_epoch(row, resolution))
                else:
                    # the service may refuse the filters
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
        """Compute the seconds that had surely passed at that moment since a row's last request."""
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

    async def _record(self, row: LedgerRow, known: row_state.RowKnowledge) -> None:
        await self._recorder.put(RowOutcome(row.number, known, body_hash=row.body_hash))

    def _next_epoch(self, row: LedgerRow, resolution: Resolution) -> Resend:
        binding, known = self._ledger.header.binding, row.known
        place = (binding.environment, binding.batch_id, row.row_key, known.generation)
        identity = Identity(*place, known.epoch + 1, known.revision)
        return Resend(row.number, identity.idempotency_key(row.body_hash), absent=resolution.absent)
