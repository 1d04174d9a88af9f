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
from ...models import Payout
from ...models._response import is_replayed
from ...models.statuses import PayoutEnd
from .answers import AttemptReply, Posted, Record
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


_reply: Final = maker(AttemptReply)
_posted: Final = maker(Posted)


def succeeded(payout: Payout) -> Posted:
    answer, payout = payout.response, storable(payout)
    replayed = answer is not None and answer.replayed
    status = 200 if answer is None else answer.status
    reply = _reply(status, "executed", replayed, "matching", payout.id)
    end = end_of(payout)
    code = failure_of(payout) if end is PayoutEnd.FAILED else None
    message = described(payout) if end is PayoutEnd.UNCLEAR else None
    return _posted(
        reply, status_of(payout), end, code, message, seconds_of(payout.created_at), ended_at(payout)
    )


def failed(error: PaymentsError, reference: str) -> Posted:
    """Make the result of an error; its verdict is of this attempt, or of a joined caller's."""
    is_doubt = error.attempts and error.attempts[-1].verdict == "in_doubt"
    if isinstance(error, OutcomeUnknown) and not is_doubt:  # an earlier try is, of another caller
        return Posted(AttemptReply(), code=type(error).__name__)
    if not error.attempts:  # our own pacing held it back, or the permission to send had ended
        return Posted(AttemptReply(verdict="not_sent", withheld=True), code=type(error).__name__)
    attempt = error.attempts[-1]
    cause = error.__cause__ if isinstance(error, OutcomeUnknown) else error
    record, payout_id = _record(cause, reference)
    failure = cause.kind if isinstance(cause, APIConnectionError) else None
    reply = AttemptReply(
        attempt.status,
        attempt.verdict,
        replayed=is_replayed(headers_of(error)),
        record=record,
        payout_id=payout_id,
        untrusted=failure == "tls" and error.effect == "none",
        withheld=failure == "withheld",
        retry_after=cause.retry_after if isinstance(cause, RateLimitedError) else None,
    )
    code = attempt.reason if attempt.status is None else f"HTTP {attempt.status}"
    return Posted(reply, code=code, message=_words(cause))


def headers_of(error: PaymentsError) -> Mapping[str, str]:
    """Read the headers of the answer behind an error, names in lower case; none without an answer."""
    cause = error.__cause__ if isinstance(error, OutcomeUnknown) else error
    return cause.headers if isinstance(cause, APIStatusError) else {}


def _record(cause: BaseException | None, reference: str) -> tuple[Record, str]:
    """Classify a 2xx that the client did not accept as the requested payout."""
    if isinstance(cause, ResponseMismatch):
        return "other", ""
    if isinstance(cause, DecodeError) and cause.record_id is not None:
        record_id = without_nul(cause.record_id)
        data = cause.body.json()["data"] if cause.body is not None else {}  # it had an id, so it is JSON
        return ("matching", record_id) if data.get("reference") == reference else ("other", "")
    return "unreadable", ""


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
