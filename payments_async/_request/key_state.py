"""State of a secret key in this process, shared by all its clients: rate limits, retry budget, guard.

The last functions ask the guard about a call, and tell it how the call ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from .._http.addresses import normal
from .._rate_limit.key_limiter import KeyLimiter
from .._rate_limit.limits import Outage
from .._rate_limit.registry import LimiterRegistry, StoreUse
from .._runtime import Runtime, check_process
from ..errors import APIStatusError, DuplicateReference, GuardRefused, PaymentsError
from ..guard import Guard
from ..models._response import is_replayed
from . import notify
from .auth import SecretKey
from .call import Call
from .settings import Settings

if TYPE_CHECKING:
    from .._guard.key_guard import KeyGuard
    from .._guard.sums import Outcome


class RetryBudget:
    """A key's budget of retries, so that a failing service is not flooded.

    500 tokens; a retry takes 5, one after a timeout 10; a success gives 1 back. A 429 costs nothing: the
    limiter it closes lets out one request at a time.
    """

    FULL = 500

    def __init__(self) -> None:
        self.tokens: int = self.FULL

    def spend(self, reason: str) -> bool:
        """Take the tokens of a retry after a failure of this kind; False when there are not enough."""
        price = 10 if reason == "timeout" else 5
        if self.tokens < price:
            return False
        self.tokens -= price
        return True

    def earn(self) -> None:
        """Give back a token after a successful call."""
        if self.tokens < self.FULL:
            self.tokens += 1


class KeyGuards:
    """What clients of a key share of its guard, also those made before there was one."""

    __slots__ = ("__weakref__", "guard")

    def __init__(self) -> None:
        self.guard: KeyGuard | None = None
        """Stands between each write and its first attempt."""


MOST_KEYS: Final = 256
"""Keys whose states a client has at hand: those that it came to last."""
_BUDGETS: WeakKeyDictionary[KeyLimiter, RetryBudget] = WeakKeyDictionary()
_GUARDS: WeakKeyDictionary[KeyLimiter, KeyGuards] = WeakKeyDictionary()
_GUARDED: Final[set[KeyLimiter]] = set()
"""Keys with a guard, which holds until the process ends."""


class KeyState:
    __slots__ = ("budget", "guards", "limiter")

    def __init__(self, limiter: KeyLimiter) -> None:
        self.limiter: KeyLimiter = limiter
        self.budget: RetryBudget = _BUDGETS.setdefault(limiter, RetryBudget())
        self.guards: KeyGuards = _GUARDS.setdefault(limiter, KeyGuards())


class Keys:
    """The states of the keys that one client has used."""

    def __init__(self, limiters: LimiterRegistry, settings: Settings, runtime: Runtime) -> None:
        self._limiters = limiters
        self._settings = settings
        self._runtime = runtime
        self._store: StoreUse | None = None
        if settings.limit_store is not None:
            self._store = StoreUse(
                address=settings.limit_store,
                workers=settings.expected_workers,
                runtime=runtime,
                insecure_database=settings.insecure_database,
            )
        self._states: dict[str, KeyState] = {}
        self.known_outage: Outage | None = None
        """The outage of the limit store that this client's hook was told of."""

    def of(self, key: SecretKey) -> KeyState:
        check_process()
        return self._states.get(key.fingerprint) or self._join(key.fingerprint)

    def of_another(self, settings: Settings) -> Keys:
        """The states of the keys of another client on the same clock."""
        return Keys(self._limiters, settings, self._runtime)

    def close(self) -> None:
        """End the thread that asks for permits, as soon as nobody waits for them; a later call starts one."""
        for state in self._states.values():
            if state.limiter.store is not None:
                state.limiter.store.end()

    def _join(self, fingerprint: str) -> KeyState:
        settings = self._settings
        limiter = self._limiters.join(settings.base_url, fingerprint, settings.limits, self._store)
        state = KeyState(limiter)
        for guard in settings.guards:
            self._guard(state, guard, fingerprint)
        for oldest in tuple(self._states)[: 1 - MOST_KEYS]:  # of keys that were rotated away
            self._states.pop(oldest, None)
        self._states[fingerprint] = state
        return state

    def _guard(self, state: KeyState, guard: Guard, fingerprint: str) -> None:
        """Put a key under a guard, until the process ends. Raises ConfigurationError."""
        from .._guard.key_guard import GuardOwner, join  # most programs have none

        settings = self._settings
        owner = GuardOwner(
            address=normal(settings.base_url),
            fingerprint=fingerprint,
            database=settings.limit_store,
            insecure_database=settings.insecure_database,
        )
        join(state.guards, owner, self._runtime, guard)
        _GUARDED.add(state.limiter)


# The guard, for one call


async def admit(guard: KeyGuard, call: Call, settings: Settings, runtime: Runtime) -> None:
    """Have a write judged before its first attempt. Raises GuardRefused, LimitStoreUnavailable."""
    if call.body is None or call.idempotency_key is None or call.tries:
        return
    from .._guard.rules import Write  # loaded with the guard

    write = Write(call.operation, call.path, call.headers, call.body, is_ours=call.request is not None)
    with _reported(call, settings):
        left = call.left(runtime.monotonic)
        may_ask = call.priority != "bulk"
        call.admission = await guard.admit(write, call.idempotency_key, left, may_ask=may_ask)


async def renew_admission(call: Call, settings: Settings, runtime: Runtime) -> None:
    """Renew what the guard has reserved, so that another attempt may begin.

    Raises the call's error when there is no room any more, or when the sums cannot be read.
    """
    assert call.admission is not None
    with _reported(call, settings):
        await call.admission.renew(call.left(runtime.monotonic))


@contextmanager
def _reported(call: Call, settings: Settings) -> Iterator[None]:
    """Report a refusal, and raise the call's error."""
    try:
        yield
    except TimeoutError:
        raise call.out_of_time() from None
    except PaymentsError as error:
        if isinstance(error, GuardRefused):
            notify.refused(settings.emitter, call, error)
        is_doubt = isinstance(error, GuardRefused) and error.effect == "unknown"
        ended = call.outcome_unknown(error, str(error)) if is_doubt else call.conclusion(error)
        if ended is error:
            raise
        raise ended from error


def settle_admission(call: Call, error: BaseException | None, *, replayed: bool) -> None:
    """Tell the guard what became of the money. `replayed`: a success was the service's earlier answer.

    To a first attempt that says that an earlier sender has paid, whom the sums have or hold already.
    """
    if call.admission is not None and not isinstance(error, GeneratorExit):  # the collector may not wait
        is_anothers = replayed and len(call.tries) == 1 and not call.admission.doubted
        call.admission.settle("unpaid" if is_anothers else outcome_of(call, error))


def outcome_of(call: Call, error: BaseException | None) -> Outcome | None:
    """What a call's end proves about its money; None when it proves nothing."""
    effect = error.effect if isinstance(error, PaymentsError) else call.effect
    if error is None or effect == "happened":
        return "paid"
    if effect == "unknown":
        return None
    if isinstance(error, APIStatusError) and is_replayed(error.headers):
        return "never"
    sent = [attempt for attempt in call.attempts if attempt.verdict != "not_sent"]
    return None if isinstance(error, DuplicateReference) and len(sent) > 1 else "unpaid"
