"""Plans a batch: imports its file, and lets its chunks be paid once the total is confirmed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...models._masking import clean
from ...params import Money, decimal_if_readable
from .._leasing.decisions import ended_or_held
from .._leasing.step_call import explained
from .._leasing.step_context import StepContext
from .._leasing.step_ends import (
    BatchPlan,
    FailureCause,
    Held,
    HoldReason,
    Never,
    Next,
    Now,
    StepFailed,
    failed,
)
from .._protocol.machines import BatchState
from .._protocol.stop_rules import StopRules
from .._texts.quantities import difference, money_text, parsed
from ..errors import BulkError, SourceErrors, SourceUnreadable
from ..ledger_errors import (
    InputPaidElsewhere,
    LedgerDuplicates,
    LedgerForgotten,
    LedgerMismatch,
    LedgerRefused,
)
from ..shared_batch import SharedBatch

if TYPE_CHECKING:
    from .._ledger.postgresql.batches import SharedFacts

_INPUT: Final = (SourceErrors, LedgerMismatch, InputPaidElsewhere, LedgerDuplicates)


async def planned(
    context: StepContext,
    source: str | os.PathLike[str],
    batch_id: str,
    confirmed: Mapping[str, Decimal] | None,
    rules: StopRules,
    loading: Mapping[str, Any],
    *,
    lossy_standby: bool,
) -> BatchPlan:
    """Import a file as a batch, and let its chunks be paid if its total is confirmed. Raises StepFailed."""
    place, insecure = (context.address, context.client), context.insecure_database
    with explained():
        try:
            async with SharedBatch.open(*place, batch_id=batch_id, insecure_database=insecure) as batch:
                report = await batch.load(source, **loading)
                facts = batch._ledger.facts
                following = _after_import(facts, report.payable, confirmed)
                if following is None:  # a second time would grant all chunks anew
                    await batch._work.plan(rules, lossy_standby=lossy_standby)
                figures = (report.batch_id, facts.chunks, report.rows, dict(report.payable))
                return BatchPlan(*figures, following or Now())
        except SourceUnreadable as error:
            raise failed(FailureCause.FILE, str(error)) from error
        except _INPUT as error:
            raise failed(FailureCause.INPUT, str(error)) from error
        except (LedgerForgotten, LedgerRefused) as error:
            raise StepFailed(FailureCause.DATABASE, str(error), Never(str(error))) from error


def _after_import(
    facts: SharedFacts, payable: Mapping[str, Decimal], confirmed: Mapping[str, Decimal] | None
) -> Next | None:
    """What follows the import; None when the batch's chunks are to be paid from now on."""
    if confirmed is not None and (problem := difference(confirmed, payable)) is not None:
        return Held(HoldReason.TOTAL, problem)
    if facts.state is not BatchState.IMPORTED:
        return ended_or_held(facts) or Now()
    if facts.header.binding.environment == "live" and confirmed is None:
        return Held(HoldReason.TOTAL, f"a live key pays real money: confirm {money_text(payable)}")
    return None


def confirmed_total(
    total: Mapping[str, Money] | None, path: str | os.PathLike[str] | None
) -> dict[str, Decimal] | None:
    """The confirmed total; None without one. Raises BulkError, and StepFailed without the file."""
    if total is not None and path is not None:
        raise BulkError("give confirm_total or confirm_from, not both")
    if path is not None:
        return _total_in(path)
    if total is None:
        return None
    amounts = {currency: decimal_if_readable(amount) for currency, amount in total.items()}
    for currency, amount in amounts.items():
        if not isinstance(amount, Decimal) or not amount.is_finite():
            raise BulkError(
                f"confirm_total: the amount of {clean(currency)} must be exact: a Decimal, a whole number or "
                "decimal text"
            )
    return amounts


def _total_in(path: str | os.PathLike[str]) -> dict[str, Decimal]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise failed(FailureCause.FILE, f"confirm_from: {os.fspath(path)} cannot be read") from error
    try:
        return parsed(line for line in text.splitlines() if line.strip())
    except ValueError as error:
        raise BulkError(f"confirm_from: {os.fspath(path)}: {error}") from None
