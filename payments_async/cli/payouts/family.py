"""The app that the commands of `payments payouts` belong to, and what each asks for first."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import Final, ParamSpec

from cyclopts import App

from ..._extras import with_extra
from .._exit_codes import Ended, Exit

P = ParamSpec("P")

payouts: Final = App(
    name="payouts", help="Pay a file of payouts, each row at most once, and see where it stands."
)


def command(function: Callable[P, int]) -> Callable[P, int]:
    """Add a command, whose body may import what needs the ledger's libraries: it is run only where they are.

    Where they are not, it ends with Ended, which names the extra.
    """

    @wraps(function)
    def with_the_extra(*arguments: P.args, **options: P.kwargs) -> int:
        for library in ("sqlalchemy", "aiosqlite"):
            if find_spec(library) is None:
                raise Ended(f"payouts need {library}: {with_extra('bulk')}", Exit.USAGE)
        return function(*arguments, **options)

    payouts.command(with_the_extra)
    return with_the_extra
