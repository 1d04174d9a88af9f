"""What the answer to one send of a row proves, and what comes next for the row. Pure.

Rules: Errors; Limits; gaps Q, R, S. The client reports what one attempt proves (`Attempt.verdict`). It proves
less of the row: while an earlier send is in doubt, a refusal of this one rejects nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal

import attrs

from ..._assumptions import ABANDONED_AFTER
from ..._attrs import maker
from ...models import Verdict
from ...models.statuses import PayoutEnd
from .exit_codes import Stop
from .records import LedgerRow
from .row_state import RowState, Turn

Record = Literal["matching", "other", "unreadable"]
"""The content of a 2xx: the requested payout, another one, or none with a `data.id`."""
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
_RECORDS: Final[Mapping[Record, Kind]] = {
    "matching": Kind.SUCCESS,
    "other": Kind.OTHER_RECORD,
    "unreadable": Kind.UNREADABLE,
}
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
class AttemptReply:
    """One attempt and its result, as the sender saw it."""

    status: int | None = None  # the HTTP status; None when no answer came
    verdict: Verdict = "in_doubt"  # what this attempt proves, by the client's report
    replayed: bool = False
    """True if `X-Idempotent-Replayed` said that this is an earlier answer."""
    record: Record = "unreadable"
    payout_id: str = ""
    untrusted: bool = False  # True if the server failed to prove its name (TLS)
    withheld: bool = False
    """True if the permission to send had ended: nothing was sent."""
    retry_after: float | None = None  # seconds for which a 429 asks


def kind_of(reply: AttemptReply) -> Kind:
    if reply.untrusted:
        return Kind.NOT_THE_SERVICE
    if reply.withheld:
        return Kind.WITHHELD
    status = reply.status
    if status is None:
        return Kind.UNSENT if reply.verdict == "not_sent" else Kind.SILENT
    if 200 <= status < 300:
        return _RECORDS[reply.record]
    if 300 <= status < 400:
        return Kind.NOT_THE_SERVICE
    kind = _REPLIED.get(status, Kind.REFUSED if 400 <= status < 500 else Kind.FAILED)
    if kind is Kind.REFUSED and reply.verdict == "in_doubt":  # about the key alone (gap R)
        return Kind.STUCK
    return Kind.STUCK if reply.replayed and kind is not Kind.REFUSED else kind


@attrs.frozen
class Posted:
    reply: AttemptReply
    status: str | None = None  # the payout's status, when one was made
    end: PayoutEnd = PayoutEnd.OPEN
    code: str | None = None
    """Why the payout has finally failed, or what went wrong, in a word: `HTTP 422`, `timeout`."""
    message: str | None = attrs.field(default=None, repr=False)
    """The service's own words, account data masked; or how the payout contradicts itself."""
    created_at: float | None = None
    """The service's time of the payout's creation, seconds since 1970."""
    service_at: float | None = None  # the service's time of its end


@attrs.frozen
class Word:
    """What is recorded of one send of a row. It names the row, its generation and the send."""

    row: LedgerRow  # as it was taken
    kind: Kind
    state: RowState
    turn: Turn = Turn.NOTHING
    wait: float = 0.0  # seconds until the row may be taken again
    posted: Posted | None = attrs.field(default=None, repr=False)
    stop: Stop | None = None
    """What has to change before anything can be sent; None where that is nothing."""

    @property
    def is_fact(self) -> bool:
        """True of a creation, which is true whoever reports it and when."""
        return self.state is RowState.CREATED

    @property
    def never_left(self) -> bool:
        """True if not a byte of this send has left, by the transport's word or as it was not begun."""
        return self.posted is None or self.posted.reply.verdict == "not_sent"

    @property
    def is_doubt(self) -> bool:
        """True if this send may have made a payout that is not known."""
        return self.state is RowState.IN_DOUBT and self.kind is not Kind.REFUSED

    @property
    def is_failure(self) -> bool:
        """True if it says something of the service, and nothing of the row."""
        return self.kind in _FAILURES


_word: Final = maker(Word)


def word_of(row: LedgerRow, posted: Posted) -> Word:
    """Decide what to record of a send, and what comes next."""
    reply = posted.reply
    kind = kind_of(reply)
    if kind is Kind.SUCCESS:
        return _word(row, kind, RowState.CREATED, posted=posted)
    if kind is Kind.REFUSED:
        return _refused(row, posted)
    if kind in _LOOKED_FOR:
        return _word(row, kind, RowState.IN_DOUBT, Turn.LOOK, posted=posted)
    stop = _STOPS.get(kind)
    if reply.verdict in ("not_sent", "not_executed") or kind in (Kind.WITHHELD, Kind.THROTTLED):
        return unsent(row, kind, _hold(row, kind, reply), posted=posted, stop=stop)
    wait = doubt_wait(row.takes)
    if wait is None:
        return _word(row, kind, RowState.IN_DOUBT, Turn.LOOK, posted=posted, stop=stop)
    return _word(row, kind, RowState.IN_DOUBT, Turn.POST, wait, posted, stop)


def unsent(
    row: LedgerRow,
    kind: Kind = Kind.WITHHELD,
    wait: float = 0.0,
    *,
    posted: Posted | None = None,
    stop: Stop | None = None,
) -> Word:
    """Give a row back: this send made nothing. An earlier one of which nothing is proven stays in doubt."""
    state = RowState.IN_DOUBT if row.doubted else RowState.NEW
    return _word(row, kind, state, Turn.POST, wait, posted, stop)


def looked_for(row: LedgerRow) -> Word:
    """A row that is not sent, as the service may have forgotten its key: it is looked for in the list."""
    return _word(row, Kind.STUCK, RowState.IN_DOUBT, Turn.LOOK)


def never_allowed(row: LedgerRow, why: str) -> Word:
    """A row that the guard's rules never allow. In doubt it is looked for: it was sent before."""
    if row.doubted:
        return looked_for(row)
    posted = Posted(AttemptReply(verdict="not_sent"), code="guard", message=why)
    return _word(row, Kind.REFUSED, RowState.REJECTED, posted=posted)


def _refused(row: LedgerRow, posted: Posted) -> Word:
    if row.doubted:  # an earlier send may have made a payout: only the list can tell
        return _word(row, Kind.REFUSED, RowState.IN_DOUBT, Turn.LOOK, posted=posted)
    return _word(row, Kind.REFUSED, RowState.REJECTED, posted=posted)


def _hold(row: LedgerRow, kind: Kind, reply: AttemptReply) -> float:
    """Seconds for which a row waits that was not sent."""
    if kind is Kind.THROTTLED:
        return reply.retry_after or 1.0
    return min(0.5 * 2.0 ** min(row.takes, 8), _LONGEST_HOLD) if kind is Kind.UNSENT else 0.0


def doubt_wait(takes: int) -> float | None:
    """Seconds until a row in doubt is posted again, unchanged, after so many sends.

    None once that takes longer than it takes until the list proves more than a post.
    """
    if takes <= len(_SOON):
        return _SOON[max(takes, 1) - 1]
    seconds = _FIRST * 2.0 ** (takes - len(_SOON) - 1)
    return seconds if seconds < ABANDONED_AFTER else None
