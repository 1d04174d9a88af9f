"""All gates of one secret key, and the permit that a request holds while it is under way.

A live operation passes two gates, its record's and its class's; refund availability is also a read.
A `Permit` keeps the grants of one request, so that the pipeline ends them together and only once.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

from ._gate import Gate
from ._limits import LimitClass, LimitSnapshot, MeterClass, RateLimits
from ._line import Priority
from ._meter import ORDINARY, WINDOW, Meter
from ._runtime import Runtime

CLASSES: Final[tuple[LimitClass, ...]] = ("write", "read", "diagnostic", "refund_availability")
SWEEP_FROM: Final = 256
"""So many record gates may stand idle before they are looked for; then twice as many as stayed."""


class Permit:
    """Leave to send one request. The first of `leave`, `refused` and `put_back` ends it, the rest do nothing.

    Times are the runtime's monotonic seconds.
    """

    __slots__ = ("_limiter", "_passed", "_record")

    def __init__(self, limiter: KeyLimiter, record: str | None) -> None:
        self._limiter = limiter
        self._record = record
        self._passed: list[tuple[Gate, int]] = []

    def add(self, gate: Gate, grant: int) -> None:
        """One gate more is passed; the narrow one first."""
        self._passed.append((gate, grant))

    def leave(self, now: float, *, answered: bool = True) -> None:
        """An answer came; or the attempt was given up without one (`answered` false)."""
        for gate, grant in self._end():
            gate.leave(grant, now, answered=answered)

    def refused(self, now: float, seconds: float) -> None:
        """A 429 came (Errors, rule 1): the narrow gate closes for `seconds`.

        The wide one closes too when this was its probe, or when the service refuses other records as well.
        """
        passed = self._end()
        widespread = bool(passed) and self._limiter.refuses_others(self._record, now, seconds)
        for number, (gate, grant) in enumerate(passed):
            if number == 0 or widespread or grant > ORDINARY:
                gate.refused(grant, now, seconds)
            else:
                gate.leave(grant, now)

    def put_back(self) -> None:
        """Nothing was sent."""
        for gate, grant in self._end():
            gate.put_back(grant)

    def _end(self) -> Sequence[tuple[Gate, int]]:
        """What there is to end, once."""
        passed, self._passed = self._passed, []
        return passed


class RecordGates:
    """A gate for each attempt, intent or payout that live operations ask about; idle ones are forgotten.

    Thread-safe.
    """

    def __init__(self, limits: RateLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._gates: dict[str, tuple[Gate, float]] = {}  # and when it was last fetched
        self._refused: dict[str, float] = {}  # until when
        self._sweep_at = SWEEP_FROM

    def fetch(self, record: str, now: float) -> Gate:
        """The record's gate."""
        with self._lock:
            known = self._gates.get(record)
            if known is None and len(self._gates) >= self._sweep_at:
                self._sweep(now)
            gate = make_gate(self._limits, "record") if known is None else known[0]
            self._gates[record] = gate, now
        return gate

    def refuses_others(self, record: str, now: float, seconds: float) -> bool:
        """Note that this record is refused for `seconds`; whether others are, too."""
        with self._lock:
            others = {name: until for name, until in self._refused.items() if until > now and name != record}
            until = max(self._refused.get(record, now), now + seconds)
            self._refused = {**others, record: until}
        return bool(others)

    def resize(self, limits: RateLimits) -> None:
        """Other figures for every record."""
        with self._lock:
            self._limits = limits
            for gate, _ in self._gates.values():
                gate.resize(limits.of("record"), limits.capacity("record"))

    def all(self) -> list[Gate]:
        """Every gate there is."""
        with self._lock:
            return [gate for gate, _ in self._gates.values()]

    def forked(self) -> None:
        """In a forked child: no gates, and a lock that nobody holds."""
        self._lock = threading.Lock()
        for gate in self.all():
            gate.forked()
        self._gates = {}
        self._refused = {}

    def _sweep(self, now: float) -> None:
        """Forget idle gates, but none that a caller may have fetched and not entered yet."""
        self._gates = {
            record: (gate, fetched)
            for record, (gate, fetched) in self._gates.items()
            if now - fetched < WINDOW or not gate.idle(now)
        }
        self._sweep_at = max(SWEEP_FROM, 2 * len(self._gates))


