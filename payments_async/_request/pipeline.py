"""Runs a call: passes the rate limiters, sends, reads the answer, then returns, raises or tries again.

`Pipeline.run` is the loop. Every decision in it is a call to another module; the pipeline acts on it. What
follows a 429 or another failure is in `retry`.

A call that succeeds at once uses no task, timer, future or context manager of its own. A cancelled write has
an `OutcomeUnknown` as `.outcome` on its `CancelledError`, and is logged with its operation and key, because a
task group drops the exception. An error of the transport is raised after the `except` block that caught
aiohttp's error: so its traceback has no frame of aiohttp, which holds headers.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import Any, NoReturn

import attrs

from .._http.types import HTTPRequest, Transport, TransportError
from .._rate_limit.key_limiter import Grants, KeyLimiter, give_up
from .._rate_limit.limiter import NONE, LimiterTimeout, RateLimiter
from .._rate_limit.limits import LimitClass, LimitSnapshot
from .._runtime import Runtime
from ..errors import ConfigurationError, InvalidRequest, OutcomeUnknown
from ..models._response import is_replayed
from ..params import Params, PreparedRequest
from ..params.operations import Operation
from . import notify
from .auth import SecretKey
from .call import AttemptResult, Call
from .key_age import Timestamps
from .key_state import Keys, KeyState, admit, renew_admission, settle_admission
from .outcome import read_answer, read_failure
from .pending import (
    PendingRequests,
    asks_again,
    difference,
    identity_of,
    needs_time,
    pending_of,
    refuse_outdated,
)
from .prepare import foreign, is_sent, make_request, prepare, refuse_connection, unprotected
from .retry import before_retry, close_limiters, refuse_long_wait, wait_until
from .settings import Settings, last_key


@attrs.define(eq=False)
class Pipeline:
    """Sends the calls of all resources of a client."""

    settings: Settings
    transport: Transport = attrs.field(repr=False)
    runtime: Runtime = attrs.field(repr=False)
    keys: Keys = attrs.field(repr=False)
    session: str = attrs.field(repr=False)
    """Identifies the process and its clock (`Timestamps`)."""
    pending: PendingRequests = attrs.field(
        init=False, repr=False, default=attrs.Factory(lambda self: pending_of(self.runtime), takes_self=True)
    )
    """The requests under way on this client's clock."""
    reminder: notify.Reminder = attrs.field(
        init=False,
        repr=False,
        default=attrs.Factory(lambda self: notify.Reminder(self.runtime), takes_self=True),
    )
    """Logs what long waits are for."""

    async def run(self, call: Call) -> Any:
        """Run a call; returns its record. Raises the errors of `errors`, each with the call's effect."""
        runtime, settings, emitter = self.runtime, self.settings, self.settings.emitter
        self._begin(call)
        is_observed = notify.is_observed(emitter)  # read once: all events of a call, or none
        if is_outermost := is_observed and not call.number:
            notify.started(emitter, call, settings.base_url)
        key, operation = call.key, call.operation
        try:
            while True:
                if key is None or call.tries:
                    key = call.key = self._key(call, key)
                state = self.keys.of(key)
                if (guard := state.guards.guard) is not None:
                    await admit(guard, call, settings, runtime)
                started = runtime.monotonic()
                limiters = state.limiter.limiters(operation.limit, call.record, started)
                is_usual = len(limiters) == 1 and (call.ends is None or started < call.ends)
                grant = limiters[0].try_acquire(started) if is_usual else NONE
                grants: Grants = ((limiters[0], grant),) if grant else await self._acquire(limiters, call)
                started = started if grant else runtime.monotonic()
                if call.retries or (call.admission is not None and started >= call.admission.until):
                    started = await self._check_late_attempt(call, grants, started)
                request: HTTPRequest | None = None
                try:
                    request = make_request(call, settings, key, started)
                    if is_observed:
                        notify.sent(emitter, call)
                    result = read_answer(call, await self.transport.send(request), runtime.now)
                except TransportError as failure:
                    result = read_failure(call, failure, sent=is_sent(request), url=settings.base_url)
                except BaseException as stopped:
                    self._abort_attempt(call, stopped, grants, started, request)
                    raise
                self._record_attempt(call, result, state, grants, started, request)
                if is_observed:
                    notify.ended(emitter, call, result)
                if result.error is None:
                    state.budget.earn()
                    break
                refuse_connection(request, result.error)
                call.date(result)
                if delay := before_retry(state.budget, call, result, result.error, settings, runtime):
                    await runtime.sleep(delay)
        except BaseException as error:
            self._finish(call, error, is_outermost=is_outermost)
            raise
        if is_outermost or call.admission is not None:
            replayed = is_replayed(result.headers)
            self._finish(call, None, is_outermost=is_outermost, replayed=replayed)
        return call.delivery(result)

    def _finish(
        self, call: Call, error: BaseException | None, *, is_outermost: bool, replayed: bool = False
    ) -> None:
        """Tell the guard and the hook how a call ended. A cancelled one in doubt takes its outcome along."""
        settle_admission(call, error, replayed=replayed)
        if error is not None and not isinstance(error, Exception):
            if call.unknown:
                error.outcome = call.outcome_unknown()  # type: ignore[attr-defined] # added to the exception
            notify.cancelled(self.settings.emitter, call)
        if is_outermost:
            notify.finished(self.settings.emitter, call, error, self.runtime.monotonic())

    def send(self, call: Call, options: Mapping[str, Any]) -> Coroutine[Any, Any, Any]:
        """Send a write just prepared. A key that the client made is unknown to other callers."""
        return self.run_once(call) if options.get("idempotency_key") else self.run(call)

    async def run_again(self, call: Call, age: float, first: float | None = None) -> Any:
        """Send a write that an earlier call may have sent. Raises OutcomeUnknown if its key may have ended.

        `age` of the key by our own clocks, in seconds. The service's time decides too, where nothing but the
        key protects the write; `first` is that time at the first answer.
        """
        prepared = call.prepared
        assert prepared is not None
        call.sent_before = True
        self.pending.take_unsent(prepared)
        if needs_time(prepared):
            self._begin(call)
            await refuse_outdated(self.run, call, age, first, call.left(self.runtime.monotonic))
        return await self.run_once(call)

    async def run_once(self, call: Call) -> Any:
        """Send a write whose idempotency key other callers may know.

        Raises IdempotencyConflict while another call sends a request with the key.
        """
        request, in_doubt = self.pending.enter(call, self.runtime.monotonic()), False
        try:
            return await self.run(call)
        except BaseException as stopped:
            in_doubt = isinstance(stopped, OutcomeUnknown) or getattr(stopped, "outcome", None) is not None
            raise
        finally:
            self.pending.leave(request, self.runtime.monotonic(), in_doubt=in_doubt)

    def __reduce__(self) -> NoReturn:
        """Refuse a pickle of a client, of its resources and their methods."""
        raise TypeError(
            "a Payments client holds a secret key and connections and has no pickle: "
            "make a client in each process"
        )

    def writing(
        self,
        operation: Operation[Any],
        request: Params | Mapping[str, Any] | None,
        options: Mapping[str, Any],
        path: str | None = None,
        record: str | None = None,
    ) -> Call:
        """Prepare a write and make its call, both with one secret key.

        Raises InvalidRequest, also for a key used with another body (gap R), and GuardRefused for a doubtful
        amount where a guard judges decimals.
        """
        key = self.settings.key()
        call = prepare(
            operation,
            request,
            options,
            base_url=self.settings.base_url,
            key=key,
            runtime=self.runtime,
            path=path,
            record=record,
        )
        if call.doubt is not None:
            if (guard := self.keys.of(key).guards.guard) is not None:
                guard.refuse_doubtful(operation.name, call.doubt)
            notify.doubted(self.settings.emitter, operation.name, call.doubt)
        if options.get("idempotency_key"):
            self._take_known(call)
        return call

    def _take_known(self, call: Call) -> None:
        """Send what was first sent with the caller's own key, dated from then: its protection began then."""
        now, prepared = self.runtime.monotonic(), call.prepared
        assert prepared is not None
        use = self.pending.first_use(identity_of(call), prepared.body, now)
        if use.body != prepared.body and (differs := difference(use.body, prepared.body)):
            problem = (
                f"was used with another body within 24 hours: {differs}; a changed request needs a new key"
            )
            raise InvalidRequest({"idempotency_key": [problem]}, operation=prepared.operation)
        if use.body is not prepared.body:  # an earlier call's
            call.is_known_key = True
            first = prepared.created_at - timedelta(seconds=now - use.at)
            call.prepared = attrs.evolve(prepared, body=use.body, created_at=first)

    def refuse_foreign(self, prepared: PreparedRequest) -> SecretKey:
        """Return the secret key; raise ConfigurationError for a request of another address or environment."""
        key = self.settings.key()
        if problem := foreign(prepared, self.settings.base_url, key):
            raise ConfigurationError(problem, operation=prepared.operation)
        return key

    def refuse_unprotected(self, prepared: PreparedRequest, *, rotated_key: bool) -> SecretKey:
        """Raise ConfigurationError for a request that could be carried out twice despite its idempotency key.

        That can happen under another secret key, which may be another project's, and without a reference
        after the key's lifetime. A payout's reference protects it for ever (Endpoints, POST /payouts).
        Returns the secret key to send it with.
        """
        if not isinstance(prepared, PreparedRequest):
            problem = f"send() takes a PreparedRequest, not {type(prepared).__name__}"
            raise ConfigurationError(f"{problem}; PreparedRequest.from_json(text) reads one")
        key = self.refuse_foreign(prepared)
        same_key = rotated_key or prepared.key_fingerprint == key.fingerprint
        if problem := unprotected(prepared, self.age(prepared), same_key=same_key):
            raise ConfigurationError(problem, operation=prepared.operation)
        return key

    def age(self, prepared: PreparedRequest) -> float:
        """Seconds since a request was prepared, or since its key was first used."""
        return (self.runtime.now() - prepared.created_at).total_seconds()

    def moment(self) -> Timestamps:
        """The present time on our own clocks."""
        return Timestamps(self.runtime.now().timestamp(), self.runtime.monotonic(), self.session)

    def limits_snapshot(self) -> dict[LimitClass, LimitSnapshot]:
        """The use of each rate limit by the key that was used last; none before a function gave a key."""
        key = last_key(self.settings.key)
        limiter = KeyLimiter(self.settings.limits) if key is None else self.keys.of(key).limiter
        return limiter.snapshot(self.runtime.monotonic())

    def _key(self, call: Call, last: SecretKey | None) -> SecretKey:
        """The secret key of the next attempt: a new one, or the last one again while its attempt is in doubt.

        Another key may not reach the first key's idempotency store, and a missing key must not hide the
        doubt.
        """
        if last is not None and call.unknown:
            return last
        key, prepared = self.settings.key(), call.prepared
        if prepared is not None and (problem := foreign(prepared, self.settings.base_url, key)):
            raise call.conclusion(ConfigurationError(problem))
        return key

    async def _acquire(self, limiters: Sequence[RateLimiter], call: Call) -> Grants:
        """Pass the limiters of the call, narrow ones first, before the deadline."""
        grants, monotonic = [], self.runtime.monotonic
        try:
            for limiter in limiters:
                grant = limiter.try_acquire(monotonic()) or await self._wait_for_slot(limiter, call)
                grants.append((limiter, grant))
            if call.is_late(monotonic):
                raise call.out_of_time()
        except BaseException:
            give_up(grants, monotonic(), sent=False)
            raise
        return grants

    async def _wait_for_slot(self, limiter: RateLimiter, call: Call) -> int:
        """Wait for a grant, and report how long, in vain too; a wait that is refused at once is none."""
        since, before, has_waited = self.runtime.monotonic(), call.store_waited, False
        try:
            with self.reminder.during(lambda: _waits_for(limiter, call)):
                while True:
                    now = self.runtime.monotonic()
                    self._note_outage(limiter, call)
                    if (outage := limiter.outage) is not None:
                        call.store_outage = outage.reason
                        call.store_waited = before + now - max(since, outage.since)
                    refuse_long_wait(limiter, call, self.settings, now, waited=now - since)
                    has_waited = True
                    until = call.until(wait_until(limiter, self.settings, since, now))
                    grant = await self._acquire_until(limiter, call, until)
                    if grant:
                        return grant
        finally:
            if has_waited:
                notify.throttled(self.settings.emitter, call, self.runtime.monotonic() - since)

    async def _acquire_until(self, limiter: RateLimiter, call: Call, until: float) -> int:
        """Wait for a grant until then; none when the limiter was closed meanwhile or lost its store."""
        try:
            return await limiter.acquire(self.runtime, priority=call.priority, until=until)
        except LimiterTimeout:
            if call.is_late(self.runtime.monotonic):
                raise call.out_of_time() from None
        return NONE

    def _note_outage(self, limiter: RateLimiter, call: Call) -> None:
        """Report an outage of the limit store, or its end, if the hook was not told of it yet."""
        known, outage, emitter = self.keys.known_outage, limiter.outage, self.settings.emitter
        if outage is known:
            return
        self.keys.known_outage = outage
        if outage is not None:
            notify.store_lost(emitter, call, outage, limiter.part)
        else:
            assert known is not None
            notify.store_found(emitter, call, self.runtime.monotonic() - known.since)

    def _record_attempt(
        self,
        call: Call,
        result: AttemptResult,
        state: KeyState,
        grants: Grants,
        started: float,
        request: HTTPRequest | None,
    ) -> None:
        """Note an attempt's verdict, and end its grants."""
        ended = self.runtime.monotonic()
        call.note(result, started, ended)
        if result.status is None:
            give_up(grants, ended, sent=is_sent(request))
        elif result.status == 429 and result.again:
            close_limiters(state.limiter, grants, call, result, self.settings, ended, self.runtime.random())
        else:
            for limiter, grant in grants:
                limiter.release(grant, ended)

    def _abort_attempt(
        self, call: Call, stopped: BaseException, grants: Grants, started: float, request: HTTPRequest | None
    ) -> None:
        """Note an attempt that was cancelled or failed unexpectedly: in doubt if it was sent."""
        ended, sent = self.runtime.monotonic(), is_sent(request)
        give_up(grants, ended, sent=sent)
        reason = "cancelled" if isinstance(stopped, CancelledError) else type(stopped).__name__
        result = AttemptResult("in_doubt" if sent else "not_sent", reason)
        call.note(result, started, ended)
        if call.number and request is not None:  # its RequestSent was reported
            notify.ended(self.settings.emitter, call, result)
        if isinstance(stopped, Exception) and call.unknown:
            raise call.outcome_unknown(stopped) from stopped

    async def _check_late_attempt(self, call: Call, grants: Grants, now: float) -> float:
        """Have a late attempt's key checked, and its amount reserved anew. Returns the time.

        Raises OutcomeUnknown where the key may protect the write no longer, GuardRefused without room.
        """
        prepared, admission = call.prepared, call.admission
        age = now - call.started if prepared is None else max(now - call.started, self.age(prepared))
        try:
            if call.retries and asks_again(call, age):
                left = call.left(self.runtime.monotonic)
                await refuse_outdated(self.run, call, age, call.first_answered, left)
            if admission is not None and now >= admission.until:
                await renew_admission(call, self.settings, self.runtime)
        except BaseException:
            give_up(grants, self.runtime.monotonic(), sent=False)
            raise
        return self.runtime.monotonic()

    def _begin(self, call: Call) -> None:
        call.begin(self.runtime.monotonic(), self.settings.deadline, self.moment)


def _waits_for(limiter: RateLimiter, call: Call) -> str:
    what = "the rate limit" if limiter.outage is None else f"the limit store: {limiter.outage.reason}"
    return f"{call.operation.name} waits for {what}"
