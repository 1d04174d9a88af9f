"""Payment intents: payments collected through the API, and the attempts at collecting them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import date, datetime
from typing import Any, Unpack

from .. import arguments, models, params
from .._request.pages import PAYMENT_INTENTS
from ..params import AttemptInput, CustomerFields, CustomerInput, Money, Pairs, PreparedRequest
from ..params.operations import (
    INTENTS_CREATE,
    INTENTS_INSPECT_ATTEMPT,
    INTENTS_REFUND_AVAILABILITY,
    INTENTS_REQUERY,
    INTENTS_RETRIEVE_ATTEMPT,
)
from ._base import Resource
from ._signatures import explains_absent, implemented_by


@explains_absent
class AsyncPaymentIntents(Resource):
    """`client.payment_intents`."""

    async def _create(self, **arguments: Unpack[arguments.PaymentIntentArguments]) -> models.PaymentIntent:
        try:
            return await self._client.create(INTENTS_CREATE, params.PaymentIntentRequest, arguments)
        finally:
            del arguments  # tracebacks print locals

    @implemented_by(_create)
    async def create(
        self, *, amount: Money, currency: str, description: str | None = None,
        customer: CustomerInput | CustomerFields | None = None, return_url: str | None = None,
        webhook_url: str | None = None, statement_descriptor: str | None = None,
        receipt_email: str | None = None, entity_id: str | None = None,
        entity_created_at: datetime | None = None, gateway_options: Pairs | None = None,
        metadata: Pairs | None = None, attempt: AttemptInput | Pairs | None = None,
        idempotency_key: str | None = None, extra_headers: Mapping[str, str] | None = None,
        extra_query: Mapping[str, Any] | None = None, extra_body: Mapping[str, Any] | None = None,
        timeout: float | None = None, deadline: float | None = None, max_retries: int | None = None,
    ) -> models.PaymentIntent:  # fmt: skip
        """Create a payment, and start a first attempt when `attempt` is given (POST /payment/intents).

        Args:
            amount: major units, at least 1: Decimal, int or decimal text.
            currency: ISO 4217, three uppercase letters.
            description: at most 500 characters.
            customer: whom it is for.
            return_url: the page where the payer lands afterwards, at most 2048 characters. A visit to it
                proves nothing.
            webhook_url: the address that gets the events, unsigned, at most 2048 characters.
            statement_descriptor: at most 22 letters, digits, white space, periods, commas and hyphens.
            receipt_email: at most 255 characters.
            entity_id: your identifier of the thing paid for, at most 191 characters.
            entity_created_at: aware, not in the future.
            gateway_options: parameters for gateways, by gateway code.
            metadata: up to 10 pairs, returned unchanged.
            attempt: a first attempt to start at once (gap M).
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
            OutcomeUnknown: no definite answer came; `client.resolve(error)` finds out.
            PaymentsError: see `errors`; its `effect` speaks of this call.
        """

    def _prepare(
        self, **arguments: Unpack[arguments.PaymentIntentPreparation]
    ) -> PreparedRequest[models.PaymentIntent]:
        try:
            return self._client.prepare(INTENTS_CREATE, params.PaymentIntentRequest, arguments)
        finally:
            del arguments  # tracebacks print locals

    @implemented_by(_prepare)
    def prepare(
        self, *, amount: Money, currency: str, description: str | None = None,
        customer: CustomerInput | CustomerFields | None = None, return_url: str | None = None,
        webhook_url: str | None = None, statement_descriptor: str | None = None,
        receipt_email: str | None = None, entity_id: str | None = None,
        entity_created_at: datetime | None = None, gateway_options: Pairs | None = None,
        metadata: Pairs | None = None, attempt: AttemptInput | Pairs | None = None,
        idempotency_key: str | None = None, extra_headers: Mapping[str, str] | None = None,
        extra_query: Mapping[str, Any] | None = None, extra_body: Mapping[str, Any] | None = None,
    ) -> PreparedRequest[models.PaymentIntent]:  # fmt: skip
        """The exact bytes and idempotency key of a create: store them, then `client.send` them.

        Takes the arguments of `create` except `timeout`, `deadline` and `max_retries`.

        Raises:
            InvalidRequest: every fault of the arguments; nothing was sent.
        """

    async def _list(
        self, **arguments: Unpack[arguments.PaymentIntentFilters]
    ) -> models.Page[models.PaymentIntent]:
        return await self._client.list(PAYMENT_INTENTS, arguments)

    @implemented_by(_list)
    async def list(
        self, *, status: str | None = None, customer_id: str | None = None,
        created_on_or_after: date | str | None = None, created_on_or_before: date | str | None = None,
        page_size: int | None = None, cursor: str | None = None, channel: str | None = None,
        timeout: float | None = None, deadline: float | None = None, max_retries: int | None = None,
        extra_headers: Mapping[str, str] | None = None, extra_query: Mapping[str, Any] | None = None,
    ) -> models.Page[models.PaymentIntent]:  # fmt: skip
        """One page of payments, newest first (GET /payment/intents; gaps A, C, D).

        Args:
            status: one status, such as `pending`.
            customer_id: one customer's.
            created_on_or_after: a date, an aware datetime, or text.
            created_on_or_before: a date, an aware datetime, or text.
            page_size: 1 to 100; the service's own when absent (gap D).
            cursor: `next_cursor` of another page, with the same filters.
            channel: the channel the payment came through.
            timeout: seconds for each attempt.
            deadline: seconds for the whole call: pacing, attempts and back-off.
            max_retries: attempts after the first.
            extra_headers: headers beside the client's own.
            extra_query: pairs added to the query.

        Raises:
            InvalidRequest: every fault of the arguments; nothing was sent.
            PaymentsError: see `errors`; effect "none".
        """

    async def _iterate(
        self, **arguments: Unpack[arguments.PaymentIntentIteration]
    ) -> AsyncIterator[models.PaymentIntent]:
        async for intent in self._client.iterate(PAYMENT_INTENTS, arguments):
            yield intent

    @implemented_by(_iterate)
    def iterate(
        self, *, status: str | None = None, customer_id: str | None = None,
        created_on_or_after: date | str | None = None, created_on_or_before: date | str | None = None,
        page_size: int | None = None, cursor: str | None = None, channel: str | None = None,
        timeout: float | None = None, deadline: float | None = None, max_retries: int | None = None,
        extra_headers: Mapping[str, str] | None = None, extra_query: Mapping[str, Any] | None = None,
        max_items: int | None = None,
    ) -> AsyncIterator[models.PaymentIntent]:  # fmt: skip
        """Every payment of the list that can be read, newest first; pages are read as they are needed.

        Takes the arguments of `list`, and `max_items`, after which it stops.

        Raises:
            InvalidRequest: every fault of the arguments; nothing was sent.
            SearchIncomplete: the service gave the same cursor twice.
            PaymentsError: see `errors`.
        """

    async def _retrieve_attempt(
        self, payment_intent_id: str, attempt_id: str, **options: Unpack[arguments.ReadOptions]
    ) -> models.PaymentAttempt:
        ids = {"payment_intent_id": payment_intent_id, "attempt_id": attempt_id}
        return await self._client.read(INTENTS_RETRIEVE_ATTEMPT, options, ids)

    @implemented_by(_retrieve_attempt)
    async def retrieve_attempt(
        self, payment_intent_id: str, attempt_id: str, *, timeout: float | None = None,
        deadline: float | None = None, max_retries: int | None = None,
        extra_headers: Mapping[str, str] | None = None, extra_query: Mapping[str, Any] | None = None,
    ) -> models.PaymentAttempt:  # fmt: skip
        """One attempt, with its failure when it did not succeed.

        Endpoints, GET /payment/intents/{paymentIntentId}/attempts/{attemptId}.

        Args:
            payment_intent_id: the payment's id.
            attempt_id: the attempt's id.
            timeout: seconds for each attempt.
            deadline: seconds for the whole call: pacing, attempts and back-off.
            max_retries: attempts after the first.
            extra_headers: headers beside the client's own.
            extra_query: pairs added to the query.

        Raises:
            InvalidRequest: an id cannot be part of a path; nothing was sent.
            PaymentsError: see `errors`; effect "none".
        """

    async def _refund_availability(
        self, payment_intent_id: str, **options: Unpack[arguments.ReadOptions]
    ) -> models.RefundAvailability:
        ids = {"payment_intent_id": payment_intent_id}
        return await self._client.read(INTENTS_REFUND_AVAILABILITY, options, ids)

    @implemented_by(_refund_availability)
    async def refund_availability(
        self, payment_intent_id: str, *, timeout: float | None = None, deadline: float | None = None,
        max_retries: int | None = None, extra_headers: Mapping[str, str] | None = None,
        extra_query: Mapping[str, Any] | None = None,
    ) -> models.RefundAvailability:  # fmt: skip
        """The refund still possible for a payment; at most 100 reads a minute (gap Z).

        Endpoints, GET /payment/intents/{paymentIntentId}/refunds/availability.

        Args:
            payment_intent_id: the payment's id.
            timeout: seconds for each attempt.
            deadline: seconds for the whole call: pacing, attempts and back-off.
            max_retries: attempts after the first.
            extra_headers: headers beside the client's own.
            extra_query: pairs added to the query.

        Raises:
            InvalidRequest: the id cannot be part of a path; nothing was sent.
            PaymentsError: see `errors`; effect "none".
        """

    async def _requery(
        self, payment_intent_id: str, **options: Unpack[arguments.ReadOptions]
    ) -> models.Requery:
        ids = {"payment_intent_id": payment_intent_id}
        return await self._client.post(INTENTS_REQUERY, options, ids)

    @implemented_by(_requery)
    async def requery(
        self, payment_intent_id: str, *, timeout: float | None = None, deadline: float | None = None,
        max_retries: int | None = None, extra_headers: Mapping[str, str] | None = None,
        extra_query: Mapping[str, Any] | None = None,
    ) -> models.Requery:  # fmt: skip
        """Have the service ask the gateways about a payment: recovery, not normal reading (gap T).

        At most 12 a minute per payment (Limits, Rate limits).

        Args:
            payment_intent_id: the payment's id.
            timeout: seconds for each attempt.
            deadline: seconds for the whole call: pacing, attempts and back-off.
            max_retries: attempts after the first.
            extra_headers: headers beside the client's own.
            extra_query: pairs added to the query.

        Raises:
            InvalidRequest: the id cannot be part of a path; nothing was sent.
            PaymentsError: see `errors`; effect "none", a requery moves no money.
        """

    async def _inspect_attempt(
        self, payment_intent_id: str, attempt_id: str, **options: Unpack[arguments.ReadOptions]
    ) -> models.Inspection:
        ids = {"payment_intent_id": payment_intent_id, "attempt_id": attempt_id}
        return await self._client.read(INTENTS_INSPECT_ATTEMPT, options, ids)

    @implemented_by(_inspect_attempt)
    async def inspect_attempt(
        self, payment_intent_id: str, attempt_id: str, *, timeout: float | None = None,
        deadline: float | None = None, max_retries: int | None = None,
        extra_headers: Mapping[str, str] | None = None, extra_query: Mapping[str, Any] | None = None,
    ) -> models.Inspection:  # fmt: skip
        """The gateway's own record of an attempt: diagnostics (gap U).

        At most 12 a minute per attempt (Limits, Rate limits).

        Args:
            payment_intent_id: the payment's id.
            attempt_id: the attempt's id.
            timeout: seconds for each attempt.
            deadline: seconds for the whole call: pacing, attempts and back-off.
            max_retries: attempts after the first.
            extra_headers: headers beside the client's own.
            extra_query: pairs added to the query.

        Raises:
            InvalidRequest: an id cannot be part of a path; nothing was sent.
            PaymentsError: see `errors`; effect "none".
        """

    async def wait_attempt(
        self, payment_intent_id: str, attempt_id: str | None = None, *, deadline: float = 900.0
    ) -> models.PaymentAttempt:
        """Wait until an attempt is final.

        All waits of a client and event loop share one reading of the list, never more often than every five
        seconds (Limits, Polling guidance).

        Args:
            payment_intent_id: the payment's id, or the `token` of an earlier `WaitTimeout`.
            attempt_id: the attempt's id; a token knows it.
            deadline: seconds, 900 when absent.

        Raises:
            WaitTimeout: not final yet; `.last` is the newest state, `.token` continues the wait.
            SearchIncomplete: the service gave the same cursor twice, and no page showed the payment.
            PaymentsError: the reading failed for good.
        """
        return await self._client.waiting.attempt(payment_intent_id, attempt_id, deadline)
