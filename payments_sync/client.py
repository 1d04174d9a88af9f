# From payments_async/client.py; change that, then run: python -m tools.mirror
"""The client: one object per secret key, with a resource for each part of the service."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self, TypeVar, Unpack, overload

from payments_async._emitter import Event
from payments_async._http.types import Transport
from payments_async._rate_limit.limits import LimitClass, LimitSnapshot, RateLimits
from payments_async._request.auth import SAME_KEY, hidden
from payments_async._runtime import Runtime
from payments_async.arguments import WriteOptions
from payments_async.client import AsyncPayments
from payments_async.errors import DuplicateReference, OutcomeUnknown, ResponseMismatch
from payments_async.guard import Guard
from payments_async.models._masking import hidden_pairs
from payments_async.params import PreparedRequest
from payments_async.resources._signatures import explains_absent, implemented_by, on_class

from ._event_loop import Bridge
from .resources.checkouts import Checkouts
from .resources.methods import Methods
from .resources.payment_intents import PaymentIntents
from .resources.payouts import Payouts

R = TypeVar("R")


@explains_absent
class Payments:
    """Collects payments and sends payouts.

    Making a client sends nothing and needs no running loop. The first client of a process imports the HTTP
    library, which takes 0.2 s: make clients at start-up, and `warm_up()` does the rest. A client works with
    or without `with`; close it with `close()`. All clients of a key in a process share the key's rate
    limits.
    """

    checkouts: Checkouts = on_class(Checkouts)
    """Payments with a hosted page."""
    payment_intents: PaymentIntents = on_class(PaymentIntents)
    """Payments and their attempts."""
    payouts: Payouts = on_class(Payouts)
    """Money sent to a recipient."""
    methods: Methods = on_class(Methods)
    """Payment methods."""

    def __init__(
        self,
        api_key: str | Callable[[], str] | None = None,
        *,
        base_url: str | None = None,
        environment: Literal["live", "sandbox"] | None = None,
        timeout: float = 30.0,
        connect_timeout: float = 10.0,
        deadline: float | None = None,
        max_retries: int = 2,
        limits: RateLimits | None = None,
        limit_store: str | None = None,
        expected_workers: int | None = None,
        guard: Guard | None = None,
        on_limit: Literal["wait", "raise"] = "wait",
        max_retry_after: float = 120.0,
        max_connections: int = 256,
        proxy: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
        insecure: bool = False,
        insecure_database: bool = False,
        on_event: Callable[[Event], object] | None = None,
        app_info: str | None = None,
        transport: Transport | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        """Check the options; nothing is sent.

        Args:
            api_key: the project's secret key, or a callable that gives it, asked once a call and again for a
                retry (rotation without a restart); `PAYMENTS_API_KEY` when absent (Authentication).
            base_url: the service's address, ending in /v1; `PAYMENTS_BASE_URL` when absent.
            environment: "sandbox" or "live"; a key of the other one is refused.
            timeout: seconds for each attempt.
            connect_timeout: seconds to open a connection.
            deadline: seconds for a whole call, pacing and retries included; None for no bound.
            max_retries: attempts after the first.
            limits: requests a minute; None for the service's limits, or those the key already has in this
                process. `PAYMENTS_RATE_SHARE` (a fraction) divides them among processes.
            limit_store: address of a PostgreSQL database or a Redis or Valkey server, through which all
                processes that use the key share its limits: `postgresql://`, `redis://` or `rediss://`;
                `PAYMENTS_LIMIT_STORE` when absent.
            expected_workers: number of those processes. While the store cannot be reached, each takes its
                part of nine tenths of the limits; without a number, calls wait.
                `PAYMENTS_EXPECTED_WORKERS` when absent.
            guard: what may be sent. It holds for every client of the key in this process, besides the one in
                the file that `PAYMENTS_GUARD` names.
            on_limit: wait for the rate limit, or raise LimitReached.
            max_retry_after: seconds; a longer `Retry-After` raises at once.
            max_connections: connections open at a time.
            proxy: URL of an HTTP proxy. The environment's proxy settings are not read.
            ssl_context: TLS settings, such as for a private certificate authority.
            insecure: allow a live key with an `ssl_context` that verifies no certificate.
            insecure_database: allow a `limit_store` on another host without TLS that proves its name
                (`sslmode=verify-full`, `rediss://`).
            on_event: called with each `events.Event`; its exceptions do not break a call.
            app_info: added to `User-Agent`, such as "shop/1.2".
            transport: sends the requests, in place of aiohttp; for tests.
            runtime: time and randomness, for tests.

        Raises:
            ConfigurationError: an option cannot be used; the message says why, never showing the key.
        """
        api_key, base_url, proxy = hidden(api_key), hidden(base_url), hidden(proxy)
        limit_store = hidden(limit_store)
        twin = AsyncPayments(
            api_key, base_url=base_url, environment=environment, timeout=timeout,
            connect_timeout=connect_timeout, deadline=deadline, max_retries=max_retries, limits=limits,
            limit_store=limit_store, expected_workers=expected_workers, guard=guard, on_limit=on_limit,
            max_retry_after=max_retry_after, max_connections=max_connections, proxy=proxy,
            ssl_context=ssl_context, insecure=insecure, insecure_database=insecure_database,
            on_event=on_event, app_info=app_info, transport=transport, runtime=runtime,
        )  # fmt: skip
        self._assemble(twin, Bridge(twin.aclose))

    def _assemble(self, twin: AsyncPayments, bridge: Bridge) -> None:
        self._async, self._bridge = twin, bridge
        self.checkouts = Checkouts(twin.checkouts, bridge)
        self.payment_intents = PaymentIntents(twin.payment_intents, bridge)
        self.payouts = Payouts(twin.payouts, bridge)
        self.methods = Methods(twin.methods, bridge)

    def with_options(
        self,
        *,
        api_key: str | Callable[[], str] = SAME_KEY,
        timeout: float | None = None,
        deadline: float | None = None,
        max_retries: int | None = None,
        on_limit: Literal["wait", "raise"] | None = None,
        max_retry_after: float | None = None,
        on_event: Callable[[Event], object] | None = None,
    ) -> Self:
        """Make a client with other options on the same connections, limits and waits. None keeps an option.

        Closing either closes both.

        With `api_key`, make one for another project, such as a merchant of a platform. It shares connections
        and TLS, and nothing else: limits, retry budget and used idempotency keys are those of the new key.
        Each is closed for itself; the connections close with the last that is open. A callable that has given
        this client no key yet is asked for one, whose environment the new key must have.

        Args:
            api_key: the other project's secret key, of the same environment, or a callable that gives it.

        Raises:
            ConfigurationError: an option cannot be used; the message says why, never showing the key.
        """
        api_key = hidden(api_key)
        twin = self._async.with_options(
            api_key=api_key, timeout=timeout, deadline=deadline, max_retries=max_retries,
            on_limit=on_limit, max_retry_after=max_retry_after, on_event=on_event,
        )  # fmt: skip
        bridge = self._bridge if api_key is SAME_KEY else Bridge(twin.aclose, self._bridge)
        sibling = object.__new__(type(self))
        sibling._assemble(twin, bridge)
        return sibling

    def _request(
        self,
        method: str,
        path: str,
        *,
        json: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        result: type[Any] | None = None,
        limit: LimitClass | None = None,
        **options: Unpack[WriteOptions],
    ) -> Any:
        json = hidden_pairs(json)
        # a ParamSpec does not hold overloads
        return self._bridge.call(
            lambda: self._async.request(method, path, json=json, params=params, result=result, limit=limit, **options),
        )

    @overload
    def request(
        self, method: str, path: str, *, json: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None, result: None = None, limit: LimitClass | None = None,
        idempotency_key: str | None = None, extra_headers: Mapping[str, str] | None = None,
        extra_query: Mapping[str, Any] | None = None, extra_body: Mapping[str, Any] | None = None,
        timeout: float | None = None, deadline: float | None = None, max_retries: int | None = None,
    ) -> Any: ...  # fmt: skip

    @overload
    def request(
        self, method: str, path: str, *, json: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None, result: type[R], limit: LimitClass | None = None,
        idempotency_key: str | None = None, extra_headers: Mapping[str, str] | None = None,
        extra_query: Mapping[str, Any] | None = None, extra_body: Mapping[str, Any] | None = None,
        timeout: float | None = None, deadline: float | None = None, max_retries: int | None = None,
    ) -> R: ...  # fmt: skip

    @implemented_by(_request)
    def request(
        self, method: str, path: str, *, json: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None, result: type[Any] | None = None,
        limit: LimitClass | None = None, idempotency_key: str | None = None,
        extra_headers: Mapping[str, str] | None = None, extra_query: Mapping[str, Any] | None = None,
        extra_body: Mapping[str, Any] | None = None, timeout: float | None = None,
        deadline: float | None = None, max_retries: int | None = None,
    ) -> Any:  # fmt: skip
        """Call an endpoint that has no method here, with the same limits, retries, errors and decoding.

        Args:
            method: GET, POST, PUT, PATCH or DELETE. All but GET carry an idempotency key.
            path: relative to the base URL, starting with a slash.
            json: the body's fields.
            params: the query.
            result: a record class to read `data` as; None for the whole decoded JSON.
            limit: "write", "read", "diagnostic" or "refund_availability"; chosen by method and path when
                absent.
            idempotency_key: 8 to 128 printable characters; the client makes one when absent (Limits,
                Idempotency).
            extra_headers: headers beside the client's own.
            extra_query: pairs added to the query.
            extra_body: top-level JSON fields put over the request's own.
            timeout: seconds for each attempt.
            deadline: seconds for the whole call: pacing, attempts and back-off.
            max_retries: attempts after the first.

        Raises:
            InvalidRequest: the arguments are invalid; nothing was sent.
            OutcomeUnknown: a write without a definite answer.
            PaymentsError: see `errors`.
        """

    def send(
        self,
        prepared: PreparedRequest[R],
        *,
        priority: Literal["interactive", "bulk"] = "interactive",
        max_retries: int | None = None,
        timeout: float | None = None,
        deadline: float | None = None,
        rotated_key: bool = False,
    ) -> R:
        """Send a prepared request. Sent any number of times within 24 hours, it is carried out once.

        Only its idempotency key protects a request without a reference. If it may have been sent before, the
        newest page of payouts is read first, for the service's time.

        Args:
            prepared: from `prepare` or `PreparedRequest.from_json`.
            priority: "bulk" calls wait behind "interactive" ones at the rate limit.
            max_retries: attempts after the first.
            timeout: seconds for each attempt.
            deadline: seconds for the whole call.
            rotated_key: allow another secret key of the same project.

        Returns:
            The record; `record.response.attempts` has every attempt and its verdict.

        Raises:
            ConfigurationError: the request was prepared for another environment, address or secret key, or
                over 23 hours ago and without a reference; nothing was sent.
            IdempotencyConflict: another call of this process sends the request now.
            OutcomeUnknown: no definite answer came; or, without a reference, nothing was sent now: the
                service's time is not known, or says that the key may have ended.
            PaymentsError: see `errors`; `error.attempts` has every attempt and its verdict.
        """
        return self._bridge.call(
            self._async.send, prepared, priority=priority, max_retries=max_retries, timeout=timeout,
            deadline=deadline, rotated_key=rotated_key,
        )  # fmt: skip

    @overload
    def resolve(self, outcome: PreparedRequest[R]) -> R: ...

    @overload
    def resolve(self, outcome: OutcomeUnknown | ResponseMismatch | DuplicateReference) -> Any: ...

    def resolve(
        self, outcome: OutcomeUnknown | ResponseMismatch | DuplicateReference | PreparedRequest[Any]
    ) -> Any:
        """Find out what became of a write in doubt, or whether a payout with its reference is the same.

        While the idempotency key protects the write (23 hours), the same bytes are sent again with that key.
        Later, or under another secret key, a payout is looked up by its reference; the outcome of a payment
        or checkout stays unknown. Where nothing but the key protects the write, the newest page of payouts
        is read first: the service's time decides too whether the key still does.

        Args:
            outcome: the error, or the request you stored. For a DuplicateReference nothing is sent: the
                payout with that reference is looked up and compared.

        Returns:
            The record: the write was carried out.

        Raises:
            APIStatusError: the write was refused, for this reason; effect "none".
            OutcomeUnknown: the outcome is still not known; try again later.
            ResponseMismatch: the reference belongs to a different payout.
            ConfigurationError: the argument cannot be resolved, or is of another environment or address.
        """
        # a ParamSpec does not hold overloads
        return self._bridge.call(lambda: self._async.resolve(outcome))

    def warm_up(self, *, deadline: float | None = None) -> bool:
        """Load what the first calls need and open a connection: for the start of a worker process.

        Reads the newest page of payouts, which counts as one read and changes nothing. So a wrong key or
        allowlist shows before the first customer comes. Call it in each process, after a fork. A
        connection that is idle for 15 seconds is closed; what was loaded stays.

        It does not raise while the service is away, so that a program can be started meanwhile: it logs a
        warning, and later calls try anew.

        Args:
            deadline: seconds for all of it, retries included.

        Returns:
            Whether the service answered.

        Raises:
            ConfigurationError: no event loop or limit store that can be used.
            AuthenticationError: the service does not know the key.
            PermissionDeniedError: the key may not read payouts, or not from this machine.
            APIConnectionError: the service's certificate is not trusted (`kind` is "tls").
            PaymentsError: what answers is not the service. The client can be used after any of these.
        """
        return self._bridge.call(self._async.warm_up, deadline=deadline)

    def limits_snapshot(self) -> dict[LimitClass, LimitSnapshot]:
        """The use of each rate limit by the key in this process, requests a minute.

        A function that gives the key is not asked: the key of the last request counts.
        """
        return self._async.limits_snapshot()

    def close(self) -> None:
        """Close the connections, unless an open client of another key shares them.

        Attempts under way fail and are not retried. The client opens new connections if it is used again.
        """
        self._bridge.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            settings = self._async._pipeline.settings
        except AttributeError:  # the constructor failed, and its traceback prints local variables
            return f"{type(self).__name__}(unfinished)"
        return f"{type(self).__name__}(base_url={settings.base_url!r})"