class KeyLimiter:
    """All gates of one secret key at one service address. Thread-safe, and shared by every event loop.

    `record` names the attempt, intent or payout of a live operation; it means nothing for other classes.
    """

    def __init__(self, limits: RateLimits | None = None) -> None:
        """`None`: the service's own limits, until somebody asks for others."""
        self.limits = limits or RateLimits()
        """The figures in force, requests a minute."""
        self._asked_for = limits is not None
        self._warned = False
        self._lock = threading.Lock()
        self._records = RecordGates(self.limits)
        self._make_gates()

    def try_enter(self, kind: LimitClass, now: float, record: str | None = None) -> Permit | None:
        """A permit at once, or `None` when the request would have to wait."""
        permit = Permit(self, record if kind == "diagnostic" else None)
        for gate in self.gates(kind, now, record):
            grant = gate.try_enter(now)
            if not grant:
                permit.put_back()
                return None
            permit.add(gate, grant)
        return permit

    async def enter(
        self,
        runtime: Runtime,
        kind: LimitClass,
        record: str | None = None,
        *,
        priority: Priority = "interactive",
        until: float | None = None,
    ) -> Permit:
        """A permit, after waiting for it; `GateTimeout` when `until` (monotonic seconds) comes first."""
        permit = Permit(self, record if kind == "diagnostic" else None)
        try:
            for gate in self.gates(kind, runtime.monotonic(), record):
                permit.add(gate, await gate.enter(runtime, priority=priority, until=until))
        except BaseException:
            permit.put_back()
            raise
        return permit

    def wait(self, kind: LimitClass, now: float, record: str | None = None) -> float:
        """Seconds before which a newcomer cannot pass; 0.0 when nothing but a line can be in its way."""
        return max(gate.wait(now) for gate in self.gates(kind, now, record))

    def gates(self, kind: LimitClass, now: float, record: str | None = None) -> tuple[Gate, ...]:
        """What a request passes, the narrow gate first (Rate limits)."""
        if record is None or kind != "diagnostic":
            return self._ways[kind]
        return (self._records.fetch(record, now), *self._ways[kind])

    def refuses_others(self, record: str | None, now: float, seconds: float) -> bool:
        """Note that a request was refused for `seconds`; whether other records are refused now, too."""
        return record is not None and self._records.refuses_others(record, now, seconds)

    def agree(self, limits: RateLimits) -> bool:
        """Take over what a client asks for; true, once, when another one has asked for something else.

        The first to ask gets its figures; of differing ones the lower of each class wins.
        """
        with self._lock:
            differs = self._asked_for and limits != self.limits
            self._resize(limits.lower_of(self.limits) if differs else limits)
            self._asked_for = True
            warn = differs and not self._warned
            self._warned = self._warned or differs
        return warn

    def lower(self, limits: RateLimits) -> None:
        """From now on the lower figure of each class."""
        with self._lock:
            self._resize(self.limits.lower_of(limits))

    def idle(self, now: float) -> bool:
        """Nobody waits and nothing counts: a new limiter would behave the same."""
        return all(gate.idle(now) for gate in (*self._classes.values(), *self._records.all()))

    def snapshot(self, now: float) -> dict[LimitClass, LimitSnapshot]:
        """Each class at this moment, for `client.limits_snapshot()`."""
        return {kind: gate.snapshot(now) for kind, gate in self._classes.items()}

    def forked(self) -> None:
        """In a forked child: begin anew. The parent's permits end at its gates, where nobody looks."""
        self._lock = threading.Lock()
        for gate in self._classes.values():
            gate.forked()
        self._records.forked()
        self._make_gates()

    def _make_gates(self) -> None:
        self._classes = {kind: make_gate(self.limits, kind) for kind in CLASSES}
        self._ways: dict[LimitClass, tuple[Gate, ...]] = {kind: (self._classes[kind],) for kind in CLASSES}
        self._ways["refund_availability"] += self._ways["read"]

    def _resize(self, limits: RateLimits) -> None:
        self.limits = limits
        for kind, gate in self._classes.items():
            gate.resize(limits.of(kind), limits.capacity(kind))
        self._records.resize(limits)


def make_gate(limits: RateLimits, kind: MeterClass) -> Gate:
    """A fresh gate for one class."""
    return Gate(Meter(limits.of(kind), limits.capacity(kind)))
