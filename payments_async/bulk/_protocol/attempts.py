"""Decides if a row may be sent, and the step after an attempt; attempts as readers see them. Pure.

Rules: Errors; Limits; gaps Q, R, S. The client reports what one attempt proves (`Attempt.verdict`). It proves
less of the row: when an attempt was in doubt and the next one is refused, the first may have paid.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, Literal, Self

import attrs

from ...models import Verdict
from .clocks import INTENT_LIFETIME

Record = Literal["matching", "other", "unreadable"]
"""The content of a 2xx: the requested payout, another one, or none with a `data.id`."""


class SendBlock(StrEnum):
    """The reason why a request must not be sent now."""

    NOT_DURABLE = "its intent is not on disk"
    BUSY = "another request for the row is under way"
    OTHER_BYTES = "the body is not the one that was recorded"
    STALE = "its intent is too old: record a new one"


def send_block(*, durable: bool, under_way: int, same_bytes: bool, age_of_intent: float) -> SendBlock | None:
    """Give the reason why a row's request must not be sent now, or None. Called before every request.

    `age_of_intent`: the most seconds since it, with those that the request may take.
    """
    if not durable:
        return SendBlock.NOT_DURABLE
    if under_way:
        return SendBlock.BUSY
    if not same_bytes:
        return SendBlock.OTHER_BYTES
    return SendBlock.STALE if age_of_intent >= INTENT_LIFETIME else None


@attrs.frozen
class AttemptReply:
    """One attempt and its result, as the sender saw it."""

    status: int | None = None
    """The HTTP status; None when no answer came."""
    verdict: Verdict = "in_doubt"
    """What this attempt proves, by the client's report."""
    replayed: bool = False
    """True if `X-Idempotent-Replayed` said that this is an earlier answer."""
    record: Record = "unreadable"
    payout_id: str = ""
    untrusted: bool = False
    """True if the server failed to prove its name (TLS)."""
    withheld: bool = False
    """True if the permission to send had ended: nothing was sent."""


class Kind(StrEnum):
    """The possible results of an attempt."""

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
    WITHHELD = "withheld"


class Step(StrEnum):
    """The next step for a row."""

    CONFIRM = "confirm"
    REJECT = "reject"
    AGAIN = "again"
    """Send the same bytes and key again, after a back-off."""
    PAUSE = "pause"
    """Send the same once the API key's pause is over; the row is unchanged and no try is used up."""
    HOLD = "hold"
    """Leave the row in flight and take no new rows: no request gets through at all."""
    LATER = "later"
    """Send the same bytes and key again, after a back-off in which other rows are sent."""
    RESOLVE = "resolve"
    """Read the list."""
    HALT_CREDENTIALS = "halt: credentials"
    HALT_ADDRESS = "halt: address"
    HALT_LEASE = "halt: lease"


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
    Kind.EXISTS: Step.RESOLVE,  # a payout or a running request has the reference; it is unknown whose
    Kind.STUCK: Step.RESOLVE,  # the final answer to an earlier request; it stays for 24 hours
    Kind.CREDENTIALS: Step.HALT_CREDENTIALS,
    Kind.MISSING: Step.HALT_ADDRESS,
    Kind.REDIRECTED: Step.HALT_ADDRESS,
    Kind.UNTRUSTED: Step.HALT_ADDRESS,
    Kind.THROTTLED: Step.PAUSE,
    Kind.FAILED: Step.AGAIN,
    Kind.SILENT: Step.AGAIN,
    Kind.UNSENT: Step.AGAIN,
    Kind.WITHHELD: Step.HALT_LEASE,
}
"""The step after each result, while nothing else is in doubt and tries are left."""


