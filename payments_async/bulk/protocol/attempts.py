"""Whether a row may be sent, and what follows an attempt. Pure (Errors; Limits, Idempotency; gaps Q, R, S).

The client says what the attempt proves (`Attempt.verdict`). That is not the row's verdict: a refusal after an
attempt in doubt says nothing of that one.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal

import attrs

from ...models import Verdict
from .clocks import INTENT_LIFETIME, ElapsedRange

Record = Literal["matching", "other", "unreadable"]
"""What a 2xx carried: the payout asked for, another one, or nothing with a `data.id`."""


class SendBlock(StrEnum):
    """Why a request must not leave now."""

    NOT_DURABLE = "its intent is not on disk"
    BUSY = "another request for the row is under way"
    OTHER_BYTES = "the body is not the one that was recorded"
    STALE = "its intent is too old: record a new one"


def send_block(
    *, durable: bool, under_way: int, same_bytes: bool, age_of_intent: ElapsedRange
) -> SendBlock | None:
    """Why a request for a row must not leave now, or None. Asked before every single one."""
    if not durable:
        return SendBlock.NOT_DURABLE
    if under_way:
        return SendBlock.BUSY
    if not same_bytes:
        return SendBlock.OTHER_BYTES
    return SendBlock.STALE if age_of_intent.at_most >= INTENT_LIFETIME else None


@attrs.frozen
class AttemptReply:
    """One attempt, as its sender saw it end."""

    status: int | None = None
    """None when no answer came."""
    verdict: Verdict = "in_doubt"
    """What the client says that this attempt proves."""
    replayed: bool = False
    """True if `X-Idempotent-Replayed` said that this is an earlier answer."""
    record: Record = "unreadable"
    payout_id: str = ""
    untrusted: bool = False
    """True if the other end failed to prove its name (TLS)."""


class Kind(StrEnum):
    """The kinds of end an attempt can have."""

    SUCCESS = "success"
    OTHER_RECORD = "other record"
    UNREADABLE = "unreadable success"
    REFUSED = "refused"
    EXISTS = "exists"
    STUCK = "replayed error"
    CREDENTIALS = "credentials"
    MISSING = "missing address"
    REDIRECTED = "redirected"
    UNTRUSTED = "untrusted"
    THROTTLED = "throttled"
    FAILED = "failed"
    SILENT = "silent"
    UNSENT = "unsent"


class Step(StrEnum):
    """What to do with the row next."""

    CONFIRM = "confirm"
    REJECT = "reject"
    AGAIN = "again"
    """The same bytes and key, after a back-off."""
    PAUSE = "pause"
    """The same, once the key's pause is over; the row is unchanged and no try is used up."""
    HOLD = "hold"
    """Leave the row in flight and take no new rows: nothing gets out at all."""
    LATER = "later"
    """The same bytes and key, after a back-off in which other rows are sent."""
    RESOLVE = "resolve"
    """Read the list."""
    HALT_CREDENTIALS = "halt: credentials"
    HALT_ADDRESS = "halt: address"


_REPLIED_KINDS: Final[Mapping[int, Kind]] = {
    401: Kind.CREDENTIALS,
    403: Kind.CREDENTIALS,
    404: Kind.MISSING,
    405: Kind.MISSING,
    407: Kind.MISSING,  # a proxy in between
    408: Kind.FAILED,
    409: Kind.EXISTS,
    421: Kind.MISSING,
    429: Kind.THROTTLED,
}
_RECORD_KINDS: Final[Mapping[Record, Kind]] = {
    "matching": Kind.SUCCESS,
    "other": Kind.OTHER_RECORD,
    "unreadable": Kind.UNREADABLE,
}
STEPS: Final[Mapping[Kind, Step]] = {
    Kind.SUCCESS: Step.CONFIRM,
    Kind.OTHER_RECORD: Step.RESOLVE,
    Kind.UNREADABLE: Step.AGAIN,
    Kind.REFUSED: Step.REJECT,
    Kind.EXISTS: Step.RESOLVE,  # a payout has the reference, or a request is at work: not known whose
    Kind.STUCK: Step.RESOLVE,  # an earlier request's end, and it stays for 24 hours
    Kind.CREDENTIALS: Step.HALT_CREDENTIALS,
    Kind.MISSING: Step.HALT_ADDRESS,
    Kind.REDIRECTED: Step.HALT_ADDRESS,
    Kind.UNTRUSTED: Step.HALT_ADDRESS,
    Kind.THROTTLED: Step.PAUSE,
    Kind.FAILED: Step.AGAIN,
    Kind.SILENT: Step.AGAIN,
    Kind.UNSENT: Step.AGAIN,
}
"""What follows each kind of end while nothing else is in doubt and tries are left."""


def kind_of(reply: AttemptReply) -> Kind:
    """Which kind of end this is."""
    if reply.untrusted:
        return Kind.UNTRUSTED
    status = reply.status
    if status is None:
        return Kind.UNSENT if reply.verdict == "not_sent" else Kind.SILENT
    if 200 <= status < 300:
        return _RECORD_KINDS[reply.record]
    if 300 <= status < 400:
        return Kind.REDIRECTED
    kind = _REPLIED_KINDS.get(status, Kind.REFUSED if 400 <= status < 500 else Kind.FAILED)
    return Kind.STUCK if reply.replayed and kind is not Kind.REFUSED else kind


def may_have_paid(verdict: Verdict) -> bool:
    """True if the attempt may have made a payout, so that a later refusal does not reject the row."""
    return verdict in ("in_doubt", "executed")


def after_attempt(reply: AttemptReply, *, doubt: bool, tries_left: int) -> Step:
    """What to do next. `doubt`: a request for this reference may have made a payout."""
    kind = kind_of(reply)
    step = STEPS[kind]
    if step is Step.REJECT and doubt:
        return Step.RESOLVE
    if step is Step.AGAIN and tries_left <= 0:
        return Step.HOLD if kind is Kind.UNSENT else _after_tries(reply)
    return step


def _after_tries(reply: AttemptReply) -> Step:
    """An answer that is replayed stays what it is for 24 hours; anything else may be another later."""
    return Step.RESOLVE if reply.replayed else Step.LATER
