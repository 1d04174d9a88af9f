"""What the answer to one send of a row proves, and what comes next for the row. Pure.

Rules: Errors; Limits; gaps Q, R, S. The client reports what one attempt proves (`Attempt.verdict`). It proves
less of the row: while an earlier send is in doubt, a refusal of this one rejects nothing.

Also the errors that stop a whole run, such as a refused key, each with what corrects it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import attrs

from ..._assumptions import ABANDONED_AFTER
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
from ...models import Attempt, Payout, Verdict
from ...models._response import is_replayed
from ...models.statuses import PayoutEnd
from .exit_codes import Exit, Stop
from .outcomes import Outcome, RowState, Turn, outcome_of
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
from .records import LedgerRow

_SOON: Final = (0.5, 1.0, 2.0)
"""Seconds before the first posts after one that was in doubt; then ten, doubled for each next one."""
_FIRST: Final = 10.0
_LONGEST_HOLD: Final = 60.0
"""Seconds for which a row that could not be sent waits at most."""


class Kind(StrEnum):
    SUCCESS = "success"
    OTHER_RECORD = "other record"
    UNREADABLE = "unreadable success"
    REFUSED = "refused"
    EXISTS = "exists"
    STUCK = "replayed error"
    CREDENTIALS = "credentials"
    NOT_THE_SERVICE = "not the service"
    THROTTLED = "throttled"
    FAILED = "failed"
    SILENT = "silent"
    UNSENT = "unsent"
    WITHHELD = "withheld"


_LOOKED_FOR: Final = frozenset(
    {
        Kind.OTHER_RECORD,
        Kind.EXISTS,  # a payout or a running request has the reference; it is unknown whose
        Kind.STUCK,  # the final answer to an earlier request; it stays for 24 hours
    }
)
_STOPS: Final[Mapping[Kind, Stop]] = {
    Kind.CREDENTIALS: Stop.NO_ACCESS,
    Kind.NOT_THE_SERVICE: Stop.NOT_THE_SERVICE,
}
_FAILURES: Final = frozenset({Kind.UNREADABLE, Kind.FAILED, Kind.SILENT, Kind.UNSENT})
"""Results that say something of the service, and nothing of the row."""


@attrs.frozen
class Posted:
    """One post of a row and its result, as the client saw it."""

    kind: Kind
    verdict: Verdict = "in_doubt"  # what its last attempt proves, by the client's report
    payout_id: str = ""
    status: str | None = None  # the payout's status, when one was made
    end: PayoutEnd = PayoutEnd.OPEN
    code: str | None = None
    """Why the payout has finally failed, or what went wrong, in a word: `HTTP 422`, `timeout`."""
    message: str | None = attrs.field(default=None, repr=False)
    """The service's own words, account data masked; or how the payout contradicts itself."""
    created_at: float | None = None
    """The service's time of the payout's creation, seconds since 1970."""
    service_at: float | None = None  # the service's time of its end
    retry_after: float | None = None  # seconds for which a 429 asks


# What the client reports of a post

_LONGEST_MESSAGE: Final = 500
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
    return "; ".join(part for part in (message, *fields) if part)[:_LONGEST_MESSAGE] or None


# What is recorded, and what comes next


@attrs.frozen
class Word:
    """What is recorded of one send of a row. It names the row, its generation and the send."""

    row: LedgerRow  # as it was taken
    kind: Kind
    state: RowState
    turn: Turn = Turn.NOTHING
    wait: float = 0.0  # seconds until the row may be taken again
    posted: Posted | None = attrs.field(default=None, repr=False)

    @property
    def stop(self) -> Stop | None:
        """What has to change before anything can be sent; None where that is nothing."""
        return _STOPS.get(self.kind)

    @property
    def is_fact(self) -> bool:
        """True of a creation, which is true whoever reports it and when."""
        return self.state is RowState.CREATED

    @property
    def never_left(self) -> bool:
        """True if not a byte of this send has left, by the transport's word or as it was not begun."""
        return self.posted is None or self.posted.verdict == "not_sent"

    @property
    def is_doubt(self) -> bool:
        """True if this send may have made a payout that is not known."""
        return self.state is RowState.IN_DOUBT and self.kind is not Kind.REFUSED

    @property
    def outcome(self) -> Outcome:
        """What became of the row by this."""
        end = self.posted.end if self.is_fact and self.posted is not None else self.row.payout_end
        return outcome_of(self.state, end, had_arrived=False)

    @property
    def is_failure(self) -> bool:
        """True if it says something of the service, and nothing of the row."""
        return self.kind in _FAILURES


_word: Final = maker(Word)


def word_of(row: LedgerRow, posted: Posted) -> Word:
    """Decide what to record of a send, and what comes next."""
    kind = posted.kind
    if kind is Kind.SUCCESS:
        return _word(row, kind, RowState.CREATED, posted=posted)
    if kind is Kind.REFUSED:
        return _refused(row, posted)
    if kind in _LOOKED_FOR:
        return _word(row, kind, RowState.IN_DOUBT, Turn.LOOK, posted=posted)
    if posted.verdict in ("not_sent", "not_executed") or kind in (Kind.WITHHELD, Kind.THROTTLED):
        return unsent(row, kind, _hold(row, posted), posted)
    wait = doubt_wait(row.takes)
    turn = Turn.LOOK if wait is None else Turn.POST
    return _word(row, kind, RowState.IN_DOUBT, turn, wait or 0.0, posted)


def unsent(
    row: LedgerRow, kind: Kind = Kind.WITHHELD, wait: float = 0.0, posted: Posted | None = None
) -> Word:
    """Give a row back: this send made nothing. An earlier one of which nothing is proven stays in doubt."""
    state = RowState.IN_DOUBT if row.doubted else RowState.NEW
    return _word(row, kind, state, Turn.POST, wait, posted)


def looked_for(row: LedgerRow) -> Word:
    """A row that is not sent, as the service may have forgotten its key: it is looked for in the list."""
    return _word(row, Kind.STUCK, RowState.IN_DOUBT, Turn.LOOK)


def never_allowed(row: LedgerRow, why: str) -> Word:
    """A row that the guard's rules never allow. In doubt it is looked for: it was sent before."""
    if row.doubted:
        return looked_for(row)
    refused = Posted(Kind.REFUSED, "not_sent", code="guard", message=why)
    return _word(row, Kind.REFUSED, RowState.REJECTED, posted=refused)


def _refused(row: LedgerRow, posted: Posted) -> Word:
    if row.doubted:  # an earlier send may have made a payout: only the list can tell
        return _word(row, Kind.REFUSED, RowState.IN_DOUBT, Turn.LOOK, posted=posted)
    return _word(row, Kind.REFUSED, RowState.REJECTED, posted=posted)


def _hold(row: LedgerRow, posted: Posted) -> float:
    """Seconds for which a row waits that was not sent."""
    if posted.kind is Kind.THROTTLED:
        return posted.retry_after or 1.0
    return min(0.5 * 2.0 ** min(row.takes, 8), _LONGEST_HOLD) if posted.kind is Kind.UNSENT else 0.0


def doubt_wait(takes: int) -> float | None:
    """Seconds until a row in doubt is posted again, unchanged, after so many sends.

    None once that takes longer than it takes until the list proves more than a post.
    """
    if takes <= len(_SOON):
        return _SOON[max(takes, 1) - 1]
    seconds = _FIRST * 2.0 ** (takes - len(_SOON) - 1)
    return seconds if seconds < ABANDONED_AFTER else None


# What stops a run

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
