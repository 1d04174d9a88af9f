"""The client: one object per secret key, with a resource for each part of the service."""

from __future__ import annotations

import itertools
import os
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Self, TypeVar, Unpack, overload

import attrs

from ._emitter import Event
from ._http import default_transport, shared
from ._http.types import Transport
from ._rate_limit.limits import LimitClass, LimitSnapshot, RateLimits
from ._rate_limit.registry import PROCESS, LimiterRegistry
from ._request import prepare
from ._request.auth import SAME_KEY, hidden
from ._request.key_state import Keys
from ._request.pipeline import Pipeline
from ._request.settings import Settings, altered, check_numbers, check_parts, settle, variables, verifies
from ._runtime import SESSION, SYSTEM, Runtime
from .arguments import WriteOptions
from .errors import (
    APIConnectionError,
    DeadlineExceeded,
    DuplicateReference,
    LimitReached,
    OutcomeUnknown,
    RateLimitedError,
    ResponseMismatch,
    ServerError,
)
from .guard import Guard
from .models._masking import hidden_pairs
from .params import PreparedRequest
from .resources._base import ResourceClient, SharedWaits, load_operations
from .resources._signatures import explains_absent, implemented_by, on_class
from .resources.checkouts import AsyncCheckouts
from .resources.methods import AsyncMethods
from .resources.payment_intents import AsyncPaymentIntents
from .resources.payouts import AsyncPayouts

_clocks = itertools.count(1)
"""Counts clocks other than the system's, so that each gets its own limits."""


def opened(settings: Settings, runtime: Runtime, transport: Transport) -> Pipeline:
    """Make a pipeline. On the system's clock it shares its key's limits with all others of the process."""
    is_system = runtime is SYSTEM
    limiters = PROCESS if is_system else LimiterRegistry(runtime.monotonic)
    session = SESSION if is_system else f"{SESSION}-{next(_clocks)}"
    keys = Keys(limiters, settings, runtime)
    return Pipeline(settings, transport, runtime, keys, session)


def of_another_key(pipeline: Pipeline, settings: Settings) -> Pipeline:
    """Make a pipeline for another secret key: it shares connections and clock. Raises ConfigurationError."""
    keys = pipeline.keys.of_another(settings)
    return attrs.evolve(pipeline, settings=settings, transport=shared(pipeline.transport), keys=keys)


R = TypeVar("R")
_AWAY: Final = (APIConnectionError, DeadlineExceeded, LimitReached, RateLimitedError, ServerError)
"""Errors of a service that is away for a while. Any other one has to be corrected by a person."""


