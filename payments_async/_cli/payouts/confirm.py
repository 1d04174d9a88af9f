"""What a person confirms: a live key's total, typed back or given as an option; what cannot be undone."""

from __future__ import annotations

import contextlib
import getpass
import re
import select
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import attrs

from ...bulk._texts.quantities import Money, amount_of, counted, money_text, parsed
from ...models.common import amount_text
from .._exit_codes import CommandEnded, Exit
from .._text import text_width, wrapped

if TYPE_CHECKING:
    from ...bulk import BatchReport, PayoutBatch
    from .command_context import CommandContext

Ask = Callable[[str], str]
_TRIES: Final = 3
_GROUPED: Final = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_LOOKS_EVERY: Final = 0.2  # seconds between two looks at the terminal


@attrs.frozen
class ConfirmOptions:
    """Options for confirming a total."""

    given: Sequence[str]  # the texts of the option that confirms
    is_live: bool
    attended: Callable[[], AbstractContextManager[None]]
    """The context to be in while a person types."""
    ask: Ask | None  # None without a terminal
    option: str = "--confirm-total"
    what: str = "batch"  # what has the total, for messages
    doubts: int = 0  # rows with a value that is probably a slip


def is_live(api_key: str) -> bool:
    """Return whether a key pays real money (Authentication)."""
    return api_key.startswith("sk_live_")


def person() -> str:
    """Who confirms, for the record: the login name."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name
        return ""


def terminal() -> Ask | None:
    """A function that asks on the terminal; None without one."""
    return _ask if sys.stdin.isatty() and sys.stderr.isatty() else None


def _ask(text: str) -> str:
    sys.stderr.write(f"{wrapped(text, text_width())} ")
    sys.stderr.flush()
    # a read goes on after a signal that came just before it; Windows can look at sockets only
    while sys.platform != "win32" and not select.select([sys.stdin], [], [], _LOOKS_EVERY)[0]:
        pass
    return sys.stdin.readline()


async def confirm_batch(
    batch: PayoutBatch, report: BatchReport, given: Sequence[str], *, live: bool, context: CommandContext
) -> str | None:
    """Have the total of a batch confirmed, and record that. Returns how; None where it is not real money.

    Raises CommandEnded, and nothing was sent.
    """
    asking = ConfirmOptions(given, live, context.interrupts.asking, terminal(), doubts=report.doubts)
    how = confirm_total(report.payable, report.rows - report.counts["cancelled"], asking)
    if how is not None:
        await batch.confirm(report.payable, person())
    return how


def confirm_total(totals: Money, rows: int, asking: ConfirmOptions) -> str | None:
    """Ask for the confirmation of a total. Returns how it was confirmed; None when that is not needed.

    Raises CommandEnded, and nothing was sent.
    """
    if asking.given:
        _require_equal(totals, asking)
        return f"as given with {asking.option}"
    if not asking.is_live:
        return None
    _ask_each(totals, rows, asking)
    return "typed back"


def _require_equal(wanted: Money, asking: ConfirmOptions) -> None:
    try:
        given = parsed(asking.given)
    except ValueError as error:
        raise CommandEnded(f"{asking.option}: {error}; nothing was sent", Exit.USAGE) from None
    if given != wanted:
        problem = f"{money_text(given)} was confirmed, and the {asking.what} comes to {money_text(wanted)}"
        way_out = f"To pay it as it is: {flags(wanted, asking.option)}"
        raise CommandEnded(f"{problem}; nothing was sent. {way_out}", Exit.USAGE)


def _ask_each(wanted: Money, rows: int, asking: ConfirmOptions) -> None:
    totals = sorted(wanted.items())
    if asking.ask is None:
        raise CommandEnded(
            "a live key pays real money, and there is no terminal to confirm the total on; "
            f"nothing was sent. To pay it: {flags(wanted, asking.option)}",
            Exit.USAGE,
        )
    heading = f"\nThis key is live: {counted(rows, 'payout')} of real money, {money_text(wanted)} in all"
    heading += f"{doubts_text(asking.doubts)}.\n"
    try:
        with asking.attended():
            for currency, amount in totals:
                _require_typed(asking.ask, heading, currency, amount)
                heading = ""
    except KeyboardInterrupt:
        raise CommandEnded("not confirmed; nothing was sent", Exit.INTERRUPTED) from None


def _require_typed(ask: Ask, heading: str, currency: str, amount: Decimal) -> None:
    for _ in range(_TRIES):
        text = ask(f"{heading}Type the {currency} total to pay it:")
        if _is_typed(text, currency, amount):
            return
        if not text:  # the input is over
            break
        heading = f"That is not the {currency} total. To the last digit, such as 1200.50 or 1,200.50.\n"
    raise CommandEnded(f"that is not the {currency} total; nothing was sent", Exit.USAGE)


def _is_typed(text: str, currency: str, amount: Decimal) -> bool:
    typed = text.strip().removeprefix(currency).strip()
    if _GROUPED.fullmatch(typed):
        typed = typed.replace(",", "")
    with contextlib.suppress(ValueError):
        return amount_of(typed) == amount
    return False


def doubts_text(doubts: int) -> str:
    """What stands beside a total of which rows are doubtful: `; 2 rows with a doubt`."""
    return f"; {counted(doubts, 'row')} with a doubt" if doubts else ""


def flags(totals: Money, option: str = "--confirm-total") -> str:
    """The options that confirm these totals."""
    texts = (amount_text(*total).replace(",", "") for total in sorted(totals.items()))
    return " ".join(f"{option} {shlex.quote(text)}" for text in texts)


def require_word(word: str, what: str, done: str, again: str, context: CommandContext) -> None:
    """Ask for a word before `what` is `done` that cannot be undone. Raises CommandEnded without it.

    `again`: the command that does it without asking.
    """
    ask = terminal()
    if ask is None:
        problem = f"{what} would be {done}, and there is no terminal to confirm it on"
        raise CommandEnded(f"{problem}; nothing was changed. To do it: `{again}`", Exit.USAGE)
    try:
        with context.interrupts.asking():
            typed = ask(f"{what} will be {done}. Type `{word}` to do it:")
    except KeyboardInterrupt:
        raise CommandEnded("not confirmed; nothing was changed", Exit.INTERRUPTED) from None
    if typed.strip() != word:
        raise CommandEnded(f"that is not `{word}`; nothing was changed", Exit.USAGE)
