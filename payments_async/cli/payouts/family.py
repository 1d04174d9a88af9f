"""The app that the commands of `payments payouts` belong to, and what each asks for first."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from cyclopts import App

from ..._extras import with_extra
from .._exit import Ended, Exit

payouts: Final = App(
    name="payouts", help="Pay a file of payouts, each row at most once, and see where it stands."
)


def require_extra() -> None:
    """Raise Ended unless the libraries of the ledger are there: before anything that imports them."""
    for library in ("sqlalchemy", "aiosqlite"):
        if find_spec(library) is None:
            raise Ended(f"payouts need {library}: {with_extra('bulk')}", Exit.USAGE)
