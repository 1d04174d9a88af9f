"""Finding out what became of a write in doubt: ask again with the same key, else look it up."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import attrs

from . import _calls, _gaps, _operations
from ._answers import mismatch
from ._journey import Journey
from ._pipeline import Pipeline
from .errors import (
    APIStatusError,
    AuthenticationError,
    ConfigurationError,
    ConflictError,
    DecodeError,
    OutcomeUnknown,
    PaymentsError,
    PermissionDeniedError,
    RateLimitedError,
    ResponseMismatch,
)
from .models import Payout
from .models._response import is_replayed
from .params import PreparedRequest

Find = Callable[..., Awaitable[Payout | None]]
"""`payouts.find`."""

_SKEW = 300.0
"""Seconds by which the clock of the host that prepared a request may be ahead of ours."""
_FINAL_WORDS = (DecodeError, ResponseMismatch, ConfigurationError)
_ABOUT_THE_QUESTION = (AuthenticationError, PermissionDeniedError, RateLimitedError)
"""Refusals that say nothing about the request in doubt."""


def _request_of(given: OutcomeUnknown | PreparedRequest) -> PreparedRequest:
    """The write in doubt. Raises ConfigurationError when it is gone."""
    prepared = given.prepared if isinstance(given, OutcomeUnknown) else given
    if isinstance(prepared, PreparedRequest):
        return prepared
    raise ConfigurationError(
        "resolve() takes an OutcomeUnknown or a PreparedRequest; an error that was pickled has lost its "
        "request: keep error.prepared.to_json() and resolve PreparedRequest.from_json(text)"
    )


@attrs.frozen(eq=False, repr=False)
class Resolver:
    """Finds things out with one client's pipeline."""

    _pipeline: Pipeline
    _find: Find

    async def resolve(self, given: OutcomeUnknown | PreparedRequest) -> Any:
        """The record; or the refusal, which then is certain; or OutcomeUnknown again."""
        prepared = _request_of(given)
        self._pipeline.refuse_foreign(prepared)
        try:
            return await self._find_out(prepared, given)
        except CancelledError as stopped:
            if getattr(stopped, "outcome", None) is None:  # it was in doubt before, and still is
                stopped.outcome = self._unknown(prepared, None)  # type: ignore[attr-defined] # it rides along
            raise

    async def _find_out(self, prepared: PreparedRequest, given: OutcomeUnknown | PreparedRequest) -> Any:
        protected = -_SKEW <= self._since(prepared.created_at) < _gaps.KEY_TRUSTED_FOR
        if not protected or not self._pipeline.made_it(prepared):
            return await self._look_up(prepared, None)
        operation = _operations.named(prepared.operation)
        try:
            return await self._pipeline.run(_calls.writing(prepared, {}, operation=operation))
        except _FINAL_WORDS:
            raise
        except PaymentsError as error:
            if _is_the_first_answer(error):
                raise
            cause = error
        refused = isinstance(cause, APIStatusError) and not isinstance(cause, _ABOUT_THE_QUESTION)
        if not refused and not isinstance(cause, OutcomeUnknown):
            raise self._unknown(prepared, cause)
        # Of a stored request nobody knows when it was sent last: only a replayed refusal is certain.
        last = given.last_sent_at if isinstance(given, OutcomeUnknown) else None
        dead = last is not None and self._since(last) > _gaps.ABANDONED_AFTER
        return await self._look_up(prepared, cause, certain=refused and dead)

    def _since(self, moment: datetime) -> float:
        return (self._pipeline.runtime.now() - moment).total_seconds()

    async def _look_up(
        self, prepared: PreparedRequest, cause: PaymentsError | None, *, certain: bool = False
    ) -> Any:
        """Find a payout by its reference.

        `certain`: nothing of the request can be alive any more, so that a refusal is the last word on it.
        """
        if prepared.reference is None:
            raise self._unknown(prepared, cause)
        since = prepared.created_at - timedelta(days=1)
        try:
            found = await self._find(prepared.reference, created_on_or_after=since.date())
        except PaymentsError as error:
            cause = cause or error
        else:
            if found is not None:
                return _matching(prepared, found)
            if cause is not None and certain and not isinstance(cause, ConflictError):
                raise cause
        raise self._unknown(prepared, cause)

    def _unknown(self, prepared: PreparedRequest, cause: PaymentsError | None) -> OutcomeUnknown:
        if isinstance(cause, OutcomeUnknown):
            return cause
        call = _calls.writing(prepared, {}, operation=_operations.named(prepared.operation))
        error = Journey(call, 0.0, None, self._pipeline.runtime.now).outcome_unknown(cause)
        error.attempts = cause.attempts if cause is not None else ()
        return error


def _matching(prepared: PreparedRequest, found: Payout) -> Payout:
    """A payout with the same reference, unless it is another one. Raises ResponseMismatch."""
    if other := mismatch(prepared, found):
        other.idempotency_key = prepared.idempotency_key
        raise other
    return found


def _is_the_first_answer(error: PaymentsError) -> bool:
    """A replayed refusal is what the service answered at first: nothing was done."""
    if not isinstance(error, APIStatusError):
        return False
    return is_replayed(error.headers)


def refuse_settled(given: object) -> None:
    """Raise ConfigurationError for an exception that tells of no write in doubt, or that carries one."""
    if isinstance(given, PaymentsError):
        problem = f"the error's effect is known ({given.effect})" if given.effect != "unknown" else None
    elif isinstance(given, BaseException):
        if getattr(given, "outcome", None) is not None:
            raise ConfigurationError(f"resolve() cannot read a {type(given).__name__}: pass error.outcome")
        problem = f"{type(given).__name__} tells of no write in doubt"
    else:
        problem = None
    if problem is not None:
        raise ConfigurationError(f"nothing to resolve: {problem}")
