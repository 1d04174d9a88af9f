"""Rows in doubt: one walk of the list for all of them, then for each what the rules say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Final

from ..models import Payout
from . import _states
from ._ages import Moment, age, since_last_send, walk_start
from ._evidence import testify
from ._identifiers import Identity
from ._outcomes import Recorder
from ._records import Claim, LedgerRow, Outcome, Resend
from ._rules import Finding, Resolution, Walk, after_walk
from ._sending import LOOKS, Doubt
from ._service import Service, day_of
from .ledger import Ledger

_LOOK_AGAIN: Final = 60.0
"""Seconds before the second look; each further one waits longer by as much."""
_GROUP: Final = 1000


class Resolver:
    """Keeps the rows in doubt of one run."""

    def __init__(self, ledger: Ledger, service: Service, recorder: Recorder) -> None:
        self._ledger, self._service, self._recorder = ledger, service, recorder
        self._doubts: list[Doubt] = []

    def add(self, doubt: Doubt) -> None:
        """Take a row."""
        self._doubts.append(doubt)

    @property
    def due(self) -> float | None:
        """When to look next, on the runtime's monotonic clock; None when nothing is in doubt."""
        return min((doubt.due for doubt in self._doubts), default=None)

    async def surface(self) -> None:
        """Leave what is still in doubt to the operator."""
        doubts, self._doubts = self._doubts, []
        for doubt in doubts:
            await self._record(doubt.row, _states.doubt(doubt.row.known))

    async def look(self) -> Claim:
        """Walk the list for the rows that are due. Gives those to be sent under their next key, intended.

        Raises one of `_service.FATAL`, when no reading can succeed; then nothing was decided.
        """
        await self._recorder.flush()
        now = self._service.runtime.monotonic()
        due = [doubt for doubt in self._doubts if doubt.due <= now][:_GROUP]
        moments = await self._ledger.moments(doubt.row for doubt in due)
        began = [self._since_send(doubt.row, moments) for doubt in due]
        everywhere = any(doubt.everywhere for doubt in due)
        filters = {} if everywhere else _filters([doubt.row for doubt in due], moments)
        found, whole = await self._service.search([doubt.row.reference for doubt in due], filters)
        resends = []
        for doubt, before in zip(due, began, strict=True):
            payout = found.get(doubt.row.reference)
            witness = None if payout is None else testify(doubt.row, payout)
            resolution = after_walk(
                Walk(witness, whole, not filters, before),
                since_send=self._since_send(doubt.row, moments),
                epoch=doubt.row.known.epoch,
                exists=doubt.exists,
                refused=doubt.refused,
                looks_left=doubt.looks,
            )
            if resolution.finding is Finding.NEXT_EPOCH:
                resends.append(self._next_epoch(doubt.row, resolution))
                self._doubts.remove(doubt)
            else:
                doubt.everywhere |= not whole  # its filters may be what the service refuses
                await self._act(doubt, resolution, payout)
        return await self._ledger.resend(resends) if resends else Claim((), self._service.moment())

    def _since_send(self, row: LedgerRow, moments: Mapping[int, Moment]) -> float:
        """Seconds that have surely passed since the row's last request."""
        last = moments[row.last_intent or 0]
        return since_last_send(age(last, self._service.moment(), self._service.started))

    async def _act(self, doubt: Doubt, resolution: Resolution, payout: Payout | None) -> None:
        row, now = doubt.row, self._service.runtime.monotonic()
        match resolution.finding:
            case Finding.LOOK_AGAIN:
                doubt.looks -= 1
                doubt.due = now + _LOOK_AGAIN * (LOOKS - doubt.looks)
            case Finding.LOOK_EVERYWHERE:
                doubt.everywhere = True
            case Finding.WAIT:
                doubt.due = now + resolution.wait
            case finding:
                self._doubts.remove(doubt)
                await self._settle(row, finding, payout)

    async def _settle(self, row: LedgerRow, finding: Finding, payout: Payout | None) -> None:
        if finding is Finding.CONFIRM and payout is not None:
            made = _states.confirm(row.known, payout.id or "")
            await self._recorder.put(Outcome(row.number, made, payout.status, payout.is_final))
        elif finding is Finding.CONTRADICT:
            await self._record(row, _states.contradict(row.known), "reference of another payout")
        else:
            await self._record(row, _states.doubt(row.known))

    async def _record(self, row: LedgerRow, known: _states.Known, code: str | None = None) -> None:
        await self._recorder.put(Outcome(row.number, known, failure_code=code))

    def _next_epoch(self, row: LedgerRow, resolution: Resolution) -> Resend:
        binding, known = self._ledger.header.binding, row.known
        identity = Identity(
            binding.environment, binding.batch_id, row.row_key, known.generation, known.epoch + 1
        )
        return Resend(row.number, identity.idempotency_key(row.body_hash), absent=resolution.absent)


def _filters(rows: Sequence[LedgerRow], moments: Mapping[int, Moment]) -> dict[str, str | date]:
    """The narrowest part of the list that surely holds all payouts of these rows."""
    filters: dict[str, str | date] = {}
    starts = [walk_start(moments[row.first_intent or 0]) for row in rows]
    known = [start for start in starts if start is not None]
    if known and len(known) == len(starts):
        filters["created_on_or_after"] = day_of(min(known))
    for name in ("currency", "method"):
        values = {getattr(row, name) for row in rows}
        if len(values) == 1:
            filters[name] = values.pop()
    return filters
