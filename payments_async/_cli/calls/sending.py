"""One write until its outcome is known; the command around it, its signals and errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from ..._runtime import SYSTEM
from ..._validation import amounts
from ...client import AsyncPayments
from ...errors import DuplicateReference, InvalidRequest, OutcomeUnknown, PaymentsError, ResponseMismatch
from ...params import PreparedRequest, decimal_if_readable
from .._exit_codes import CommandEnded, Exit
from .._text import print_message
from ..payouts.command_context import CommandContext, perform

R = TypeVar("R")
Work = Callable[[CommandContext], Coroutine[Any, Any, Exit]]
CTRL_C: Final = "Ctrl-C"
_PAUSE: Final = 5.0
"""Seconds between two attempts to find out the outcome (Limits, Polling guidance)."""


def perform_call(work: Work, *, about: str, as_json: bool) -> Exit:
    """Do the work, as `perform`; bad arguments are named as options, and Ctrl-C exits 130."""

    async def worded(context: CommandContext) -> Exit:
        try:
            return await work(context)
        except InvalidRequest as error:
            raise CommandEnded(option_faults(error), Exit.USAGE) from error
        except asyncio.CancelledError:
            reason = context.interrupts.reason
            if not (context.interrupts.is_answered or reason == CTRL_C) or not context.interrupts.caught():
                raise
            what = (
                "it was carried out, as shown above"
                if context.interrupts.is_answered
                else "nothing was carried out"
            )
            code = Exit.INTERRUPTED if reason == CTRL_C else Exit.OUTCOME_UNKNOWN
            raise CommandEnded(f"stopped by {reason}; {what}", code) from None

    return perform(worded, about=about, as_json=as_json)


def require_clear_amount(fields: Mapping[str, Any]) -> None:
    """Raise InvalidRequest for an amount that may be meant otherwise than it is written."""
    text, currency = fields["amount"], fields["currency"]
    if problem := amounts.guess(text) or amounts.problem(decimal_if_readable(text), currency):
        raise InvalidRequest({"amount": [problem]})


def option_faults(error: InvalidRequest) -> str:
    """The faults of arguments, with the names of options."""
    faults = (f"{_option(field)}: {' and '.join(texts)}" for field, texts in error.errors.items())
    return f"{'; '.join(faults)}; nothing was sent"


def _option(field: str) -> str:
    name, dot, inner = field.partition(".")
    shown = name if name in ("method", "path") and not dot else f"--{name.replace('_', '-')}"
    return f"{shown}, {inner}" if dot else shown


@contextmanager
def advised(advise: Callable[[OutcomeUnknown], str], context: CommandContext) -> Iterator[None]:
    """Within it a write in doubt ends the command, with advice: without an answer, or by a signal.

    Raises CommandEnded for it; other errors and cancellations pass.
    """
    try:
        yield
    except OutcomeUnknown as error:
        raise CommandEnded(f"{error}. {advise(error)}", Exit.OUTCOME_UNKNOWN) from error
    except asyncio.CancelledError as stopped:
        doubt, reason = getattr(stopped, "outcome", None), context.interrupts.reason
        if doubt is None or not context.interrupts.caught():
            raise
        text = f"stopped by {reason} after it had been sent: it may be carried out. {advise(doubt)}"
        raise CommandEnded(text, Exit.INTERRUPTED if reason == CTRL_C else Exit.OUTCOME_UNKNOWN) from None


async def send_surely(
    client: AsyncPayments, prepared: PreparedRequest[R], deadline: float, advice: str, context: CommandContext
) -> tuple[R, bool | None]:
    """Send a write; in doubt, find out its outcome until the deadline, in seconds.

    Returns the record, and whether this made it: False for a payout that was there already and is the very
    same, None where that is not known. `advice` says what to do when the outcome stays unknown. What
    is returned has to be shown before anything else is awaited.

    Raises CommandEnded when it does; PaymentsError for a refusal.
    """
    until = SYSTEM.monotonic() + deadline
    is_new: bool | None = True
    with advised(lambda _: advice, context):
        try:
            record = await client.send(prepared, deadline=deadline / 2)
        except DuplicateReference as error:
            record, is_new = (
                await _existing(client, error, max(until - SYSTEM.monotonic(), 1.0), advice),
                False,
            )
        except OutcomeUnknown as error:
            print_message("no definite answer came: finding out whether it was carried out…")
            record = await _resolved(client, error, until)
            is_new = record.response.idempotency_key == prepared.idempotency_key or None
    context.interrupts.is_answered = True
    return record, is_new


async def _existing(client: AsyncPayments, error: DuplicateReference, left: float, advice: str) -> Any:
    """The payout that has the reference. Raises CommandEnded where it cannot be read."""
    try:
        return await client.with_options(deadline=left).resolve(error)
    except (DuplicateReference, OutcomeUnknown, ResponseMismatch):
        raise
    except PaymentsError as failure:  # of the look-up
        problem = f"a payout with this reference exists, and could not be read ({failure})"
        raise CommandEnded(f"{problem}. {advice}", Exit.OUTCOME_UNKNOWN) from failure


async def _resolved(client: AsyncPayments, doubt: OutcomeUnknown, until: float) -> Any:
    """The record. Raises OutcomeUnknown at the deadline, on the clock of `SYSTEM`."""
    while (left := until - SYSTEM.monotonic()) > 0:
        try:
            return await client.with_options(deadline=left).resolve(doubt)
        except OutcomeUnknown as error:
            doubt = error
        try:
            await SYSTEM.sleep(min(_PAUSE, max(until - SYSTEM.monotonic(), 0.0)))
        except asyncio.CancelledError as stopped:
            stopped.outcome = doubt  # type: ignore[attr-defined] # as the client does
            raise
    raise doubt
