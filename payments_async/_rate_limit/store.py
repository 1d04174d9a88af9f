"""The rate limit that a fleet of processes shares: its rule as a pure state machine.

A store keeps one row for each service address, key fingerprint and limit class. A process reserves permits:
"your n start in w seconds", first come, first served. `reserve` is the rule, and `PERMITS` what stores carry
out on their rows.

Why no minute holds more than its limit, wherever it begins: the requests that the service counts in it had a
permit that was alive at its start (at most `peak`), or one that began within it (at most `60 * rate`, and a
burst that was saved up). `rate = (limit - 2 * burst - peak) / 60` keeps a second burst in reserve: it covers
permits that the store granted before it lost its state, which are at most about one burst.

* `peak`: the most permits reserved or under way in the last one to two minutes. Each process says with every
  reservation how many it holds; the store adds what it grants. A process that died counts until its last
  request has ended for certain. No grant takes the sum above a fifth of the limit (`cap`).
* A new state starts in debt: it counts as reserved what may have been reserved before, a burst or a little
  more. The same happens when a process proves the stored state wrong: it has seen a newer row, or the store's
  clock was set. Of the old state only the peak is kept, because the processes report it.

Where there are more processes than a burst has permits (a limit of 60 has 1), each still holds one. Two
faults of the store within a minute may then lead to a 429.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import attrs

from .limits import LimitClass

WINDOW: Final = 60.0
"""Seconds over which the service counts (`docs/interface.md`, Rate limits)."""
VALID: Final = 1.0
"""Seconds for which a permit may be used, from its start."""
ACTIVE: Final = 1.0
"""Seconds after its last reservation for which a process gets its share, and interactive calls go first."""
CLOCK_SLACK: Final = 0.1
"""Seconds by which the store's clock may go back without being taken for a clock that was set."""
CLOCK_STEP: Final = 1.0
"""Seconds by which the store's clock and a process's may differ from one reservation to its next."""
ASK_AGAIN: Final = 0.5
"""Seconds to the next reservation while the whole fleet holds as many permits as it may."""
LET_BY: Final = 0.1
"""Least seconds to the next reservation of bulk calls that were refused for the sake of interactive ones."""
PROBE_HINT: Final = 1.0
"""The most seconds to the next reservation while a probe is under way."""
FORGOTTEN: Final = 64
"""Most permits besides a burst that a new state owes: each process may have reserved one more."""
LEAST: Final = 6
"""Least requests a minute that are shared: of fewer, the room would take more than half."""
PATIENCE: Final = 1.0
"""Seconds for a round trip to a store, after which the connection is given up."""


RowKind = LimitClass | Literal["guard", "refusals"]


class StoreUnavailable(Exception):
    """The store cannot be reached, or does not answer in time. The message names no password."""


@attrs.frozen
class LimitRow:
    """One row of a store: whose, and which rule changes it. The key itself is never part of it."""

    address: str
    """Normalised address of the service."""
    fingerprint: str
    """Fingerprint of the secret key."""
    kind: RowKind

    @property
    def is_durable(self) -> bool:
        """True if the row must outlive a restart of its store: money was counted in it."""
        return self.kind in ("guard", "refusals")


@attrs.frozen(kw_only=True)
class Reservation:
    """A store's answer."""

    granted: int
    """Permits, often fewer than wanted."""
    wait: float
    """Seconds from `at` until they start; with none granted, until asking again is of use."""
    probe: float = 0.0
    """Not 0.0: the permit is the one probe of the closing with this number."""
    closed_for: float = 0.0
    """Seconds from `at` until the row may be tried again after a 429."""
    pause: float = 0.0
    """Seconds of the last closing, where it followed a mistaken `Retry-After`; else 0.0."""
    peak: int = 0
    """Most permits reserved or under way in the last one to two minutes."""
    at: float = 0.0
    """When the reservation was made, on the store's clock."""
    born: float = 0.0
    """When the state of the row began, which identifies it."""
    waited: float = 0.0
    """Seconds from the first message of the request to `at`, on the store's clock."""
    late: float = 0.0
    """Seconds from `at` to the message that this process has the answer from, on the store's clock."""


