"""Decides the next step of a row in doubt: at a run's start, after a failed post, after a scan. Pure.

A row in doubt whose key is young is posted again, at once when a run starts and after a back-off within it,
before any list is read: the same bytes under the same key and reference are one request to the service. The
list is read only when that did not settle the row or the key is old. That the list lacks the payout proves
nothing by itself. So the row is then sent under the next key: the reference lets only one payout exist.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import attrs

from ..._assumptions import ABANDONED_AFTER, LIST_SETTLES
from .clocks import ElapsedRange, key_is_trusted
from .matching import Match
from .row_state import UNFINISHED, RowState


class Action(StrEnum):
    """The first action for a row of an earlier run."""

    SEND = "send"
    SEND_AGAIN = "send again"
    """Send the same bytes, key and reference, at once."""
    RESOLVE = "resolve"
    """Read the list first: the key is old, or the bytes cannot be made again."""
    NOTHING = "nothing"


def at_start(state: RowState, age_of_key: ElapsedRange, *, same_bytes: bool = True) -> Action:
    """Choose the action for a row. `same_bytes`: the body made now has the hash that is stored."""
    if state is RowState.NEW:
        return Action.SEND
    if state not in UNFINISHED:
        return Action.NOTHING
    return Action.SEND_AGAIN if same_bytes and key_is_trusted(age_of_key) else Action.RESOLVE


_BACK_OFF: Final = 10.0
"""Seconds before a row is posted again for the first time in a run; twice as many before each next time."""


def post_again_after(times: int) -> float | None:
    """Seconds until a row whose posts failed is posted again, `times` of this having failed already.

    None once that takes longer than it takes until the next key may be used: then the list is read.
    """
    seconds = _BACK_OFF * 2.0**times
    return seconds if seconds < ABANDONED_AFTER else None


class NextStep(StrEnum):
    """The next step after a scan of the list."""

    CONFIRM = "confirm"
    CONTRADICT = "contradict"
    SCAN_AGAIN = "scan again"
    """Scan again, after a back-off."""
    SCAN_EVERYWHERE = "scan everywhere"
    """Scan again, the whole list and without filters."""
    WAIT = "wait"
    """Wait, then scan again; only this row waits."""
    NEXT_EPOCH = "next epoch"
    """Record an intent with the next key, and send."""
    SURFACE = "surface"
    """The row stays in doubt and is shown to the operator."""


@attrs.frozen
class ListScan:
    """One scan of the list, as far as it concerns a row."""

    matched: Match | None
    """The comparison with the payout found under the row's reference."""
    whole: bool
    """True if the scan reached its end."""
    everywhere: bool
    """True if the scan had no filter."""
    began: float
    """Seconds that had surely passed since the row's last request when the scan began."""


@attrs.frozen
class Resolution:
    """A next step, the wait before it, and the proof of absence."""

    step: NextStep
    wait: float = 0.0
    """Seconds to wait before the step."""
    absent: bool = False
    """True if no request so far has made a payout."""


AFTER_MATCH: Final = {
    Match.EQUAL: Resolution(NextStep.CONFIRM),
    Match.FOREIGN: Resolution(NextStep.CONTRADICT),
    Match.OTHER_BODY: Resolution(NextStep.CONTRADICT),
    Match.UNCLEAR: Resolution(NextStep.SURFACE),
}
"""The resolution when the list shows a payout under the row's reference."""
_SURFACE: Final = Resolution(NextStep.SURFACE)


def after_scan(
    scan: ListScan,
    *,
    since_send: float,
    epoch: int,
    exists: bool,
    refused: bool,
    scans_left: int,
) -> Resolution:
    """Decide after a scan, `since_send` seconds (at least) after the row's last request.

    `exists`: the row's last request was answered 409. `refused`: it was refused while something else was in
    doubt, so that only proven absence helps. `scans_left`: how many more scans this run affords the row.
    """
    if scan.matched is not None:
        return AFTER_MATCH[scan.matched]
    if not scan.whole:
        return _scan_again(scans_left)
    if exists and not scan.everywhere:
        return Resolution(NextStep.SCAN_EVERYWHERE)
    if since_send < ABANDONED_AFTER:
        return Resolution(NextStep.WAIT, ABANDONED_AFTER - since_send)
    if exists and epoch:
        return _scan_again(scans_left)
    missing = ABANDONED_AFTER + LIST_SETTLES - scan.began
    if refused and missing > 0:
        return Resolution(NextStep.WAIT, missing)
    return Resolution(NextStep.NEXT_EPOCH, absent=missing <= 0)


def _scan_again(scans_left: int) -> Resolution:
    return Resolution(NextStep.SCAN_AGAIN) if scans_left > 0 else _SURFACE
