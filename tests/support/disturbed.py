"""A sandbox that disturbs requests by chance."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Final

from payments_async.sandbox import Answer, Sandbox, SandboxLimits
from payments_async.sandbox._common.json import decode_object
from payments_async.sandbox._common.values import Request

BRIEF: Final = (
    *("lost_response", "lost_request", "reset", "cut_body", "bad_json", "wrong_type", "empty"),
    *("slow:300ms", "429:1", "http:408", "http:409", "http:500", "http:502", "http:503", "http:504"),
)
"""After these a run goes on, and none holds it up until its time-out of 30 seconds."""

BRISK: Final = ("reset", "lost_request", "lost_response", "cut_body", "http:500", "429:1", "slow:2s")
"""After these a row is settled by its next post: none of them needs the list, or 15 minutes.

Where there are no others, that post is left alone: on a busy machine chance meets another row each time.
"""


class DisturbedSandbox(Sandbox):
    """Disturbs a share of the creations, and of the readings of the list."""

    def __init__(
        self, seed: int, *, share: float, words: Sequence[str], readings: Sequence[str] = BRIEF
    ) -> None:
        super().__init__(limits=SandboxLimits.off())
        self.share = share
        """Of the requests, 0 to 1."""
        self.faults: Counter[str] = Counter()
        self.creations = 0
        self._chance = random.Random(seed)
        self._words, self._readings = words, readings
        self._settles = {*words} <= {*BRISK}
        self._disturbed: set[object] = set()  # references of rows whose next post is to settle them

    def _answer(self, request: Request) -> Answer:
        self.creations += request.method == "POST"
        self._disturb(request)
        return super()._answer(request)

    def _disturb(self, request: Request) -> None:
        """A rule for this one request, or none; the server asks for one request at a time."""
        self.clear_rules()
        creates = request.method == "POST"
        if self._chance.random() >= self.share or (self._settles and creates and self._is_next(request)):
            return
        word = self._chance.choice(self._words if creates else self._readings)
        self.faults[word if creates else f"list {word}"] += 1
        self.on("payouts.create" if creates else "payouts.list").respond(word)

    def _is_next(self, request: Request) -> bool:
        """Whether this is the next post of a row after one that was disturbed; else it is disturbed now."""
        reference = decode_object(request.body)["reference"]
        is_next = reference in self._disturbed
        (self._disturbed.discard if is_next else self._disturbed.add)(reference)
        return is_next
