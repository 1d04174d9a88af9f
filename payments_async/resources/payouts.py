"""Payouts: money sent to an instrument."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Unpack

import attrs

from .. import arguments, models
from .._request import prepare as _calls
from .._request.pages import PAYOUTS, ListPosition
from ..errors import InvalidRequest
from ..params import PayoutRequest, PreparedRequest
from ..params.operations import PAYOUTS_CREATE, PAYOUTS_INSPECT, PAYOUTS_SYNC
from ._base import Resource

_FIND = PAYOUTS.named("payouts.find")
_SEARCH_OPTIONS = frozenset(arguments.Search.__annotations__)


class AsyncPayouts(Resource):
    """`client.payouts`."""

    async def create(self, **arguments: Unpack[arguments.PayoutArguments]) -> models.Payout:
        """Send money. The payout that comes back is usually not final yet (POST /payouts).

        Args:
            arguments: `amount`, `currency`, `method`, `instrument`, best a `reference` too, and any
                field and option of `arguments.PayoutArguments`.

        Raises:
            InvalidRequest: every fault of the arguments; nothing was sent.
            DuplicateReference: a payout with this reference exists; this call made none.
            OutcomeUnknown: no definite answer came; `client.resolve(error)` finds out.
            PaymentsError: see `errors`; its `effect` speaks of this call.
        """
        try:
            return await self._client.create(PAYOUTS_CREATE, PayoutRequest, arguments)
        finally:
            del arguments  # tracebacks print locals

    def prepare(self, **arguments: Unpack[arguments.PayoutPreparation]) -> PreparedRequest:
        """The exact bytes and idempotency key of a create: store them, then `client.send` them.

        Args:
            arguments: what `create` takes, but for `timeout`, `deadline` and `max_retries`.

        Raises:
            InvalidRequest: every fault of the arguments; nothing was sent.
        """
        try:
            return self._client.prepare(PAYOUTS_CREATE, PayoutRequest, arguments)
        finally:
            del arguments  # tracebacks print locals

    async def list(self, **arguments: Unpack[arguments.PayoutFilters]) -> models.Page[models.Payout]:
        """One page of payouts, newest first (GET /payouts; gaps B, C, D).

        Args:
            arguments: filters, `page_size`, `cursor` and options of `arguments.PayoutFilters`.

        Raises:
            InvalidRequest: every fault of the arguments; nothing was sent.
            PaymentsError: see `errors`; effect "none".
        """
        return await self._client.list(PAYOUTS, arguments)

    async def iterate(self, **arguments: Unpack[arguments.PayoutIteration]) -> AsyncIterator[models.Payout]:
        """Every payout of the list that can be read, newest first; pages are read as they are needed.

        Args:
            arguments: what `list` takes, and `max_items`.

        Raises:
            InvalidRequest: every fault of the arguments; nothing was sent.
            SearchIncomplete: the service gave the same cursor twice.
            PaymentsError: see `errors`.
        """
        async for payout in self._client.iterate(PAYOUTS, arguments):
            yield payout

    async def find(self, reference: str, **search: Unpack[arguments.Search]) -> models.Payout | None:
        """The payout with this reference; None when the list, back to `created_on_or_after`, is without it.

        The list is read newest first, to its end when no date is given; None is never a guess.

        Args:
            reference: as it was sent.
            search: `created_on_or_after` (where the reading may end), `max_pages` of 100 to read at most
                (100), `cursor` (where to continue after SearchIncomplete), and options of
                `arguments.ReadOptions` for each page.

        Returns:
            The payout, with the answer of its page as `.response`.

        Raises:
            SearchIncomplete: the pages were used up before the list's end (continue with `.cursor`); or the
                service did not say that the list ends; or a record could not be read, and might be it.
            InvalidRequest: a fault of the arguments; nothing was sent.
            PaymentsError: see `errors`; effect "none".
        """
        _calls.refuse_unknown(search, _SEARCH_OPTIONS, _FIND.operation.name)
        most, filters = search.pop("max_pages", 100), {**search}
        faults = {} if _calls.count(most) and most else {"max_pages": ["must be a whole number, 1 or more"]}
        if not isinstance(reference, str) or not reference:
            faults["reference"] = ["must be the text that was sent as reference"]
        if faults:
            raise InvalidRequest(faults, operation=_FIND.operation.name)
        position = ListPosition(_FIND.operation.name, search.get("cursor"))
        async for page in self._client.reader(_FIND).pages(filters, position):
            found = next((payout for payout in page if payout.reference == reference), None)
            if found is not None:
                return attrs.evolve(found, response=page.response)
            if position.pages == most:
                break
        _refuse_incomplete(position)
        return None

    async def sync(self, payout_id: str, **options: Unpack[arguments.ReadOptions]) -> models.Payout:
        """Have the service ask the gateway about a payout: recovery, not normal reading (gap V).

        At most 12 a minute per payout (Limits, Rate limits).

        Args:
            payout_id: the payout's id.
            options: see `arguments.ReadOptions`.

        Raises:
            InvalidRequest: the id cannot be part of a path; nothing was sent.
            PaymentsError: see `errors`; effect "none".
        """
        return await self._client.read(PAYOUTS_SYNC, options, {"payout_id": payout_id})

    async def inspect(self, payout_id: str, **options: Unpack[arguments.ReadOptions]) -> models.Inspection:
        """The gateway's own record of a payout: diagnostics (gap U).

        At most 12 a minute per payout (Limits, Rate limits).

        Args:
            payout_id: the payout's id.
            options: see `arguments.ReadOptions`.

        Raises:
            InvalidRequest: the id cannot be part of a path; nothing was sent.
            PaymentsError: see `errors`; effect "none".
        """
        return await self._client.read(PAYOUTS_INSPECT, options, {"payout_id": payout_id})

    async def wait(self, payout: models.Payout | str, *, deadline: float = 900.0) -> models.Payout:
        """Wait until a payout is final: completed or failed.

        All waits of a key in this process share one reading of the list, never more often than every five
        seconds (Limits, Polling guidance).

        Args:
            payout: the payout, its id, or the `token` of an earlier `WaitTimeout`.
            deadline: seconds, 900 when absent.

        Raises:
            InvalidRequest: not an id; also when the list shows it as a payout's reference: see `find`.
            WaitTimeout: not final yet; `.last` is the newest state, `.token` continues the wait.
            SearchIncomplete: the service gave the same cursor twice, and no page showed the payout.
            PaymentsError: the reading failed for good.
        """
        return await self._client.waiting.payout(payout, deadline)


def _refuse_incomplete(position: ListPosition) -> None:
    """Raise SearchIncomplete where the pages read do not prove that the list is without a payout."""
    position.check()
    if position.cursor is not None:
        problem = f"not in the {position.pages} page(s) read, and the list continues"
        raise position.incomplete(f"{problem}; go on with cursor=error.cursor", position.cursor)
    if position.unread:
        problem = f"{position.unread} record(s) of the list could not be read, and may be the one wanted"
        raise position.incomplete(problem)