@attrs.frozen(kw_only=True)
class PermitRequest:
    """What a process asks for, and what it says about itself."""

    worker: str
    """Random name of the process; a forked child has another."""
    limit: int
    """Requests a minute."""
    wanted: int
    """Permits; 0 only reports."""
    held: int
    """Permits of this process that are reserved, unused or under way, without those wanted now."""
    lifetime: float
    """Seconds after which a request begun now has ended for certain: the attempt's timeout and five."""
    interactive: bool = True
    """Whether an interactive call waits; bulk calls come after those of the whole fleet."""
    last: Reservation | None = None
    """The row's last answer to this process."""
    ago: float = 0.0
    """Seconds on this process's clock from `last.at`, or up to a round trip earlier, to now."""


@attrs.frozen
class LimitFigures:
    """What follows from a limit alone."""

    limit: int
    burst: int
    """Most permits saved up: a quarter of a second's worth, at least 1. About as many are reserved ahead."""
    cap: int
    """Most permits reserved or under way in the whole fleet: a fifth of the limit, at least 1."""

    @property
    def half(self) -> int:
        """What bulk calls leave of a burst while interactive calls ask."""
        return (self.burst + 1) // 2

    def rate(self, peak: int) -> float:
        """Permits a second: at least half of the limit."""
        return (self.limit - 2 * self.burst - min(peak, self.cap)) / WINDOW


