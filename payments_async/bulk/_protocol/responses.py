"""Converts the client's answer or error for one post of a row to the protocol's terms. Pure (Errors).

Also the errors that stop a whole run, such as a refused key, each with what corrects it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..._attrs import maker
from ...errors import (
    APIConnectionError,
    APIStatusError,
    AuthenticationError,
    ConfigurationError,
    DecodeError,
    NotFoundError,
    OutcomeUnknown,
    PaymentsError,
    PermissionDeniedError,
    RateLimitedError,
    ResponseMismatch,
)
from ...models import Attempt, Payout
from ...models._response import is_replayed
from ...models.statuses import PayoutEnd
from .answers import Kind, Posted
from .exit_codes import Exit, Stop
from .payout_status import (
    described,
    end_of,
    ended_at,
    failure_of,
    seconds_of,
    status_of,
    storable,
    without_nul,
)

_LONGEST: Final = 500
_posted: Final = maker(Posted)
_REPLIED: Final[Mapping[int, Kind]] = {
    401: Kind.CREDENTIALS,
    403: Kind.CREDENTIALS,
    404: Kind.NOT_THE_SERVICE,
    405: Kind.NOT_THE_SERVICE,
    407: Kind.NOT_THE_SERVICE,  # a proxy in between
    408: Kind.FAILED,
    409: Kind.EXISTS,
    421: Kind.NOT_THE_SERVICE,
    429: Kind.THROTTLED,
}


def succeeded(payout: Payout) -> Posted:
    payout = storable(payout)
    end = end_of(payout)
    code = failure_of(payout) if end is PayoutEnd.FAILED else None
    message = described(payout) if end is PayoutEnd.UNCLEAR else None
    return _posted(
        Kind.SUCCESS,
        "executed",
        payout.id,
        status_of(payout),
        end,
        code,
        message,
        created_at=seconds_of(payout.created_at),
        service_at=ended_at(payout),
    )


def failed(error: PaymentsError, reference: str) -> Posted:
    """Make the result of an error; its verdict is of this attempt, or of a joined caller's."""
    is_doubt = error.attempts and error.attempts[-1].verdict == "in_doubt"
    if isinstance(error, OutcomeUnknown) and not is_doubt:  # an earlier try is, of another caller
        return Posted(Kind.SILENT, code=type(error).__name__)
    if not error.attempts:  # our own pacing held it back, or the permission to send had ended
        return Posted(Kind.WITHHELD, "not_sent", code=type(error).__name__)
    attempt = error.attempts[-1]
    cause = error.__cause__ if isinstance(error, OutcomeUnknown) else error
    kind, payout_id = _kind_of(attempt, cause, reference), ""
    if kind is Kind.SUCCESS and isinstance(cause, DecodeError):
        payout_id = without_nul(cause.record_id or "")
    if isinstance(cause, APIConnectionError) and cause.kind == "tls" and error.effect == "none":
        kind = Kind.NOT_THE_SERVICE  # the server did not prove its name
    return Posted(
        kind,
        attempt.verdict,
        payout_id,
        code=attempt.reason if attempt.status is None else f"HTTP {attempt.status}",
        message=_words(cause),
        retry_after=cause.retry_after if isinstance(cause, RateLimitedError) else None,
    )


def _kind_of(attempt: Attempt, cause: BaseException | None, reference: str) -> Kind:
    status = attempt.status
    if isinstance(cause, APIConnectionError) and cause.kind == "withheld":
        return Kind.WITHHELD
    if status is None:
        return Kind.UNSENT if attempt.verdict == "not_sent" else Kind.SILENT
    if 200 <= status < 300:
        return _unaccepted(cause, reference)
    if 300 <= status < 400:
        return Kind.NOT_THE_SERVICE
    kind = _REPLIED.get(status, Kind.REFUSED if 400 <= status < 500 else Kind.FAILED)
    if kind is Kind.REFUSED:  # in doubt it is about the key alone (gap R)
        return Kind.STUCK if attempt.verdict == "in_doubt" else kind
    return Kind.STUCK if isinstance(cause, APIStatusError) and is_replayed(cause.headers) else kind


def _unaccepted(cause: BaseException | None, reference: str) -> Kind:
    """Classify a 2xx that the client did not accept as the requested payout."""
    if isinstance(cause, ResponseMismatch):
        return Kind.OTHER_RECORD
    if not isinstance(cause, DecodeError) or cause.record_id is None:
        return Kind.UNREADABLE
    data = cause.body.json()["data"] if cause.body is not None else {}  # it had an id, so it is JSON
    return Kind.SUCCESS if data.get("reference") == reference else Kind.OTHER_RECORD


def _words(cause: BaseException | None) -> str | None:
    if isinstance(cause, APIConnectionError) and cause.kind == "tls":
        return cause.detail or None
    if not isinstance(cause, APIStatusError):
        return None
    fields = [f"{name}: {' '.join(texts)}" for name, texts in cause.errors.items()]
    message = cause.message.rstrip(".") if cause.message and fields else cause.message
    return "; ".join(part for part in (message, *fields) if part)[:_LONGEST] or None


FATAL: Final = (AuthenticationError, PermissionDeniedError, NotFoundError, ConfigurationError)
"""Errors of a reading after which no other request of this client can succeed."""

_KEY: Final = {
    "HTTP 401": "the service refused the API key (HTTP 401): use a valid key of the same project",
    "HTTP 403": (
        "the service does not take the API key from this machine's address (HTTP 403): put that address on "
        "the key's allowlist"
    ),
}


def stop_of(error: PaymentsError) -> Stop:
    """What has to change after an error of a reading before the service can be used."""
    status = error.status if isinstance(error, APIStatusError) else None
    if isinstance(error, NotFoundError) or (status is not None and 300 <= status < 400):
        return Stop.NOT_THE_SERVICE
    if isinstance(error, APIConnectionError):
        return Stop.NOT_THE_SERVICE if error.kind == "tls" else Stop.TEMPORARY
    return Stop.NO_ACCESS if isinstance(error, FATAL) else Stop.TEMPORARY


def unread_code(error: PaymentsError) -> Exit:
    """The exit code where the list cannot be read: 75 if that may pass by itself, 2 if access is refused."""
    if refuses_access(error):
        return Exit.USAGE
    return Exit.RESUMABLE if error.is_temporary else Exit.REFUSED


def refuses_access(error: PaymentsError) -> bool:
    """True if the key was refused, or this is not the service: a name that TLS does not prove, a redirect."""
    return stop_of(error) is not Stop.TEMPORARY


def why(error: PaymentsError) -> str:
    """Explain why the service refuses a run, and what to do about it; other errors in their own words."""
    if not refuses_access(error):
        return str(error)
    if isinstance(error, APIStatusError):
        return why_of(f"HTTP {error.status}")
    return why_of(error.kind, error.detail) if isinstance(error, APIConnectionError) else str(error)


def why_of(code: str | None, detail: str | None = None) -> str:
    """Explain the same by an attempt's code: `HTTP 401`, or why there was no answer (`detail` of `tls`)."""
    facts = f"tls: {detail}" if code == "tls" and detail else code
    return _KEY.get(code or "") or f"something else than the service answered ({facts}): check the base URL"
