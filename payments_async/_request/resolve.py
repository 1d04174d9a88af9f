"""Finds the outcome of a write in doubt: sends it again with the same key, or looks up its payout.

The same bytes are sent with the same key while the key protects: 23 of its 24 hours. Later a payout is looked
up by its reference. In two cases only, a refusal proves that nothing happened: the service replays it, so it
was the first answer; or 15 minutes after the last attempt, no page of the list has the reference.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import attrs

from .. import _assumptions
from ..errors import (
    APIStatusError,
    AuthenticationError,
    ConfigurationError,
    ConflictError,
    DecodeError,
    DuplicateReference,
    GuardRefused,
    OutcomeUnknown,
    PaymentsError,
    PermissionDeniedError,
    RateLimitedError,
    ResponseMismatch,
)
from ..models import Payout
from ..models._response import is_replayed
from ..params import PreparedRequest, operations
from . import prepare
from .auth import SecretKey
from .call import server_time
from .comparison import mismatch
from .key_age import Timestamps, at_least, key_age
from .pipeline import Pipeline

Unresolved = OutcomeUnknown | ResponseMismatch | DuplicateReference | PreparedRequest
"""Type of what can be resolved."""
Find = Callable[..., Awaitable[Payout | None]]  # type of `payouts.find`

_FINAL_WORDS = (DecodeError, ResponseMismatch, ConfigurationError)
_ABOUT_THE_QUESTION = (AuthenticationError, PermissionDeniedError, RateLimitedError)
"""Refusals that say nothing about the write in doubt."""


_TAKES = "an OutcomeUnknown or a PreparedRequest, a write's ResponseMismatch or DuplicateReference"


def _request_of(given: object) -> PreparedRequest:
    """The write in doubt. Raises ConfigurationError for what is none, or has lost it in a pickle."""
    prepared, name = getattr(given, "prepared", given), type(given).__name__
    if isinstance(given, PaymentsError):
        if given.effect != "unknown" and not isinstance(given, DuplicateReference):
            raise ConfigurationError(f"nothing to resolve: the error's effect is known ({given.effect})")
        if not hasattr(given, "prepared"):
            raise ConfigurationError(f"resolve() takes no {name}: it takes {_TAKES}")
    elif isinstance(given, BaseException):
        if getattr(given, "outcome", None) is not None:
            raise ConfigurationError(f"resolve() cannot read a {name}: pass error.outcome")
        raise ConfigurationError(f"nothing to resolve: {name} tells of no write in doubt")
    if isinstance(prepared, PreparedRequest):
        return prepared
    raise ConfigurationError(
        f"resolve() takes {_TAKES}; an error that was pickled has lost its request: "
        "keep error.prepared.to_json() and resolve PreparedRequest.from_json(text)"
    )


@attrs.frozen(eq=False, repr=False)
class OutcomeResolver:
    """Resolves writes in doubt with one client's pipeline."""

    _pipeline: Pipeline
    _find: Find

    async def resolve(self, given: Unresolved) -> Any:
        """Find the outcome: returns the record, raises the certain refusal, or OutcomeUnknown again."""
        prepared = _request_of(given)
        key = self._pipeline.refuse_foreign(prepared)
        if isinstance(given, DuplicateReference):
            return await self._compared(prepared, given)
        began = self._pipeline.moment()
        ended, in_use = (given._ended, given._in_use) if isinstance(given, OutcomeUnknown) else (None, 0.0)
        age = key_age(prepared.created_at.timestamp(), ended, in_use, began)
        try:
            return await self._find_out(prepared, given, age, key)
        except OutcomeUnknown as error:
            self._pass_on(given, age, began, error)
            raise
        except CancelledError as stopped:
            outcome = getattr(stopped, "outcome", None) or self._unknown(prepared, None)
            self._pass_on(given, age, began, outcome)  # the write was in doubt before, and still is
            stopped.outcome = outcome  # type: ignore[attr-defined] # added to the exception
            raise

    async def _compared(self, prepared: PreparedRequest, given: DuplicateReference) -> Payout:
        """Find the payout that has the reference, of whatever age; nothing is sent.

        Raises ResponseMismatch if it is another, the look-up's error, or what was given if no list shows it.
        """
        assert prepared.reference is not None
        found = await self._find(prepared.reference)
        if found is None:
            raise given
        other = mismatch(prepared, found)
        if other is None:
            return found
        raise ResponseMismatch(
            f"{prepared.operation}: another payout has the reference "
            f"({', '.join(sorted(other.differences))} differ), and this request was not carried out: "
            "choose another reference if it is still to be paid",
            record=found,
            differences=other.differences,
            operation=prepared.operation,
            idempotency_key=prepared.idempotency_key,
            effect="none",
        )

    def _pass_on(self, given: Unresolved, age: float, began: Timestamps, error: OutcomeUnknown) -> None:
        """Copy the known age of the key to a new error about the same write.

        When the new attempts are known to have made nothing, the time of the earlier doubt is kept.
        """
        error._first_answered = _first_answered(given)
        verdicts = {attempt.verdict for attempt in error.attempts}
        if not verdicts or "in_doubt" in verdicts:
            error._in_use = max(error._in_use, age + self._pipeline.runtime.monotonic() - began.monotonic)
        elif isinstance(given, OutcomeUnknown) and _can_be_dated(given._ended, began):
            error._ended, error._in_use = given._ended, given._in_use
        else:
            error._ended, error._in_use = began, age

    async def _find_out(
        self, prepared: PreparedRequest, given: Unresolved, age: float, key: SecretKey
    ) -> Any:
        made = prepared.created_at
        since: date | None = _day_before(made)
        if age >= _assumptions.KEY_TRUSTED_FOR or prepared.key_fingerprint != key.fingerprint:
            return await self._look_up(prepared, None, since)
        operation = operations.by_name(prepared.operation)
        call = prepare.writing(prepared, {}, operation=operation, key=key)
        try:
            return await self._pipeline.run_again(call, age, _first_answered(given))
        except _FINAL_WORDS:
            raise
        except GuardRefused as error:
            return await self._look_up(prepared, error, since)
        except PaymentsError as error:
            if isinstance(error, APIStatusError) and is_replayed(error.headers):
                raise  # the refusal of the first request: nothing was done
            cause = error
        refused = isinstance(cause, APIStatusError) and not isinstance(cause, _ABOUT_THE_QUESTION)
        if not refused and not isinstance(cause, OutcomeUnknown):
            raise self._unknown(prepared, cause)
        now = attrs.evolve(self._pipeline.moment(), server=server_time(cause))
        if not (refused and _is_dead(given, now, self._pipeline.pending.since_doubt(call, now.monotonic))):
            return await self._look_up(prepared, cause, since)
        # by the service's own clock, which the list uses
        start = _start(given, now)
        since = None if start is None else _day_before(min(made, datetime.fromtimestamp(start, UTC)))
        return await self._look_up(prepared, cause, since, certain=True)

    async def _look_up(
        self,
        prepared: PreparedRequest,
        cause: PaymentsError | None,
        since: date | None,
        *,
        certain: bool = False,
    ) -> Any:
        """Find a payout by its reference, among those made since a day.

        `certain`: no earlier attempt can still be in progress, so that a refusal is final if the list does
        not show the payout.
        """
        if prepared.reference is None:
            raise self._unknown(prepared, cause)
        try:
            found = await self._find(prepared.reference, created_on_or_after=since)
        except PaymentsError as error:
            cause = cause or error
        else:
            if found is not None:
                if other := mismatch(prepared, found):
                    other.idempotency_key, other.prepared = prepared.idempotency_key, prepared
                    raise other
                return found
            if cause is not None and certain and not isinstance(cause, ConflictError):
                raise cause
        raise self._unknown(prepared, cause)

    def _unknown(self, prepared: PreparedRequest, cause: PaymentsError | None) -> OutcomeUnknown:
        if isinstance(cause, OutcomeUnknown):
            return cause
        call = prepare.writing(prepared, {}, operation=operations.by_name(prepared.operation))
        call.begin(0.0, None, self._pipeline.moment)
        call.tries += map(attrs.astuple, cause.attempts if cause is not None else ())
        return call.outcome_unknown(cause)


