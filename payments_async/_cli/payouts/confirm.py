"""The confirmation of a live key's total: typed back, or given with --confirm-total (one payout: --confirm).

What was confirmed is kept beside the ledger: the same batch, resumed, needs no second confirmation; other
rows, or another total, do.
"""

from __future__ import annotations

import contextlib
import json
import re
import select
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal
from pathlib import Path
from typing import Final

import attrs

from ..._files import write_text
from ...bulk._texts.ledger_address import LedgerAddress
from ...bulk._texts.quantities import Money, amount_of, counted, difference, money_text, parsed, plain_sums
from .._exit_codes import CommandEnded, Exit
from .._text import text_width, wrapped

Ask = Callable[[str], str]
_TRIES: Final = 3
_GROUPED: Final = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_FORMS: Final = "1200.50 or 1,200.50, with the currency in front or without"

_LOOKS_EVERY: Final = 0.2
"""Seconds between two looks at the terminal."""


@attrs.frozen
class ConfirmOptions:
    """Options for confirming a total."""

    given: Sequence[str]
    """The texts of the option that confirms."""
    is_live: bool
    """True if the key pays real money."""
    attended: Callable[[], AbstractContextManager[None]]
    """The context to be in while a person types."""
    ask: Ask | None
    """None without a terminal."""
    option: str = "--confirm-total"
    """The option that gives a total."""
    what: str = "batch"
    """What has the total, for messages."""


def is_live(api_key: str) -> bool:
    """Return whether a key pays real money (Authentication)."""
    return api_key.startswith("sk_live_")


def terminal() -> Ask | None:
    """A function that asks on the terminal; None without one."""
    return _ask if sys.stdin.isatty() and sys.stderr.isatty() else None


def _ask(text: str) -> str:
    sys.stderr.write(f"{wrapped(text, text_width())} ")
    sys.stderr.flush()
    # a read goes on after a signal that came just before it
    while not select.select([sys.stdin], [], [], _LOOKS_EVERY)[0]:
        pass
    return sys.stdin.readline()


def confirm(wanted: Confirmation, rows: int, ledger: LedgerAddress, asking: ConfirmOptions) -> str | None:
    """Ask for the confirmation of a batch's total. Returns its kind; None when none is needed.

    A batch that was confirmed once needs no second time, unless its rows, its total or the key changed.

    Raises CommandEnded, and nothing was sent.
    """
    path = Path(ledger.beside("confirmed.json"))
    if asking.is_live and not asking.given and wanted.is_same_as(_text_of(path)):
        return "earlier, and nothing has changed since"
    how = confirm_once(wanted.totals, rows, asking)
    if asking.is_live:
        with contextlib.suppress(OSError):  # then it asks again next time
            write_text(path, wanted.to_json())
    return how


def _text_of(path: Path) -> str:
    """A file's text; empty when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def confirm_once(totals: Money, rows: int, asking: ConfirmOptions) -> str | None:
    """As `confirm`, each time. Raises CommandEnded."""
    if asking.given:
        _require_equal(totals, asking)
        return f"as given with {asking.option}"
    if not asking.is_live:
        return None
    _ask_each(totals, rows, asking)
    return "typed back"


def _require_equal(wanted: Money, asking: ConfirmOptions) -> None:
    try:
        problem = difference(parsed(asking.given), wanted, asking.what)
    except ValueError as error:
        raise CommandEnded(f"{asking.option}: {error}; nothing was sent", Exit.USAGE) from None
    if problem:
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
    heading = f"\nThis key is live: {counted(rows, 'payout')} of real money, {money_text(wanted)} in all.\n"
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
        heading = f"That is not the {currency} total. As shown above, to the last digit: {_FORMS}.\n"
    raise CommandEnded(f"that is not the {currency} total; nothing was sent", Exit.USAGE)


def _is_typed(text: str, currency: str, amount: Decimal) -> bool:
    typed = text.strip().removeprefix(currency).strip()
    if _GROUPED.fullmatch(typed):
        typed = typed.replace(",", "")
    with contextlib.suppress(ValueError):
        return amount_of(typed) == amount
    return False


# Totals


def flags(totals: Money, option: str = "--confirm-total") -> str:
    """The options that confirm these totals."""
    texts = (f"{currency} {amount}" for currency, amount in plain_sums(totals).items())
    return " ".join(f"{option} {shlex.quote(text)}" for text in texts)


@attrs.frozen
class Confirmation:
    """A confirmed batch and total."""

    batch_id: str
    input_hash: str
    account: str
    """The service's address and the key's fingerprint: each project is paid by itself."""
    totals: Money
    guard: str = ""
    """The digest of the guard; "" without one."""

    def to_json(self) -> str:
        """As JSON text."""
        facts = {**attrs.asdict(self), "totals": plain_sums(self.totals), "guard": self.guard or None}
        return json.dumps({"version": 1, **{name: fact for name, fact in facts.items() if fact is not None}})

    def is_same_as(self, text: str) -> bool:
        """Return whether `text` is the JSON of this same confirmation."""
        try:
            return bool(json.loads(text) == json.loads(self.to_json()))
        except ValueError:
            return False
