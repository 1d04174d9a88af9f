"""Runs a call: passes the rate limiters, sends, reads the answer, then returns, raises or tries again.

`Pipeline.run` is the loop. Every decision in it is a call to a pure function; the pipeline acts on it.

A call that succeeds at once uses no task, timer, future or context manager of its own. A cancelled write has
an `OutcomeUnknown` as `.outcome` on its `CancelledError`, and is logged with its operation and key, because a
task group drops the exception. Errors of the transport are raised outside the `except` that caught aiohttp's,
so that no traceback reaches a frame that holds headers.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Coroutine, Mapping
from datetime import timedelta
from typing import Any

import attrs

from .._http.types import HTTPRequest, Transport, TransportError
from .._rate_limit.key_limiter import Grants, give_up
from .._rate_limit.limiter import LimiterTimeout, RateLimiter
from .._rate_limit.limits import LimitClass, LimitSnapshot
from .._runtime import Runtime
from ..errors import ConfigurationError, InvalidRequest, LimitReached, PaymentsError, RateLimitedError
from ..params import Params, PreparedRequest
from ..params.operations import Operation
from . import notify
from .attempt import foreign, is_sent, make_request, refuse_connection, unprotected
from .auth import SecretKey
from .clocks import Timestamps
from .history import CallHistory
from .idempotency import KeyMaker, UsedKeys
from .key_state import Keys, KeyState
from .outcome import AttemptResult, read_answer, read_failure
from .pending import PendingRequests, join
from .pending import of as pending_of
from .prepare import Call, prepare
from .retry import JITTER, backoff, is_mistaken, pause
from .settings import Settings


@attrs.define(eq=False)
class Pipeline:
    """Sends calls. Shared by all resources of a client and by its `with_options` siblings' transport."""

    settings: Settings
    transport: Transport = attrs.field(repr=False)
    runtime: Runtime = attrs.field(repr=False)
    keys: Keys = attrs.field(repr=False)
    make_key: KeyMaker = attrs.field(repr=False)
    used_keys: UsedKeys = attrs.field(repr=False)
    session: str = attrs.field(repr=False)
    """Names the process and its clock (`clocks.Timestamps`)."""
    pending: PendingRequests = attrs.field(init=False, repr=False)
    """The requests under way on this client's clock."""

    async def run(self, call: Call) -> Any:
        """The call's record. Raises the errors of `errors`, each with the call's effect."""
        runtime, settings, emitter = self.runtime, self.settings, self.settings.emitter
        history = CallHistory(call, runtime.monotonic(), call.deadline or settings.deadline, self.moment)
        key: SecretKey | None = None
        while True:
            key = self._key(history, key)
            state = self.keys.of(key)
            is_observed = emitter.enabled  # read once: both events of an attempt, or neither
            started = runtime.monotonic()
            grants = self._try_acquire(state, history, started)
            if not grants:
                grants = await self._acquire(state, history)
                started = runtime.monotonic()
            request: HTTPRequest | None = None
            try:
                request = make_request(call, settings, key, history.deadline, started)
                if is_observed:
                    notify.sent(emitter, history)
                result = read_answer(call, await self.transport.send(request), runtime.now)
            except TransportError as failure:
                result = read_failure(call, failure, sent=is_sent(request))
            except BaseException as stopped:
                self._abort_attempt(history, stopped, grants, started, request)
                raise
            self._record_attempt(history, result, state, grants, started, request)
            if is_observed:
                notify.ended(emitter, history, result)
            if result.error is None:
                state.budget.earn()
                return history.delivery(result)
            refuse_connection(request, result.error)
            delay = self._before_retry(state, history, result, result.error)
            if delay:
                await self._sleep(history, delay)

    def send(self, call: Call, options: Mapping[str, Any]) -> Coroutine[Any, Any, Any]:
        """Send a write just prepared. No other caller can know a key that the client made for it."""
        return self.run_once(call) if options.get("idempotency_key") else self.run(call)

    async def run_once(self, call: Call) -> Any:
        """Send a write whose idempotency key other callers may know: joins the same request if under way."""
        requests = self.pending
        request, is_own = requests.enter(call)
        if not is_own:
            deadline = call.deadline or self.settings.deadline
            history = CallHistory(call, self.runtime.monotonic(), deadline, self.moment)
            return await join(requests, request, self.runtime, self.run, history)
        try:
            value = await self.run(call)
        except BaseException as stopped:
            requests.give_up(request, stopped, self.runtime.monotonic())
            raise
        requests.leave(request, ("record", value))
        return value

    @pending.default
    def _pending_of_runtime(self) -> PendingRequests:
        return pending_of(self.runtime)

    def prepare(
        self,
        operation: Operation[Any],
        request: Params | Mapping[str, Any] | None,
        options: Mapping[str, Any],
        path: str | None = None,
    ) -> PreparedRequest:
        """A write's bytes and key. Raises InvalidRequest, also for a key used with another body (gap R)."""
        prepared = prepare(
            operation,
            request,
            options,
            base_url=self.settings.base_url,
            key=self.settings.key(),
            now=self.runtime.now(),
            make_key=self.make_key,
            path=path,
        )
        if options.get("idempotency_key"):
            return self._with_known_key(prepared)
        return prepared

    def _with_known_key(self, prepared: PreparedRequest) -> PreparedRequest:
        """A request under the caller's own key, which protects from when it was first used."""
        key, now = prepared.idempotency_key, self.runtime.monotonic()
        first = self.used_keys.first_used(key, now)
        if self.used_keys.conflict(key, prepared.body, now):
            problem = "was used with another body within 24 hours: a changed request needs a new key"
            raise InvalidRequest({"idempotency_key": [problem]}, operation=prepared.operation)
        if first == now:
            return prepared
        return attrs.evolve(prepared, created_at=prepared.created_at - timedelta(seconds=now - first))

    def refuse_foreign(self, prepared: PreparedRequest) -> None:
        """Raise ConfigurationError for a request that was prepared for another address or environment."""
        if problem := foreign(prepared, self.settings.base_url, self.settings.key()):
            raise ConfigurationError(problem, operation=prepared.operation)

    def refuse_unprotected(self, prepared: PreparedRequest, *, rotated_key: bool) -> None:
        """Raise ConfigurationError for a request whose idempotency key may not keep it from happening twice.

        That is under another secret key, which may be another project's, and without a reference after the
        key's time. A payout's reference protects it for ever (Endpoints, POST /payouts).
        """
        if not isinstance(prepared, PreparedRequest):
            problem = f"send() takes a PreparedRequest, not {type(prepared).__name__}"
            raise ConfigurationError(f"{problem}; PreparedRequest.from_json(text) reads one")
        self.refuse_foreign(prepared)
        same_key = rotated_key or self.made_it(prepared)
        if problem := unprotected(prepared, self.age(prepared), same_key=same_key):
            raise ConfigurationError(problem, operation=prepared.operation)

    def made_it(self, prepared: PreparedRequest) -> bool:
        """Whether a request was prepared under the secret key of now."""
        return prepared.key_fingerprint == self.settings.key().fingerprint

    def age(self, prepared: PreparedRequest) -> float:
        """Seconds since a request was prepared, or its key first used."""
        return (self.runtime.now() - prepared.created_at).total_seconds()

    def moment(self) -> Timestamps:
        """Now, on our own clocks."""
        return Timestamps(self.runtime.now().timestamp(), self.runtime.monotonic(), self.session)

    def limits_snapshot(self) -> dict[LimitClass, LimitSnapshot]:
        """How much of each limit the key has used in this process."""
        limiter = self.keys.of(self.settings.key()).limiter
        return limiter.snapshot(self.runtime.monotonic())

    def _key(self, history: CallHistory, last: SecretKey | None) -> SecretKey:
        """The key of the next attempt: a fresh one, but the last one again while its attempt is in doubt.

        Another key may not see the first one's idempotency store, and none at all must not hide the doubt.
        """
        if last is not None and history.unknown:
            return last
        key, prepared = self.settings.key(), history.call.prepared
        if prepared is not None and (problem := foreign(prepared, self.settings.base_url, key)):
            raise history.conclusion(ConfigurationError(problem))
        return key

    def _try_acquire(self, state: KeyState, history: CallHistory, now: float) -> Grants:
        """The grant of nearly every call: one limiter with room, and no deadline. Empty in any other case."""
        call = history.call
        limiters = state.limiter.limiters(call.limit, call.record, now)
        if len(limiters) > 1 or history.deadline is not None:
            return ()
        grant = limiters[0].try_acquire(now)
        return ((limiters[0], grant),) if grant else ()

    async def _acquire(self, state: KeyState, history: CallHistory) -> Grants:
        """Pass the limiters of the call, narrow ones first; nothing passes after the deadline."""
        call, grants, monotonic = history.call, [], self.runtime.monotonic
        try:
            for limiter in state.limiter.limiters(call.limit, call.record, monotonic()):
                grant = limiter.try_acquire(monotonic()) or await self._wait_for_slot(limiter, history)
                grants.append((limiter, grant))
            if history.is_late(monotonic):
                raise history.out_of_time()
        except BaseException as stopped:
            give_up(grants, monotonic(), sent=False)
            if isinstance(stopped, CancelledError):
                self._attach_outcome(history, stopped)
            raise
        return grants

    async def _wait_for_slot(self, limiter: RateLimiter, history: CallHistory) -> int:
        now = self.runtime.monotonic()
        grant = 0
        while not grant:
            self._refuse_long_wait(limiter, history)
            patience = max(self.settings.max_retry_after, 60.0)
            try:
                until = history.until(self.runtime.monotonic() + patience)
                grant = await limiter.acquire(self.runtime, priority=history.call.priority, until=until)
            except LimiterTimeout:  # the deadline, or a limiter that may have been closed for long meanwhile
                if history.is_late(self.runtime.monotonic):
                    raise history.out_of_time() from None
        notify.throttled(self.settings.emitter, history, self.runtime.monotonic() - now)
        return grant

    def _refuse_long_wait(self, limiter: RateLimiter, history: CallHistory) -> None:
        """Raise LimitReached where the caller does not want to wait, or not for so long."""
        now, name = self.runtime.monotonic(), history.call.operation.name
        closed = limiter.snapshot(now).closed_for
        if closed > self.settings.max_retry_after + JITTER:
            reason = f"{name}: the service's 429 closed the rate limit for {closed:.3g} s"
            error = LimitReached(f"{reason}; this try was not sent", retry_after=closed)
            raise history.conclusion(error)
        if self.settings.on_limit == "raise":
            wait = limiter.wait(now)
            reason = f"{name}: the rate limit has no room for {wait:.3g} s"
            raise history.conclusion(LimitReached(f"{reason}; this try was not sent", retry_after=wait))

    def _record_attempt(
        self,
        history: CallHistory,
        result: AttemptResult,
        state: KeyState,
        grants: Grants,
        started: float,
        request: HTTPRequest | None,
    ) -> None:
        """Note an attempt's verdict, and report its end to the limiters it had passed."""
        ended = self.runtime.monotonic()
        history.note(result, started, ended)
        if result.status is None:
            give_up(grants, ended, sent=is_sent(request))
        elif result.status == 429 and result.again:
            self._close(state, grants, history, result, ended)
        else:
            for limiter, grant in grants:
                limiter.release(grant, ended)

    def _abort_attempt(
        self,
        history: CallHistory,
        stopped: BaseException,
        grants: Grants,
        started: float,
        request: HTTPRequest | None,
    ) -> None:
        """Note an attempt that was cancelled or failed unexpectedly; it is in doubt if it was sent."""
        ended, sent = self.runtime.monotonic(), is_sent(request)
        give_up(grants, ended, sent=sent)
        reason = "cancelled" if isinstance(stopped, CancelledError) else type(stopped).__name__
        history.cut_short(reason, sent=sent, sent_at=started, ended=ended)
        if not isinstance(stopped, Exception):
            self._attach_outcome(history, stopped)
        elif history.unknown:
            raise history.outcome_unknown(stopped) from stopped

    def _close(
        self, state: KeyState, grants: Grants, history: CallHistory, result: AttemptResult, now: float
    ) -> None:
        """Close the limiters after a 429, for the time that the service asks for plus jitter."""
        mistaken = is_mistaken(result.retry_after)
        asked = self.settings.max_retry_after if mistaken else result.retry_after
        seconds = pause(history.retries + 1, asked, self.runtime.random())
        seconds = state.limiter.refused(grants, now, seconds, mistaken=mistaken)
        notify.closed(self.settings.emitter, history, seconds)

    def _before_retry(
        self, state: KeyState, history: CallHistory, result: AttemptResult, error: PaymentsError
    ) -> float:
        """Seconds until the next attempt; raises the call's error when there is none."""
        call, settings = history.call, self.settings
        allowed = settings.max_retries if call.max_retries is None else call.max_retries
        if not result.again or self._not_to_be_waited_for(error):
            raise history.conclusion(error)
        if history.is_late(self.runtime.monotonic):
            raise history.out_of_time(error)
        limited = result.status == 429  # it waits at the limiter, which then opens for one request at a time
        if history.retries >= allowed or not (limited or state.budget.spend(result.reason)):
            raise history.conclusion(error)
        history.retries += 1
        delay = 0.0 if limited else backoff(history.retries, self.runtime.random())
        if history.is_late(self.runtime.monotonic, after=delay):
            raise history.out_of_time(error)
        notify.retrying(settings.emitter, history, delay, result.reason)
        return delay

    def _not_to_be_waited_for(self, error: PaymentsError) -> bool:
        """Whether the caller, or the length of the wait, forbids waiting after a 429."""
        if not isinstance(error, RateLimitedError):
            return False
        return self.settings.on_limit == "raise" or (error.retry_after or 0.0) > self.settings.max_retry_after

    async def _sleep(self, history: CallHistory, seconds: float) -> None:
        try:
            await self.runtime.sleep(seconds)
        except CancelledError as stopped:
            self._attach_outcome(history, stopped)
            raise

    def _attach_outcome(self, history: CallHistory, stopped: BaseException) -> None:
        """Attach the outcome of a call in doubt to its cancellation, and log it."""
        if history.unknown:
            stopped.outcome = history.outcome_unknown()  # type: ignore[attr-defined] # added to the exception
        notify.cancelled(self.settings.emitter, history)