def _first_answered(given: Unresolved) -> float | None:
    """The service's time at the answer to the first attempt, seconds since 1970."""
    return given._first_answered if isinstance(given, OutcomeUnknown) else None


def _day_before(moment: datetime) -> date:
    """The day from which the list is read: filters are by the day, and clocks may differ."""
    return (moment - timedelta(days=1)).date()


def _can_be_dated(ended: Timestamps | None, now: Timestamps) -> bool:
    """Return whether a clock that cannot be set covers both moments."""
    return ended is not None and (ended.session == now.session or ended.server is not None)


def _is_dead(given: Unresolved, now: Timestamps, since_doubt: float | None) -> bool:
    """Return whether no earlier attempt can still be running. `since_doubt`: seconds since the last one here.

    The last sending of a stored request is not known: only a replayed refusal is certain.
    """
    ended = given._ended if isinstance(given, OutcomeUnknown) else None
    if ended is None or (since_doubt is not None and since_doubt <= _assumptions.ABANDONED_AFTER):
        return False
    return at_least(ended, now) > _assumptions.ABANDONED_AFTER


def _start(given: Any, now: Timestamps) -> float | None:
    """Time of the key's first use by the service's clock, which the list uses; None when not known."""
    ended: Timestamps = given._ended
    if ended.server is not None:
        return ended.server - float(given._in_use)
    if now.server is None or ended.session != now.session:
        return None
    return now.server - (now.monotonic - ended.monotonic) - float(given._in_use)