@explains_absent
class AsyncPayments:
    """Collects payments and sends payouts.

    Making a client sends nothing and needs no running loop. The first client of a process imports the HTTP
    library, which takes 0.2 s: make clients at start-up, and `warm_up()` does the rest. A client works with
    or without `async with`; close it with `aclose()`. All clients of a key in a process share the key's rate
    limits.
    """

    checkouts: AsyncCheckouts = on_class(AsyncCheckouts)
    """Payments with a hosted page."""
    payment_intents: AsyncPaymentIntents = on_class(AsyncPaymentIntents)
    """Payments and their attempts."""
    payouts: AsyncPayouts = on_class(AsyncPayouts)
    """Money sent to a recipient."""
    methods: AsyncMethods = on_class(AsyncMethods)
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
        api_key, base_url, proxy, limit_store = map(hidden, (api_key, base_url, proxy, limit_store))
        check_numbers({"connect_timeout": connect_timeout, "max_connections": max_connections})
        check_parts(
            ssl_context=ssl_context,
            insecure=insecure,
            insecure_database=insecure_database,
            transport=transport,
            runtime=runtime,
        )
        settings = settle(
            variables(os.environ),
            api_key=api_key,
            base_url=base_url,
            environment=environment,
            limits=limits,
            limit_store=limit_store,
            insecure_database=insecure_database,
            expected_workers=expected_workers,
            guard=guard,
            app_info=app_info,
            on_event=on_event,
            verified=insecure or verifies(ssl_context),
            timeout=timeout,
            deadline=deadline,
            max_retries=max_retries,
            max_retry_after=max_retry_after,
            on_limit=on_limit,
        )
        runtime = runtime or SYSTEM
        sender = transport or default_transport(runtime, connect_timeout, max_connections, proxy, ssl_context)
        self._begin(opened(settings, runtime, sender), api_key)

    def _begin(self, pipeline: Pipeline, api_key: object) -> None:
        if not callable(api_key):
            key = pipeline.settings.key()
            pipeline.keys.of(key)  # now: a warning about differing limits names the caller
        self._assemble(pipeline, SharedWaits(pipeline))

    def _assemble(self, pipeline: Pipeline, waits: SharedWaits) -> None:
        self._pipeline = pipeline
        # `bulk` and `webhooks` use this for what the public methods do not offer.
        internal = self._internal = ResourceClient(pipeline, waits)
        self.checkouts = AsyncCheckouts(internal)
        self.payment_intents = AsyncPaymentIntents(internal)
        self.payouts = AsyncPayouts(internal)
        self.methods = AsyncMethods(internal)

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
        given = {
            "timeout": timeout,
            "deadline": deadline,
            "max_retries": max_retries,
            "on_limit": on_limit,
            "max_retry_after": max_retry_after,
        }
        settings = altered(self._pipeline.settings, api_key, on_event, given)
        sibling = object.__new__(type(self))
        if api_key is SAME_KEY:
            sibling._assemble(attrs.evolve(self._pipeline, settings=settings), self._internal.waits)
        else:
            sibling._begin(of_another_key(self._pipeline, settings), api_key)
        return sibling

    async def _request(
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
        operation, record = prepare.unlisted(method, path, result, limit)
        arguments = prepare.with_params(operation, json, params, options)
        if operation.writes:
            call = self._pipeline.writing(operation, json, arguments, record=record)
            return await self._pipeline.send(call, arguments)
        return await self._pipeline.run(prepare.reading(operation, arguments, record=record))

    @overload
    async def request(
        self, method: str, path: str, *, json: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None, result: None = None, limit: LimitClass | None = None,
        idempotency_key: str | None = None, extra_headers: Mapping[str, str] | None = None,
        extra_query: Mapping[str, Any] | None = None, extra_body: Mapping[str, Any] | None = None,
        timeout: float | None = None, deadline: float | None = None, max_retries: int | None = None,
    ) -> Any: ...  # fmt: skip
    @overload
    async def request(
        self, method: str, path: str, *, json: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None, result: type[R], limit: LimitClass | None = None,
        idempotency_key: str | None = None, extra_headers: Mapping[str, str] | None = None,
        extra_query: Mapping[str, Any] | None = None, extra_body: Mapping[str, Any] | None = None,
        timeout: float | None = None, deadline: float | None = None, max_retries: int | None = None,
    ) -> R: ...  # fmt: skip
    @implemented_by(_request)
    async def request(
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

    async def send(
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
        key = self._pipeline.refuse_unprotected(prepared, rotated_key=rotated_key)
        options = {"max_retries": max_retries, "timeout": timeout, "deadline": deadline}
        return await self._internal.send(prepared, options, priority=priority, key=key)

    @overload
    async def resolve(self, outcome: PreparedRequest[R]) -> R: ...
    @overload
    async def resolve(self, outcome: OutcomeUnknown | ResponseMismatch | DuplicateReference) -> Any: ...
    async def resolve(
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
        from ._request.resolve import OutcomeResolver  # few programs need it

        return await OutcomeResolver(self._pipeline, self.payouts.find).resolve(outcome)

    async def warm_up(self, *, deadline: float | None = None) -> bool:
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
        load_operations()
        try:
            await self.payouts.list(deadline=deadline)
        except _AWAY as error:
            if isinstance(error, APIConnectionError) and error.kind == "tls":
                raise
            self._pipeline.settings.emitter.warn(f"the client is not warm yet: {error}")
            return False
        return True

    def limits_snapshot(self) -> dict[LimitClass, LimitSnapshot]:
        """The use of each rate limit by the key in this process, requests a minute.

        A function that gives the key is not asked: the key of the last request counts.
        """
        return self._pipeline.limits_snapshot()

    async def aclose(self) -> None:
        """Close the connections, unless an open client of another key shares them.

        Attempts under way fail and are not retried. The client opens new connections if it is used again.
        """
        self._pipeline.keys.close()
        await self._pipeline.transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *ended: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        try:
            settings = self._pipeline.settings
        except AttributeError:  # the constructor failed, and its traceback prints local variables
            return f"{type(self).__name__}(unfinished)"
        return f"{type(self).__name__}(base_url={settings.base_url!r})"