def kind_of(reply: AttemptReply) -> Kind:
    """Classify the result of an attempt."""
    if reply.untrusted:
        return Kind.UNTRUSTED
    if reply.withheld:
        return Kind.WITHHELD
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
    """Decide the next step. `doubt`: a request for this reference may have made a payout."""
    kind = kind_of(reply)
    step = STEPS[kind]
    if step is Step.REJECT and doubt:
        return Step.RESOLVE
    if step is Step.AGAIN and tries_left <= 0:
        return Step.HOLD if kind is Kind.UNSENT else _after_tries(reply)
    return step


def _after_tries(reply: AttemptReply) -> Step:
    """Decide the step when no tries are left. A replayed answer stays for 24 hours; others may change."""
    return Step.RESOLVE if reply.replayed else Step.LATER


# What a ledger keeps of them for readers: it decides nothing

KEPT_FIRST: Final = 3
KEPT_LAST: Final = 5
"""Attempts of a row that are kept: so many of the first, and so many of the last."""
_LATEST: Final = 253_402_300_800.0
"""The year 10,000, which no date reaches."""


def is_time(seconds: float) -> bool:
    """True if these seconds since 1970, or of a duration, can be shown: a damaged figure may be anything."""
    return 0 <= seconds < _LATEST


@attrs.frozen
class RowAttempt:
    """One request that was sent for a row."""

    at: float
    """Seconds since 1970 when it ended."""
    answer: str
    """The status, or what happened in a word: `201`, `503`, `timeout`."""
    seconds: float = 0.0
    """Seconds from sending to the answer, or to the failure."""
    replayed: bool = False
    """True if the service gave the answer to an earlier request again."""

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Self:
        """Parse the JSON values of one; other values are left out. Raises KeyError, TypeError, ValueError."""
        at, seconds = float(facts["at"]), float(facts["seconds"])
        if not (is_time(at) and is_time(seconds)):
            raise ValueError("no time")
        return cls(at, str(facts["answer"]), seconds, bool(facts["replayed"]))


@attrs.frozen
class RowAttempts:
    """The attempts of a row: the first and the last ones. None are kept of a row that was created at once."""

    made: int = 0
    """How many were recorded. The answer to the last one before a run was killed is not."""
    first: tuple[RowAttempt, ...] = ()
    last: tuple[RowAttempt, ...] = ()
    """The last ones that are not among the first."""

    @property
    def omitted(self) -> int:
        """How many between the first and the last are not kept."""
        return self.made - len(self.first) - len(self.last)

    def __add__(self, later: RowAttempts) -> RowAttempts:
        """Add later attempts."""
        room = KEPT_FIRST - len(self.first)
        first = (*self.first, *later.first[:room])
        last = (*self.last, *later.first[room:], *later.last)
        return RowAttempts(self.made + later.made, first, last[-KEPT_LAST:])

    def __iter__(self) -> Iterator[RowAttempt]:
        yield from self.first
        yield from self.last

    def __str__(self) -> str:
        """`503 503 201`; with `… (12 more) …` where some are not kept."""
        gap = [f"… ({self.omitted:,} more) …"] if self.omitted else []
        return " ".join([*(each.answer for each in self.first), *gap, *(each.answer for each in self.last)])

    def facts(self) -> dict[str, Any]:
        """The same as JSON values."""
        return attrs.asdict(self)

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Self:
        """Parse what `facts` wrote. Raises KeyError, TypeError, ValueError."""
        first, last = (tuple(map(RowAttempt.read, facts[part])) for part in ("first", "last"))
        made = int(facts["made"])
        if made < len(first) + len(last):
            raise ValueError("more attempts than were made")
        return cls(made, first, last)

    @property
    def text(self) -> str:
        """The same as JSON text, for a ledger to store."""
        return json.dumps(self.facts())

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Parse what a ledger has stored; no attempts where that cannot be read."""
        try:
            return cls.read(json.loads(text))
        except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError):
            return cls()


NO_ATTEMPTS: Final = RowAttempts()


def one_attempt(attempt: RowAttempt) -> RowAttempts:
    """Make the attempts of a row that had one."""
    return RowAttempts(1, (attempt,))
