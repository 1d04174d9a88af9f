"""What a workflow pays, as Temporal stores it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace  # Temporal's converter knows these, and not attrs
from datetime import datetime
from typing import Any, Final

from temporalio.common import SearchAttributeKey

from ....params import Money
from ..._options import require_seconds, stop_rules
from ..._protocol.machines import LEASE
from ...errors import BulkError
from .._arguments import dated, require_names, require_zone, total_text

Facts = dict[str, Any]
"""JSON values."""
SEARCHED: Final[tuple[SearchAttributeKey[Any], ...]] = (
    SearchAttributeKey.for_keyword("PayrollBatch"),
    SearchAttributeKey.for_int("PayrollRows"),
    SearchAttributeKey.for_int("PayrollRowsDone"),
    SearchAttributeKey.for_int("PayrollRowsInDoubt"),
    SearchAttributeKey.for_bool("PayrollHeld"),
)
"""Search attributes of a payroll's workflow, where the namespace has them."""


@dataclass(frozen=True)
class Payroll:
    """What a workflow pays. Temporal stores and shows it, so that it names no account.

    `{date}` in `file`, `batch_id` and `confirm_from` is the day, in `zone`, of the time for which a schedule
    has started the workflow. Without a confirmed total a live batch waits for the signal `confirm`.
    `heartbeat_timeout`: seconds without a sign of life after which Temporal gives a chunk to another worker.
    For the other arguments see `Steps.plan`.

    Raises BulkError: an argument is invalid, or looks like an account.
    """

    file: str
    batch_id: str
    confirm_total: Mapping[str, Money] | None = None
    confirm_from: str | None = None
    max_amount: Money | None = None
    max_rows: int | None = None
    max_failure_rate: float | None = None
    pay_again: bool = False
    lossy_standby: bool = False
    zone: str = "UTC"
    heartbeat_timeout: float = 2 * LEASE
    reached: Facts | None = None
    """What the workflow had reached when its history became too long; only the workflow sets it."""

    def __post_init__(self) -> None:
        require_names(self.batch_id, self.file, self.confirm_from or "")
        stop_rules(self.max_amount, self.max_rows, self.max_failure_rate)
        require_seconds("heartbeat_timeout", self.heartbeat_timeout)
        if self.heartbeat_timeout < LEASE:
            raise BulkError(f"heartbeat_timeout must be at least {LEASE:g} seconds, as long as a lease")
        object.__setattr__(self, "confirm_total", total_text(self.confirm_total))
        if self.max_amount is not None:
            object.__setattr__(self, "max_amount", str(self.max_amount))
        require_zone(self.zone)

    def of(self, time: datetime | None) -> Payroll:
        """Put the day of a schedule's time in the place of `{date}`. Raises BulkError without a time."""
        file, batch_id, total = (
            dated(name, time, self.zone) for name in (self.file, self.batch_id, self.confirm_from or "")
        )
        return replace(self, file=file, batch_id=batch_id, confirm_from=total or None)

    def options(self) -> dict[str, Any]:
        """The arguments of `Steps.plan`."""
        names = ("batch_id", "confirm_total", "confirm_from", "max_amount", "max_rows", "max_failure_rate")
        return {name: getattr(self, name) for name in (*names, "pay_again", "lossy_standby")}
