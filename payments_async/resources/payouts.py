"""Payouts: money sent to an instrument."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import date
from typing import Any, Unpack

import attrs

from .. import arguments, models
from .._request import prepare
from .._request.pages import PAYOUTS, ListPosition
from .._request.settings import count
from ..errors import InvalidRequest
from ..params import CustomerFields, CustomerInput, Instrument, Money, Pairs, PayoutRequest, PreparedRequest
from ..params.operations import PAYOUTS_CREATE, PAYOUTS_INSPECT, PAYOUTS_SYNC
from ._base import Resource
from ._signatures import explains_absent, implemented_by

_FIND = PAYOUTS.named("payouts.find")
_SEARCH_OPTIONS = frozenset(arguments.Search.__annotations__)


@explains_absent
class AsyncPayouts(Resource):
    """`client.payouts`."""

    async def _create(self, **arguments: Unpack[arguments.PayoutArguments]) -> models.Payout:
        try:
            return await self._client.create(PAYOUTS_CREATE, PayoutRequest, arguments)
        finally:
            del arguments  # tracebacks print locals

    @implemented_by(_create)
    async def create(
        self, *, amount: Money, currency: str, method: str, instrument: Instrument | Pairs,
        reference: str | None = None, description: str | None = None,
        customer: CustomerInput | CustomerFields | None = None, webhook_url: str | None = None,
        metadata: Pairs | None = None, gateway_options: Pairs | None = None,
        idempotency_key: str | None = None, extra_headers: Mapping[str, str] | None = None,
        extra_query: Mapping[str, Any] | None = None, extra_body: Mapping[str, Any] | None = None,
        timeout: float | None = None, deadline: float | None = None, max_retries: int | None = None,
    ) -> models.Payout:  # fmt: skip
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

    def _prepare(self, **arguments: Unpack[arguments.PayoutPreparation]) -> PreparedRequest[models.Payout]:
        try:
            return self._client.prepare(PAYOUTS_CREATE, PayoutRequest, arguments)
        finally:
            del arguments  # tracebacks print locals

    @implemented_by(_prepare)
    def prepare(
        self, *, amount: Money, currency: str, method: str, instrument: Instrument | Pairs,
        reference: str | None = None, description: str | None = None,
        customer: CustomerInput | CustomerFields | None = None, webhook_url: str | None = None,
        metadata: Pairs | None = None, gateway_options: Pairs | None = None,
        idempotency_key: str | None = None, extra_headers: Mapping[str, str] | None = None,
        extra_query: Mapping[str, Any] | None = None, extra_body: Mapping[str, Any] | None = None,
    ) -> PreparedRequest[models.Payout]:  # fmt: skip
        """The exact bytes and idempotency key of a create: store them, then `client.send` them.

        Takes the arguments of `create` except `timeout`, `deadline` and `max_retries`.

        Raises:
            InvalidRequest: every fault of the arguments; nothing was sent.
        """

    async def _list(self, **arguments: Unpack[arguments.PayoutFilters]) -> models.Page[models.Payout]:
        return await self._client.list(PAYOUTS, arguments)

    @implemented_by(_list)
    async def list(
        self, *, status: str | None = None, customer_id: str | None = None,
        created_on_or_after: date | str | None = None, created_on_or_before: date | str | None = None,
        page_size: int | None = None, cursor: str | None = None, method: str | None = None,
        currency: str | None = None, timeout: float | None = None, deadline: float | None = None,
        max_retries: int | None = None, extra_headers: Mapping[str, str] | None = None,
        extra_query: Mapping[str, Any] | None = None,
    ) -> models.Page[models.Payout]:  # fmt: skip
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

    async def _iterate(self, **arguments: Unpack[arguments.PayoutIteration]) -> AsyncIterator[models.Payout]:
        async for payout in self._client.iterate(PAYOUTS, arguments):
            yield payout

    @implemented_by(_iterate)
    def iterate(
        self, *, status: str | None = None, customer_id: str | None = None,
        created_on_or_after: date | str | None = None, created_on_or_before: date | str | None = None,
        page_size: int | None = None, cursor: str | None = None, method: str | None = None,
        currency: str | None = None, timeout: float | None = None, deadline: float | None = None,
        max_retries: int | None = None, extra_headers: Mapping[str, str] | None = None,
        extra_query: Mapping[str, Any] | None = None, max_items: int | None = None,
    ) -> AsyncIterator[models.Payout]:  # fmt: skip
        """Every payout of the list that can be read, newest first; pages are read as they are needed.

        Takes the arguments of `list`, and `max_items`, after which it stops.

        Raises:
            InvalidRequest: every fault of the arguments; nothing was sent.
            SearchIncomplete: the service gave the same cursor twice.
            PaymentsError: see `errors`.
        """

    async def _find(self, reference: str, **search: Unpack[arguments.Search]) -> models.Payout | None:
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

    @implemented_by(_find)
    async def find(
        self, reference: str, *, created_on_or_after: date | str | None = None, cursor: str | None = None,
        max_pages: int = ..., timeout: float | None = None, deadline: float | None = None,
        max_retries: int | None = None, extra_headers: Mapping[str, str] | None = None,
        extra_query: Mapping[str, Any] | None = None,
    ) -> models.Payout | None:  # fmt: skip
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

    async def _sync(self, payout_id: str, **options: Unpack[arguments.ReadOptions]) -> models.Payout:
        return await self._client.read(PAYOUTS_SYNC, options, {"payout_id": payout_id})

    @implemented_by(_sync)
    async def sync(
        self, payout_id: str, *, timeout: float | None = None, deadline: float | None = None,
        max_retries: int | None = None, extra_headers: Mapping[str, str] | None = None,
        extra_query: Mapping[str, Any] | None = None,
    ) -> models.Payout:  # fmt: skip
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

    async def _inspect(self, payout_id: str, **options: Unpack[arguments.ReadOptions]) -> models.Inspection:
        return await self._client.read(PAYOUTS_INSPECT, options, {"payout_id": payout_id})

    @implemented_by(_inspect)
    async def inspect(
        self, payout_id: str, *, timeout: float | None = None, deadline: float | None = None,
        max_retries: int | None = None, extra_headers: Mapping[str, str] | None = None,
        extra_query: Mapping[str, Any] | None = None,
    ) -> models.Inspection:  # fmt: skip
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

    async def wait(self, payout: models.Payout | str, *, deadline: float = 900.0) -> models.Payout:
        """Wait until a payout is final: completed or failed.

        All waits of a client and event loop share one reading of the list, never more often than every five
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
