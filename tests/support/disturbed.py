"""A sandbox that disturbs requests by chance, of every kind it knows, and tells when creations arrive."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from payments_async.sandbox import Answer, Sandbox, SandboxLimits
from payments_async.sandbox._common.json import decode_object
from payments_async.sandbox._common.values import Request

PASSING: Final = (
    *("lost_response", "lost_request", "reset", "cut_body", "bad_json", "wrong_type", "empty", "hang"),
    *("slow:300ms", "429:1", "http:408", "http:409", "http:500", "http:502", "http:503", "http:504"),
)
"""After these a run goes on."""
REFUSING: Final = ("http:400", "http:422")
"""After these a row is refused, unless an earlier request for it is in doubt."""
HALTING: Final = ("http:302", "http:401", "http:403", "http:404")
"""After these a run stops, to be begun again."""
BRIEF: Final = tuple(word for word in PASSING if word != "hang")
"""Those that do not hold a run up until its time-out of 30 seconds."""

BRISK: Final = ("reset", "lost_request", "lost_response", "cut_body", "http:500", "429:1", "slow:2s")
"""After these a row is settled by its next post: none of them needs the list, or 15 minutes.

Where there are no others, that post is left alone: on a busy machine chance meets another row each time.
"""

Row = tuple[str, Decimal]
"""By which a row is known to the service: currency and amount, which no other row has."""


class DisturbedSandbox(Sandbox):
    """Disturbs a share of the creations, and of the readings of the list."""

    def __init__(
        self,
        seed: int,
        *,
        share: float,
        words: Sequence[str] = PASSING,
        readings: Sequence[str] = BRIEF,
        halting: float = 0.0,
    ) -> None:
        super().__init__(limits=SandboxLimits.off())
        self.share = share
        """Of the requests, 0 to 1."""
        self.arrived = threading.Event()
        """Set when a creation has arrived from a process that was started after `expect`."""
        self.arrived_at = 0.0
        """When the first one did, by `time.monotonic`."""
        self.faults: Counter[str] = Counter()
        self.refused: set[Row] = set()
        """The rows that were refused by a fault at least once."""
        self.creations = 0
        self._greeted = False
        self._chance = random.Random(seed)
        self._words, self._readings, self._halting = words, readings, halting
        self._settles = {*words} <= {*BRISK}
        self._disturbed: set[object] = set()  # references of rows whose next post is to settle them

    def expect(self) -> None:
        """Look out for the first creation of the process that is started next."""
        self._greeted = False
        self.arrived.clear()

    def _answer(self, request: Request) -> Answer:
        self._note(request)
        self._disturb(request)
        return super()._answer(request)

    def _note(self, request: Request) -> None:
        """Before a run's first reading, creations are what a killed process has left in its sockets."""
        self._greeted |= request.method == "GET"
        self.creations += request.method == "POST"
        if request.method == "POST" and self._greeted and not self.arrived.is_set():
            self.arrived_at = time.monotonic()
            self.arrived.set()

    def _disturb(self, request: Request) -> None:
        """A rule for this one request, or none; the server asks for one request at a time."""
        self.clear_rules()
        creates = request.method == "POST"
        if self._chance.random() >= self.share or (self._settles and creates and self._is_next(request)):
            return
        word = self._word() if creates else self._chance.choice(self._readings)
        self.faults[word if creates else f"list {word}"] += 1
        if word in REFUSING:
            body = decode_object(request.body)
            self.refused.add((str(body["currency"]), Decimal(str(body["amount"]))))
        self.on("payouts.create" if creates else "payouts.list").respond(word)

    def _is_next(self, request: Request) -> bool:
        """Whether this is the next post of a row after one that was disturbed; else it is disturbed now."""
        reference = decode_object(request.body)["reference"]
        is_next = reference in self._disturbed
        (self._disturbed.discard if is_next else self._disturbed.add)(reference)
        return is_next

    def _word(self) -> str:
        halts = self._chance.random() < self._halting
        return self._chance.choice(HALTING if halts else self._words)
