"""The exit codes of the `payments` commands, and which of them a batch ends with. Pure."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .outcomes import RowTotals


class Exit(IntEnum):
    """Exit codes of every `payments` command."""

    DONE = 0
    REFUSED = 1  # the service refused, or a check failed
    USAGE = 2
    """The command, the key or the address is wrong; nothing is sent until it is corrected."""
    OUTCOME_UNKNOWN = 3  # money may have moved: find out before you run it again
    RESUMABLE = 75  # stopped; the same command resumes
    INTERRUPTED = 130  # ctrl-C; shells use the same number
    READER_LEFT = 141
    """The reader of the output has left, as `head` does; shells use the same number (SIGPIPE)."""


class Stop(StrEnum):
    """The change that is needed before a run that ended early can be run again."""

    TEMPORARY = "temporary"  # no change: run it again
    RULE = "rule"  # the operator's own rule ended the run, and would again
    NO_ACCESS = "no access"
    """The service refused the key: every run would end like this one."""
    NOT_THE_SERVICE = "not the service"
    """Something else answered at its address: TLS does not prove its name, or a redirect or 404 came."""


def exit_code(totals: RowTotals, *, stop: Stop | None = None, extra: bool = False) -> Exit:
    """The exit code: 0 every row created, 1 complete otherwise, 3 rows in doubt, 75 stopped, resumable.

    2 when the service cannot be used with this key or address (`Stop.NO_ACCESS`, `Stop.NOT_THE_SERVICE`).
    `extra`: a payout stands for no row, which leaves a complete batch at 1.
    """
    from .outcomes import Outcome, count_rows, is_complete  # here: each command starts with these codes

    if is_complete(totals):
        refused = extra or count_rows(totals, *set(Outcome) - {Outcome.NOT_FINAL, Outcome.ARRIVED})
        return Exit.REFUSED if refused else Exit.DONE
    is_stopped = count_rows(totals, Outcome.NOT_STARTED, Outcome.UNDER_WAY)
    return stopped_code(stop) if is_stopped else Exit.OUTCOME_UNKNOWN


def stopped_code(stop: Stop | None) -> Exit:
    return Exit.USAGE if stop in (Stop.NO_ACCESS, Stop.NOT_THE_SERVICE) else Exit.RESUMABLE


def resumable(stop: Stop | None) -> str:
    """Tell when work that ended early can be run again: `now`, or `after_change` of its cause."""
    return "now" if stop in (None, Stop.TEMPORARY) else "after_change"
