"""`payments guard`: begin and show the sums of a guard (docs/guard.md).

state   the guard's file, its rules in words, what its state has of each sum; also for `payments doctor`
"""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import App, Parameter

from .._output import FileName, Flag, Insecure, JsonFlag

_FILE: Final = "The guard's file; PAYMENTS_GUARD unless given."
GuardFile = Annotated[FileName | None, Parameter(name="--guard", metavar="PATH", help=_FILE)]

guard: Final = App(name="guard", help="A guard on money: its rules and its sums.")


@guard.command
def begin(
    *,
    guard_file: GuardFile = None,
    again: Flag = False,
    insecure_database: Insecure = False,
    json: JsonFlag = False,
) -> int:
    """Make the state of a guard's sums, and trust it from now on. Sends nothing.

    Until then a new state refuses payouts, because it does not know what was paid before. What was paid
    before is not counted. The key and the address come from PAYMENTS_API_KEY and PAYMENTS_BASE_URL.

    Parameters
    ----------
    again
        Trust a state anew that is trusted already. What it counts stays.
    """
    from .state import begin

    return begin(guard_file, again=again, insecure_database=insecure_database, as_json=json)


@guard.command
def show(*, guard_file: GuardFile = None, insecure_database: Insecure = False, json: JsonFlag = False) -> int:
    """The rules of a guard, and what is left of each sum. Sends nothing.

    The state is of the key and address in PAYMENTS_API_KEY and PAYMENTS_BASE_URL.
    """
    from .state import show

    return show(guard_file, insecure_database=insecure_database, as_json=json)
