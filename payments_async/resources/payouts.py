"""Payouts: money sent to an instrument."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Unpack

import attrs

from .. import arguments, models
from .._request import prepare
from .._request.pages import PAYOUTS, ListPosition
from .._request.settings import count
from ..errors import InvalidRequest
from ..params import PayoutRequest, PreparedRequest
from ..params.operations import PAYOUTS_CREATE, PAYOUTS_INSPECT, PAYOUTS_SYNC
from ._base import Resource, awaited_page
from ._signatures import explains_absent, named_arguments

_FIND = PAYOUTS.named("payouts.find")
_SEARCH_OPTIONS = frozenset(arguments.Search.__annotations__)


@explains_absent
@named_arguments
class AsyncPayouts(Resource):
    """`client.payouts`."""

    async def create(self, **arguments: Unpack[arguments.PayoutArguments]) -> models.Payout:
        """Send money. The payout that comes back is usually not final yet (POST /payouts).

        Args:
            amount: major units, at least 1: Decimal, int or decimal text.
            currency: ISO 4217, three uppercase letters.
            method: the payout method's code, from the dashboard.
            instrument: the receiving account or phone number.
            reference: your identifier, unique within the project, at most 191 characters. Give one: it makes
                the payout impossible to pay twice and possible to find again.
            description: at most 500 characters.
            customer: whom it is for.
            webhook_url: the address that gets creation, completion and failure events, unsigned, at most 2048
                characters.
            metadata: up to 10 pairs, returned unchanged.
            gateway_options: parameters for gateways, by gateway code.
            idempotency_key: 8 to 128 printable characters; the client makes one when absent (Limits,
                Idempotency).
            extra_headers: headers beside the client's own.
            extra_query: pairs added to the query.
            extra_body: top-level JSON fields put over the request's own.
            timeout: seconds for each attempt.
            deadline: seconds for the whole call: pacing, attempts and back-off.
            max_retries: attempts after the first.

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

    def prepare(self, **arguments: Unpack[arguments.PayoutPreparation]) -> PreparedRequest[models.Payout]:
        """The exact bytes and idempotency key of a create: store them, then `client.send` them.

        Args:
            amount: major units, at least 1: Decimal, int or decimal text.
            currency: ISO 4217, three uppercase letters.
            method: the payout method's code, from the dashboard.
            instrument: the receiving account or phone number.
            reference: your identifier, unique within the project, at most 191 characters. Give one: it makes
                the payout impossible to pay twice and possible to find again.
            description: at most 500 characters.
            customer: whom it is for.
            webhook_url: the address that gets creation, completion and failure events, unsigned, at most 2048
                characters.
            metadata: up to 10 pairs, returned unchanged.
            gateway_options: parameters for gateways, by gateway code.
            idempotency_key: 8 to 128 printable characters; the client makes one when absent (Limits,
                Idempotency).
            extra_headers: headers beside the client's own.
            extra_query: pairs added to the query.
            extra_body: top-level JSON fields put over the request's own.

        Raises:
            InvalidRequest: every fault of the arguments; nothing was sent.
        """
        try:
            return self._client.prepare(PAYOUTS_CREATE, PayoutRequest, arguments)
        finally:
            del arguments  # tracebacks print locals

    @awaited_page
    async def list(self, **arguments: Unpack[arguments.PayoutFilters]) -> models.Page[models.Payout]:
        """One page of payouts, newest first (GET /payouts; gaps B, C, D).

        Args:
            status: one status, such as `pending`.
            customer_id: one customer's.
            created_on_or_after: a date, an aware datetime, or text.
            created_on_or_before: a date, an aware datetime, or text.
            page_size: 1 to 100; the service's own when absent (gap D).
            cursor: `next_cursor` of another page, with the same filters.
            method: a payout method code.
            currency: ISO 4217, three uppercase letters.
            timeout: seconds for each attempt.
            deadline: seconds for the whole call: pacing, attempts and back-off.
            max_retries: attempts after the first.
            extra_headers: headers beside the client's own.
            extra_query: pairs added to the query.

        Raises:
            InvalidRequest: every fault of the arguments; nothing was sent.
            PaymentsError: see `errors`; effect "none".
        """
        return await self._client.list(PAYOUTS, arguments)

    async def iterate(self, **arguments: Unpack[arguments.PayoutIteration]) -> AsyncIterator[models.Payout]:
        """Every payout of the list that can be read, newest first; pages are read as they are needed.

        Args:
            status: one status, such as `pending`.
            customer_id: one customer's.
            created_on_or_after: a date, an aware datetime, or text.
            created_on_or_before: a date, an aware datetime, or text.
            page_size: 1 to 100; the service's own when absent (gap D).
            cursor: `next_cursor` of another page, with the same filters.
            method: a payout method code.
            currency: ISO 4217, three uppercase letters.
            timeout: seconds for each attempt.
            deadline: seconds for the whole call: pacing, attempts and back-off.
            max_retries: attempts after the first.
            extra_headers: headers beside the client's own.
            extra_query: pairs added to the query.
            max_items: stop after so many.

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
            created_on_or_after: the search, newest first, may stop at this date.
            cursor: position to continue from: `SearchIncomplete.cursor`, with the same `created_on_or_after`.
            max_pages: pages of 100 to read at most; 100 when absent.
            timeout: seconds for each attempt.
            deadline: seconds for the whole call: pacing, attempts and back-off.
            max_retries: attempts after the first.
            extra_headers: headers beside the client's own.
            extra_query: pairs added to the query.

        Returns:
            The payout, with the answer of its page as `.response`.

        Raises:
            SearchIncomplete: the pages were used up before the list's end (continue with `.cursor`); or the
                service did not say that the list ends; or a record could not be read, and might be it.
            InvalidRequest: a fault of the arguments; nothing was sent.
            PaymentsError: see `errors`; effect "none".
        """
        prepare.refuse_unknown(search, _SEARCH_OPTIONS, _FIND.operation.name)
        most, filters = search.pop("max_pages", 100), {**search}
        faults = {} if count(most) and most else {"max_pages": ["must be a whole number, 1 or more"]}
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
            timeout: seconds for each attempt.
            deadline: seconds for the whole call: pacing, attempts and back-off.
            max_retries: attempts after the first.
            extra_headers: headers beside the client's own.
            extra_query: pairs added to the query.

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
            timeout: seconds for each attempt.
            deadline: seconds for the whole call: pacing, attempts and back-off.
            max_retries: attempts after the first.
            extra_headers: headers beside the client's own.
            extra_query: pairs added to the query.

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
