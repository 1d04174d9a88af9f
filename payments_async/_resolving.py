"""Finding out what became of a write in doubt: ask again with the same key, else look it up."""

from __future__ import annotations

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
    SearchIncomplete,
)
from .models import Payout
from .params import PreparedRequest

Find = Callable[..., Awaitable[Payout | None]]
"""`payouts.find`."""

_FINAL_WORDS = (OutcomeUnknown, DecodeError, ResponseMismatch, ConfigurationError)
_ABOUT_THE_QUESTION = (AuthenticationError, PermissionDeniedError, RateLimitedError)
"""Refusals that say nothing about the request in doubt."""


@attrs.frozen(eq=False)
class Question:
    """A write in doubt."""

    prepared: PreparedRequest
    sent_at: datetime
    """When it may first have been carried out."""

    @classmethod
    def of(cls, given: OutcomeUnknown | PreparedRequest) -> Question:
        """From the error or from a stored request. Raises ConfigurationError when the request is gone."""
        if isinstance(given, PreparedRequest):
            return cls(given, given.created_at)
        if isinstance(given, OutcomeUnknown) and given.prepared is not None:
            return cls(given.prepared, given.first_sent_at or given.prepared.created_at)
        raise ConfigurationError(
            "resolve() takes an OutcomeUnknown or a PreparedRequest; an error that was pickled has lost its "
            "request: keep error.prepared.to_json() and resolve PreparedRequest.from_json(text)"
        )


class Resolver:
    """Answers questions with one client's pipeline."""

    def __init__(self, pipeline: Pipeline, find: Find) -> None:
        self._pipeline = pipeline
        self._find = find

    async def resolve(self, question: Question) -> Any:
        """The record; or the refusal, which then is certain; or OutcomeUnknown again."""
        age = (self._pipeline.runtime.now() - question.sent_at).total_seconds()
        if not 0 <= age < _gaps.KEY_TRUSTED_FOR:
            return await self._look_up(question, None)
        operation = _operations.named(question.prepared.operation)
        try:
            return await self._pipeline.run(_calls.writing(question.prepared, {}, operation=operation))
        except _FINAL_WORDS as error:
            if not isinstance(error, OutcomeUnknown) or question.prepared.reference is None:
                raise
            cause: PaymentsError = error
        except PaymentsError as error:
            if _is_the_first_answer(error):
                raise
            cause = error
        if isinstance(cause, APIStatusError) and not isinstance(cause, _ABOUT_THE_QUESTION):
            return await self._look_up(question, cause, dead=age > _gaps.ABANDONED_AFTER)
        raise self._unknown(question, cause)

    async def _look_up(
        self, question: Question, refusal: APIStatusError | None, *, dead: bool = False
    ) -> Any:
        """Find a payout by its reference. A refusal is certain once nothing of the request can be alive."""
        prepared = question.prepared
        if prepared.reference is None:
            raise self._unknown(question, refusal)
        since = question.sent_at - timedelta(days=1)
        try:
            found = await self._find(prepared.reference, created_on_or_after=since.date())
        except (SearchIncomplete, PaymentsError) as error:
            raise self._unknown(question, refusal or error) from None
        if found is not None:
            if other := mismatch(prepared, found):
                raise other
            return found
        if refusal is not None and dead and not isinstance(refusal, ConflictError):
            raise refusal
        raise self._unknown(question, refusal)

    def _unknown(self, question: Question, cause: PaymentsError | None) -> OutcomeUnknown:
        if isinstance(cause, OutcomeUnknown):
            return cause
        operation = _operations.named(question.prepared.operation)
        journey = Journey(_calls.writing(question.prepared, {}, operation=operation), 0.0, None)
        journey.first_in_doubt = question.sent_at
        error = journey.outcome_unknown(cause)
        error.attempts = cause.attempts if cause is not None else ()
        return error


def _is_the_first_answer(error: PaymentsError) -> bool:
    """A replayed refusal is what the service answered at first: nothing was done."""
    return isinstance(error, APIStatusError) and error.headers.get("x-idempotent-replayed", "") == "true"
