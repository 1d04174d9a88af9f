"""The results of a step: what follows, with figures; or `StepFailed`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs

from ...errors import Effect
from .._protocol.outcomes import as_text
from ..errors import BulkError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

    from .._reconcile.certificate import Certificate
    from .._report import BatchFigures


@attrs.frozen
class Done:
    """The step has nothing left to do, now or later."""


@attrs.frozen
class Now:
    """Work is left that can be done now: call the step again."""


@attrs.frozen
class Wait:
    """Nothing can be done now: call the step again after a while."""

    seconds: float
    reason: str


class HoldReason(StrEnum):
    """The reason why a person has to act before a step can go on."""

    PAUSED = "paused"
    """An operator paused the batch, or what stands in its ledger or in its requests is damaged."""
    SUSPECT = "suspect"
    """The database may have lost commits: `payments payouts recover`."""
    TOTAL = "total"
    """The batch's total is not confirmed: `payments payouts confirm`, or `plan` with `confirm_total`."""
    STOP_RULE = "stop rule"
    """`max_amount`, `max_rows` or `max_failure_rate` lets no further row be taken."""
    GUARD = "guard"
    """The batch is run under another guard than this process has: `payments payouts resume --guard`."""


@attrs.frozen
class Held:
    """Nothing can be done until a person acts: `by` says what kind of hold it is, `reason` why."""

    by: HoldReason
    reason: str


@attrs.frozen
class Never:
    """This call can never succeed: no such batch or chunk, another account, another input."""

    reason: str


Next = Done | Now | Wait | Held | Never
"""What follows a step."""


@attrs.frozen
class StepEnd:
    """How a call of a step ended."""

    batch_id: str
    chunk: int | None
    """The chunk's number; None for a step of the whole batch."""
    next: Next
    figures: BatchFigures | None = attrs.field(default=None, repr=False)
    """Of the chunk or the batch, not of this call; None where there is none. It names no account."""
    is_clean: bool | None = None
    """Of a closed batch: whether the service's list agrees with the ledger in every row. None before that,
    and where it was not compared, because `SharedBatch.run` has closed it."""
    certificate: Certificate | None = attrs.field(default=None, repr=False)
    """What the list showed, if this very call has read it; `SharedBatch.reconcile` makes another."""
    chunks: int | None = None
    """How many chunks the batch has; None where its facts could not be read."""

    def facts(self) -> dict[str, Any]:
        """The end as JSON values: `next` by the name of its class, amounts as text."""
        return {
            "batch_id": self.batch_id,
            "chunk": self.chunk,
            **next_facts(self.next),
            **({} if self.figures is None else {"figures": self.figures.facts()}),
            "is_clean": self.is_clean,
        }


@attrs.frozen
class BatchPlan:
    """A batch that is imported: how many chunks it has, and whether they may be paid."""

    batch_id: str
    chunks: int
    """How many chunks there are, numbered from 1."""
    rows: int
    sums: Mapping[str, Decimal]
    """{currency: what all rows ask for, major units}."""
    next: Next
    """`Now` when its chunks may be paid."""

    def facts(self) -> dict[str, Any]:
        """The plan as JSON values: `next` by the name of its class, amounts as text."""
        return {
            "batch_id": self.batch_id,
            **next_facts(self.next),
            "chunks": self.chunks,
            "rows": self.rows,
            "sums": {currency: as_text(amount) for currency, amount in self.sums.items()},
        }


def next_facts(following: Next) -> dict[str, Any]:
    """What follows as JSON values."""
    return {"next": type(following).__name__.lower(), **attrs.asdict(following)}


class FailureCause(StrEnum):
    """What failed, so that the ledger could not answer a step."""

    DATABASE = "database"
    SERVICE = "service"
    ADDRESS = "address"
    """Something else than the service answered at its address."""
    KEY = "key"
    """The service refused the API key, or the database lacks rights."""
    FILE = "file"
    """The input is not on this host, or cannot be read."""
    INPUT = "input"
    """Rows of the input are at fault, or it is another input than the batch's."""


class StepFailed(BulkError):
    """A step could not find out, or do, what it was asked for. Its `next` says when to try again.

    The error that led to it is its `__cause__`. Nothing is lost: the next call finds out what became of rows
    under way.
    """

    effects: ClassVar[tuple[Effect, ...]] = ("none", "unknown")
    remedy = "call the step again as `.next` says, or correct what the message names"

    def __init__(
        self, cause: FailureCause, reason: str, following: Wait | Never, *, effect: Effect = "none"
    ) -> None:
        super().__init__(reason, effect=effect)
        self.cause: FailureCause = cause
        self.reason: str = reason
        self.next: Wait | Never = following


AGAIN_AFTER: Final = {
    FailureCause.DATABASE: 10.0,
    FailureCause.SERVICE: 10.0,
    FailureCause.ADDRESS: 60.0,
    FailureCause.FILE: 60.0,
}
"""Seconds after which a step that failed is tried again."""


def failed(cause: FailureCause, reason: str, *, effect: Effect = "none") -> StepFailed:
    """Make the error of a step. Without a change by a person, a key or an input stays refused for ever.

    `effect`: `unknown` if outcomes of rows that were sent could not be recorded.
    """
    seconds = AGAIN_AFTER.get(cause)
    following = Never(reason) if seconds is None else Wait(seconds, reason)
    return StepFailed(cause, reason, following, effect=effect)
