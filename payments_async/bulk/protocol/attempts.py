"""What one attempt proves, and what to do after it. Pure (Errors; Limits, Idempotency; gaps Q, R, S).

An attempt's verdict is not the row's: a refusal after an attempt in doubt says nothing of that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from typing import Final, Literal

import attrs

from ...models import Verdict
from .safeguards import ALL, ProtocolRules

Record = Literal["matching", "other", "unreadable"]
"""What a 2xx carried: the payout asked for, another one, or nothing with a `data.id`."""


@attrs.frozen
class AttemptReply:
    """One attempt, as its sender saw it end."""

    status: int | None = None
    """None when no answer came."""
    sent: bool = True
    """Whether a first byte may have left."""
    replayed: bool = False
    """Whether `X-Idempotent-Replayed` said that this is an earlier answer."""
    record: Record = "unreadable"
    payout_id: str = ""
    untrusted: bool = False
    """Whether the other end failed to prove its name (TLS)."""


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
_Ruling = tuple[Verdict, Step]
RULINGS: Final[Mapping[Kind, _Ruling]] = {
    Kind.SUCCESS: ("executed", Step.CONFIRM),
    Kind.OTHER_RECORD: ("in_doubt", Step.RESOLVE),
    Kind.UNREADABLE: ("in_doubt", Step.AGAIN),
    Kind.REFUSED: ("not_executed", Step.REJECT),
    Kind.EXISTS: ("in_doubt", Step.RESOLVE),  # something is there, or on its way; not whose
    Kind.STUCK: ("in_doubt", Step.RESOLVE),  # an earlier request's end, and it stays for 24 hours
    Kind.CREDENTIALS: ("not_executed", Step.HALT_CREDENTIALS),
    Kind.MISSING: ("not_executed", Step.HALT_ADDRESS),
    Kind.REDIRECTED: ("in_doubt", Step.HALT_ADDRESS),
    Kind.UNTRUSTED: ("not_sent", Step.HALT_ADDRESS),
    Kind.THROTTLED: ("not_executed", Step.PAUSE),
    Kind.FAILED: ("in_doubt", Step.AGAIN),
    Kind.SILENT: ("in_doubt", Step.AGAIN),
    Kind.UNSENT: ("not_sent", Step.AGAIN),
}
"""What each kind of end proves, and what follows while nothing else is in doubt and tries are left."""

_REJECTED: Final[_Ruling] = ("not_executed", Step.REJECT)
_CONFIRMED: Final[_Ruling] = ("executed", Step.CONFIRM)
_WITHOUT: Final[Mapping[str, Mapping[Kind, _Ruling]]] = {
    "silence_is_doubt": {Kind.SILENT: _REJECTED},
    "server_error_is_doubt": {Kind.FAILED: _REJECTED},
    "unreadable_success_is_doubt": {Kind.UNREADABLE: _CONFIRMED},
    "echo_is_compared": {Kind.OTHER_RECORD: _CONFIRMED},
    "replayed_error_is_stuck": {Kind.STUCK: ("in_doubt", Step.AGAIN)},
    "conflict_is_not_success": {Kind.EXISTS: _CONFIRMED},
    "conflict_is_not_failure": {Kind.EXISTS: _REJECTED},
    "credentials_halt": {Kind.CREDENTIALS: _REJECTED},
    "wrong_address_halts": {Kind.MISSING: _REJECTED, Kind.REDIRECTED: _REJECTED},
    "throttling_keeps_row": {Kind.THROTTLED: _REJECTED},
}
"""What the table would say without a safeguard; for the simulation."""


def kind_of(reply: AttemptReply) -> Kind:
    """Which kind of end this is."""
    if reply.untrusted:
        return Kind.UNTRUSTED
    status = reply.status
    if status is None:
        return Kind.SILENT if reply.sent else Kind.UNSENT
    if 200 <= status < 300:
        return _RECORD_KINDS[reply.record]
    if 300 <= status < 400:
        return Kind.REDIRECTED
    kind = _REPLIED_KINDS.get(status, Kind.REFUSED if 400 <= status < 500 else Kind.FAILED)
    return Kind.STUCK if reply.replayed and kind is not Kind.REFUSED else kind


def rulings(safeguards: ProtocolRules = ALL) -> Mapping[Kind, _Ruling]:
    """`RULINGS`, less what a safeguard that is off would have said."""
    return RULINGS if safeguards is ALL else _loosened(safeguards)


@cache
def _loosened(safeguards: ProtocolRules) -> Mapping[Kind, _Ruling]:
    table = dict(RULINGS)
    for name, loose in _WITHOUT.items():
        if not getattr(safeguards, name):
            table.update(loose)
    return table


def attempt_verdict(reply: AttemptReply, safeguards: ProtocolRules = ALL) -> Verdict:
    """What this one attempt proves about itself."""
    return rulings(safeguards)[kind_of(reply)][0]


_VERDICTS: Final[tuple[Verdict, ...]] = ("not_sent", "not_executed", "in_doubt", "executed")


def row_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """What all attempts of a row prove together: executed if any is, else in doubt if any is."""
    return max(verdicts, key=_VERDICTS.index, default="not_sent")


def after_attempt(
    reply: AttemptReply, *, doubt: bool, tries_left: int, safeguards: ProtocolRules = ALL
) -> Step:
    """What to do next. `doubt`: an earlier request for this reference may have made a payout."""
    kind = kind_of(reply)
    step = rulings(safeguards)[kind][1]
    if step is Step.REJECT and doubt and safeguards.refusal_needs_no_doubt:
        return Step.RESOLVE
    if step is Step.AGAIN and tries_left <= 0:
        return Step.HOLD if kind is Kind.UNSENT else _after_tries(reply)
    return step


def _after_tries(reply: AttemptReply) -> Step:
    """An answer that is replayed stays what it is for 24 hours; anything else may be another later."""
    return Step.RESOLVE if reply.replayed else Step.LATER
