# From payments_async/resources/checkouts.py; change that, then run: python -m tools.mirror
"""Checkouts: a payment with a hosted page that collects it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from payments_async import models
from payments_async.params import AppearanceFields, AppearanceInput, CheckoutRestriction, CustomerFields, CustomerInput, Money, Pairs, PreparedRequest, RestrictionFields
from payments_async.resources._signatures import explains_absent
from payments_async.resources.checkouts import AsyncCheckouts

from .._blocking_call import forwarded
from .._event_loop import Bridge


@explains_absent
class Checkouts:
    """`client.checkouts`."""

    def __init__(self, twin: AsyncCheckouts, bridge: Bridge) -> None:
        self._async, self._bridge = twin, bridge

    @forwarded(Bridge.call)
    def create(
        self, *, amount: Money, currency: str, description: str | None = None,
        customer: CustomerInput | CustomerFields | None = None, return_url: str | None = None,
        webhook_url: str | None = None, statement_descriptor: str | None = None,
        receipt_email: str | None = None, entity_id: str | None = None,
        entity_created_at: datetime | None = None, gateway_options: Pairs | None = None,
        metadata: Pairs | None = None, expires_in_minutes: int | None = None,
        restriction: CheckoutRestriction | RestrictionFields | None = None,
        appearance: AppearanceInput | AppearanceFields | None = None, idempotency_key: str | None = None,
        extra_headers: Mapping[str, str] | None = None, extra_query: Mapping[str, Any] | None = None,
        extra_body: Mapping[str, Any] | None = None, timeout: float | None = None,
        deadline: float | None = None, max_retries: int | None = None,
    ) -> models.Checkout:  # fmt: skip
        """Create a payment and its hosted page; send the payer to `.url` (POST /payment/checkouts).

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
            expires_in_minutes: 30 to 1440.
            restriction: one country or one phone number.
            appearance: overrides of the page's design.
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

    @forwarded(Bridge.call_plainly)
    def prepare(
        self, *, amount: Money, currency: str, description: str | None = None,
        customer: CustomerInput | CustomerFields | None = None, return_url: str | None = None,
        webhook_url: str | None = None, statement_descriptor: str | None = None,
        receipt_email: str | None = None, entity_id: str | None = None,
        entity_created_at: datetime | None = None, gateway_options: Pairs | None = None,
        metadata: Pairs | None = None, expires_in_minutes: int | None = None,
        restriction: CheckoutRestriction | RestrictionFields | None = None,
        appearance: AppearanceInput | AppearanceFields | None = None, idempotency_key: str | None = None,
        extra_headers: Mapping[str, str] | None = None, extra_query: Mapping[str, Any] | None = None,
        extra_body: Mapping[str, Any] | None = None,
    ) -> PreparedRequest[models.Checkout]:  # fmt: skip
        """The exact bytes and idempotency key of a create: store them, then `client.send` them.

        Takes the arguments of `create` except `timeout`, `deadline` and `max_retries`.

        Raises:
            InvalidRequest: every fault of the arguments; nothing was sent.
        """

    @forwarded(Bridge.call)
    def retrieve(
        self, checkout_id: str, *, timeout: float | None = None, deadline: float | None = None,
        max_retries: int | None = None, extra_headers: Mapping[str, str] | None = None,
        extra_query: Mapping[str, Any] | None = None,
    ) -> models.Checkout:  # fmt: skip
        """Read a session and its payment back: this, not the payer's return, says whether it was paid.

        Endpoints, GET /payment/checkouts/{checkoutId}.

        Args:
            checkout_id: the session's id.
            timeout: seconds for each attempt.
            deadline: seconds for the whole call: pacing, attempts and back-off.
            max_retries: attempts after the first.
            extra_headers: headers beside the client's own.
            extra_query: pairs added to the query.

        Raises:
            InvalidRequest: the id cannot be part of a path; nothing was sent.
            PaymentsError: see `errors`; effect "none".
        """

    def wait(self, checkout: models.Checkout | str, *, deadline: float = 900.0) -> models.Checkout:
        """Wait until the session's payment is final: paid, failed or expired.

        All waits of a client and event loop share one reading of the list, never more often than every five
        seconds (Limits, Polling guidance).

        Args:
            checkout: the checkout, its id, or the `token` of an earlier `WaitTimeout`.
            deadline: seconds, 900 when absent.

        Raises:
            WaitTimeout: not final yet; `.last` is the newest state, `.token` continues the wait.
            SearchIncomplete: the service gave the same cursor twice, and no page showed the payment.
            PaymentsError: the reading failed for good.
        """
        return self._bridge.call(self._async.wait, checkout, deadline=deadline)
