"""One write until its outcome is known; the command around it, its signals and errors."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final, Generic, TypeVar

import attrs

from ..._validation import amount_guesses
from ...bulk._texts.quantities import money_text
from ...client import AsyncPayments
from ...errors import DuplicateReference, InvalidRequest, NotFoundError, OutcomeUnknown
from ...params import PreparedRequest
from .._exit_codes import CommandEnded, Exit
from .._text import print_message
from ..payouts.command_context import CommandContext, perform
from ..payouts.confirm import ConfirmOptions, confirm_total, is_live, terminal

R = TypeVar("R")
_DIGITS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def perform_call(
    work: Callable[[CommandContext], Coroutine[Any, Any, Exit]], *, about: str, as_json: bool
) -> Exit:
    """Do the work, as `perform`; bad arguments are named as options, and a signal exits 130."""

    async def worded(context: CommandContext) -> Exit:
        try:
            return await work(context)
        except InvalidRequest as error:
            faults = (f"{_option(field)}: {' and '.join(texts)}" for field, texts in error.errors.items())
            raise CommandEnded(f"{'; '.join(faults)}; nothing was sent", Exit.USAGE) from error
        except NotFoundError as error:
            if error.message is None:  # not the service's answer: the address may be wrong
                raise
            raise CommandEnded(f"the service has nothing there: {error.message}", Exit.REFUSED) from error
        except asyncio.CancelledError:
            if not context.interrupts.caught():
                raise
            raise CommandEnded(f"stopped by {context.interrupts.reason}", Exit.INTERRUPTED) from None

    return perform(worded, about=about, as_json=as_json)


def _option(field: str) -> str:
    """The option or argument of a field: `--instrument, phone_number`."""
    name, dot, inner = field.partition(".")
    shown = name if name in ("method", "path") and not dot else f"--{name.replace('_', '-')}"
    return f"{shown}, {inner}" if dot else shown


def require_clear_amount(text: str, currency: str) -> None:
    """Raise InvalidRequest for an amount that may be meant otherwise than it is written."""
    problem = amount_guesses.guess(text)
    if problem is None and _DIGITS.fullmatch(text):
        problem = amount_guesses.problem(text, currency) or amount_guesses.problem(Decimal(text), currency)
    elif problem is None:
        problem = f"is {text!r}, which is no decimal number: write plain digits, such as 1200.50"
    if problem:
        raise InvalidRequest({"amount": [problem]})


def confirm_amount(currency: str, amount: Decimal, given: str | None, context: CommandContext) -> None:
    """Have the amount confirmed where the key is live, or what is given compared. Raises CommandEnded."""
    asking = ConfirmOptions(
        [given] if given is not None else (),
        is_live(os.environ["PAYMENTS_API_KEY"]),
        context.interrupts.asking,
        terminal(),
        option="--confirm",
        what="payout",
    )
    if how := confirm_total({currency: amount}, 1, asking):
        context.show.step("Confirmed", f"{money_text({currency: amount})}, {how}", how=how)


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
        doubt = getattr(stopped, "outcome", None)  # the client says so of a request that has left
        if doubt is None or not context.interrupts.caught():
            raise
        reason = f"stopped by {context.interrupts.reason} after it had been sent: it may be carried out"
        raise CommandEnded(f"{reason}. {advise(doubt)}", Exit.OUTCOME_UNKNOWN) from None


@attrs.frozen
class Sent(Generic[R]):
    record: R
    is_new: bool | None
    """Whether this command made it: False for a payout that was there already and is the very same, None
    where no answer came at first: then this command made it, or an earlier one."""


async def send_surely(
    client: AsyncPayments, prepared: PreparedRequest[R], advice: str, context: CommandContext
) -> Sent[R]:
    """Send a write; in doubt, find out its outcome once. `advice`: what to do if that stays unknown.

    What is returned has to be shown before anything else is awaited. Raises CommandEnded in doubt,
    PaymentsError for a refusal.
    """
    with advised(lambda _: advice, context):
        try:
            return Sent(await client.send(prepared), True)
        except DuplicateReference as error:
            return Sent(await client.resolve(error), False)
        except OutcomeUnknown as error:
            print_message("no definite answer came: finding out whether it was carried out…")
            try:
                record: Any = await client.resolve(error)
            except asyncio.CancelledError as stopped:
                stopped.outcome = error  # type: ignore[attr-defined] # as the client does: it may be paid
                raise
            return Sent(record, record.response.idempotency_key == prepared.idempotency_key or None)