def figures_of(limit: int) -> LimitFigures:
    """The figures of `limit` requests a minute."""
    return LimitFigures(limit, burst=max(1, limit // 240), cap=max(1, limit // 5))


@attrs.frozen
class PermitHolder:
    """A process, as the store knows it from its last reservation."""

    alive: int
    """Permits that it may hold or have under way."""
    until: float
    """When the last of them has ended for certain."""
    seen: float


@attrs.frozen(kw_only=True)
class State:
    """One row. Times are seconds on the store's clock."""

    born: float
    at: float
    """Time of the last change."""
    tail: float
    """When all permits reserved so far have started; what lies behind is saved up."""
    since: float
    peak: int = 0
    """Most permits alive since `since`."""
    peak_before: int = 0
    """Most permits alive in the minute before `since`."""
    interactive: float = 0.0
    """When an interactive call last asked."""
    shut: float = 0.0
    """Number of the closing in force (its time); 0.0 when open."""
    opens: float = 0.0
    probe_until: float = 0.0
    pause: float = 0.0
    workers: Mapping[str, PermitHolder] = attrs.field(factory=dict)


def reserve(state: State | None, request: PermitRequest, now: float) -> tuple[State, Reservation]:
    """The row after a reservation at `now`, and the answer; `state` is None when there is no row."""
    if state is None or _impossible(state, now) or _knows_better(request, state, now):
        state, new = _blank(now), True
    else:
        now, new = max(now, state.at), False
    figures = figures_of(request.limit)
    living = {name: worker for name, worker in state.workers.items() if worker.until >= now}
    others = {name: worker for name, worker in living.items() if name != request.worker}
    yields = not request.interactive and now - state.interactive < ACTIVE
    blocked = _blocked_for(state, now)
    offered = 0 if blocked else _offer(figures, request, living, now, yields=yields, probes=bool(state.shut))

    alive = sum(worker.alive for worker in others.values()) + request.held
    state = _with_peak(state, now, max(alive + offered, _heard(request, state)))
    peak = max(state.peak, state.peak_before)
    rate = figures.rate(peak)
    owed = max(figures.burst, min(peak, figures.burst + FORGOTTEN))
    tail = now + owed / rate if new else max(state.tail, now - figures.burst / rate)

    granted = 0 if yields and tail > now else offered
    tail += granted / rate
    start = max(now, tail + (figures.half / rate if yields else 0.0))
    wait = start - now if granted else blocked or (max(tail - now, LET_BY) if offered else ASK_AGAIN)
    ends = now + wait + request.lifetime
    held = request.held + granted
    probes = granted > 0 and state.shut != 0.0
    state = attrs.evolve(
        state,
        at=now,
        tail=tail,
        interactive=now if request.interactive and request.wanted else state.interactive,
        probe_until=ends if probes else state.probe_until,
        workers={**others, request.worker: PermitHolder(held, ends if held else now + ACTIVE, now)},
    )
    return state, Reservation(
        granted=granted,
        wait=wait,
        probe=state.shut if probes else 0.0,
        closed_for=max(state.opens - now, 0.0) if state.shut else 0.0,
        pause=state.pause,
        peak=peak,
        at=now,
        born=state.born,
    )


def close_after_429(state: State, seconds: float, pause: float, now: float) -> State:
    """The row after a 429: a closing in force is extended, never shortened."""
    opens = max(state.opens if state.shut else 0.0, now + seconds)
    return attrs.evolve(state, shut=now, opens=opens, probe_until=0.0, pause=pause)


def end_probe(state: State, probe: float, *, answered: bool) -> State:
    """The row after the probe of its closing; another closing's probe changes nothing."""
    if state.shut != probe:
        return state
    return attrs.evolve(state, shut=0.0 if answered else state.shut, probe_until=0.0)


class PermitRule:
    """The rule of permits, as a store carries it out."""

    def read(self, values: Any) -> State | None:
        """The state of a row."""
        if values is None:
            return None
        workers = {name: PermitHolder(**worker) for name, worker in values["workers"].items()}
        return State(**{**values, "workers": workers})

    def write(self, state: State | None) -> Any:
        """What the row keeps."""
        return None if state is None else attrs.asdict(state)

    def change(
        self, state: State | None, kind: str, values: dict[str, Any], now: float, waited: float
    ) -> tuple[State | None, Any]:
        """The state after a request that came `waited` seconds ago, and its answer."""
        if kind == "reserve":
            last = None if values["last"] is None else Reservation(**values["last"])
            request = PermitRequest(**{**values, "last": last, "ago": values["ago"] + waited})
            state, answer = reserve(state, request, now)
            return state, attrs.asdict(attrs.evolve(answer, waited=waited))
        if state is None:  # lost since: it stays open
            return None, None
        if kind == "close_after_429":
            return close_after_429(state, **values, now=now), None
        return end_probe(state, **values), None


PERMITS: Final = PermitRule()


def _impossible(state: State, now: float) -> bool:
    return state.at - now > CLOCK_SLACK


def _knows_better(request: PermitRequest, state: State, now: float) -> bool:
    """Whether the process saw a newer state, or the store's clock was set since then.

    What it saw on a clock that was set back later says nothing.
    """
    last = request.last
    if last is None or last.born < state.born or last.at - now > CLOCK_SLACK:
        return False
    return (state.born, state.at) < (last.born, last.at) or abs(now - last.at - request.ago) > CLOCK_STEP


def _heard(request: PermitRequest, state: State) -> int:
    """The peak of the state before this one, as far as the process knows."""
    last = request.last
    return last.peak if last is not None and last.born != state.born and request.ago < WINDOW else 0


def _blank(now: float) -> State:
    return State(born=now, at=now, tail=now, since=now)


def _blocked_for(state: State, now: float) -> float:
    """Seconds for which a closing grants nothing; 0.0 when it grants a probe, or nothing is closed."""
    if not state.shut:
        return 0.0
    if now < state.opens:
        return state.opens - now
    return max(min(state.probe_until - now, PROBE_HINT), 0.0)


def _offer(
    figures: LimitFigures,
    request: PermitRequest,
    living: Mapping[str, PermitHolder],
    now: float,
    *,
    yields: bool,
    probes: bool,
) -> int:
    """Permits that this process may have: its share of a burst, within the fleet's cap.

    One share stays free, so that a process alone asks before its permits are used up. Permits that this
    process no longer holds still count against its own request: else it would always take them back itself,
    since it learns of them first.
    """
    active = {name for name, worker in living.items() if now - worker.seen < ACTIVE} | {request.worker}
    ahead = figures.half if yields else figures.burst
    share = 1 if probes else (ahead + len(active)) // (len(active) + 1)
    alive = {name: worker.alive for name, worker in living.items()}
    alive[request.worker] = max(request.held, alive.get(request.worker, 0))
    return max(0, min(request.wanted, share, figures.cap - sum(alive.values())))


def _with_peak(state: State, now: float, alive: int) -> State:
    """Count the permits alive; a new minute of counting begins when the last one is over."""
    if now - state.since < WINDOW:
        return attrs.evolve(state, peak=max(state.peak, alive))
    before = state.peak if now - state.since < 2 * WINDOW else 0
    return attrs.evolve(state, since=now, peak=alive, peak_before=before)
