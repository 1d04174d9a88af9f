"""What the real engine decides, counted where it asks the rules. Nothing is changed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

from payments_async.bulk._engine import doubt_queue, resolver, sender
from payments_async.bulk._protocol import listed_payouts
from payments_async.bulk._protocol.attempts import AttemptReply, Step, after_attempt, kind_of
from payments_async.bulk._protocol.matching import Match, match_of
from payments_async.bulk._protocol.rows_in_doubt import Resolution, after_scan, post_again_after


@contextlib.contextmanager
def counted(note: Callable[[str], None]) -> Iterator[None]:
    """Note each answer, each payout found and each resolution while this lasts."""

    def answered(reply: AttemptReply, **facts: Any) -> Step:
        note(f"answer: {kind_of(reply)}")
        return after_attempt(reply, **facts)

    def resolved(*args: Any, **facts: Any) -> Resolution:
        resolution = after_scan(*args, **facts)
        note(f"resolution: {resolution.step}")
        return resolution

    def found(*args: Any) -> Match:
        matched = match_of(*args)
        note(f"found: {matched}")
        return matched

    def waited(times: int) -> float | None:
        seconds = post_again_after(times)
        note("back-off over: the list" if seconds is None else "posted again after a back-off")
        return seconds

    with (
        patch.object(doubt_queue, "post_again_after", waited),
        patch.object(sender, "after_attempt", answered),
        patch.object(resolver, "after_scan", resolved),
        patch.object(listed_payouts, "match_of", found),
    ):
        yield
