"""Checkouts: a payment with a hosted page that collects it."""

from __future__ import annotations

from typing import Unpack

from .. import arguments, models, params
from ..params import PreparedRequest
from ..params.operations import CHECKOUTS_CREATE, CHECKOUTS_RETRIEVE
from ._base import Resource


class AsyncCheckouts(Resource):
    """`client.checkouts`."""

    async def create(self, **arguments: Unpack[arguments.CheckoutArguments]) -> models.Checkout:
        """Create a payment and its hosted page; send the payer to `.url` (POST /payment/checkouts).

        Args:
            arguments: `amount`, `currency`, and any field and option of `arguments.CheckoutArguments`.

        Raises:
            InvalidRequest: every fault of the arguments; nothing was sent.
            OutcomeUnknown: no definite answer came; `client.resolve(error)` finds out.
            PaymentsError: see `errors`; its `effect` speaks of this call.
        """
        try:
            return await self._client.create(CHECKOUTS_CREATE, params.CheckoutRequest, arguments)
        finally:
            del arguments  # tracebacks print locals

    def prepare(self, **arguments: Unpack[arguments.CheckoutPreparation]) -> PreparedRequest:
        """The exact bytes and idempotency key of a create: store them, then `client.send` them.

        Args:
            arguments: what `create` takes, but for `timeout`, `deadline` and `max_retries`.

        Raises:
            InvalidRequest: every fault of the arguments; nothing was sent.
        """
        try:
            return self._client.prepare(CHECKOUTS_CREATE, params.CheckoutRequest, arguments)
        finally:
            del arguments  # tracebacks print locals

    async def retrieve(self, checkout_id: str, **options: Unpack[arguments.ReadOptions]) -> models.Checkout:
        """Read a session and its payment back: this, not the payer's return, says whether it was paid.

        Endpoints, GET /payment/checkouts/{checkoutId}.

        Args:
            checkout_id: the session's id.
            options: see `arguments.ReadOptions`.

        Raises:
            InvalidRequest: the id cannot be part of a path; nothing was sent.
            PaymentsError: see `errors`; effect "none".
        """
        return await self._client.read(CHECKOUTS_RETRIEVE, options, {"checkout_id": checkout_id})

    async def wait(self, checkout: models.Checkout | str, *, deadline: float = 900.0) -> models.Checkout:
        """Wait until the session's payment is final: paid, failed or expired.

        All waits of a key in this process share one reading of the list, never more often than every five
        seconds (Limits, Polling guidance).

        Args:
            checkout: the checkout, its id, or the `token` of an earlier `WaitTimeout`.
            deadline: seconds, 900 when absent.

        Raises:
            WaitTimeout: not final yet; `.last` is the newest state, `.token` continues the wait.
            SearchIncomplete: the service gave the same cursor twice, and no page showed the payment.
            PaymentsError: the reading failed for good.
        """
        return await self._client.waiting.checkout(checkout, deadline)
