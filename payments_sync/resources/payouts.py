# From payments_async/resources/payouts.py; change that, then run: python -m tools.mirror
"""Payouts: money sent to an instrument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from payments_async import models
from payments_async.params import CustomerFields, CustomerInput, Instrument, Money, Pairs, PreparedRequest
from payments_async.resources._signatures import explains_absent
from payments_async.resources.payouts import AsyncPayouts

from .._blocking_call import forwarded
from .._event_loop import Bridge


@explains_absent
class Payouts:
    """`client.payouts`."""

    def __init__(self, twin: AsyncPayouts, bridge: Bridge) -> None:
        self._async, self._bridge = twin, bridge

    @forwarded(Bridge.call)
    def create(
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

    @forwarded(Bridge.call_plainly)
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

    @forwarded(Bridge.call)
    def list(
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

    @forwarded(Bridge.iterate)
    def iterate(
        self, *, status: str | None = None, customer_id: str | None = None,
        created_on_or_after: date | str | None = None, created_on_or_before: date | str | None = None,
        page_size: int | None = None, cursor: str | None = None, method: str | None = None,
        currency: str | None = None, timeout: float | None = None, deadline: float | None = None,
        max_retries: int | None = None, extra_headers: Mapping[str, str] | None = None,
        extra_query: Mapping[str, Any] | None = None, max_items: int | None = None,
    ) -> Iterator[models.Payout]:  # fmt: skip
        """Every payout of the list that can be read, newest first; pages are read as they are needed.

        Takes the arguments of `list`, and `max_items`, after which it stops.

        Raises:
            InvalidRequest: every fault of the arguments; nothing was sent.
            SearchIncomplete: the service gave the same cursor twice.
            PaymentsError: see `errors`.
        """

    @forwarded(Bridge.call)
    def find(
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

    @forwarded(Bridge.call)
    def sync(
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

    @forwarded(Bridge.call)
    def inspect(
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

    def wait(self, payout: models.Payout | str, *, deadline: float = 900.0) -> models.Payout:
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
        return self._bridge.call(self._async.wait, payout, deadline=deadline)
