"""What a seed says about machines, their database and what befalls them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final, Literal, TypeVar

import attrs

from payments_async.bulk import Standbys

from ..plan import DAY, HOUR, Body, Plan, draw

T = TypeVar("T")
Kind = Literal[
    "pass",
    "stop",
    "suspend",
    "kill",
    "cut off",
    "all off",
    "outage",
    "restart",
    "fail over",
    "restore",
    "step",
    "cancel",
    "edit",
    "retry",
]
"""What may happen next. `pass`: nothing but time."""
_ANY: tuple[Kind, ...] = (
    *("stop",) * 5,
    *("suspend",) * 2,
    *("kill",) * 4,
    *("cut off",) * 3,
    *("restart",) * 2,
    *("fail over",) * 5,
    *("restore",) * 2,
    *("cancel",) * 3,
    *("edit",) * 3,
    *("retry",) * 4,
    *("pass",) * 2,
    *("outage", "all off", "step"),
)
_SECONDS: dict[Kind, tuple[float, ...]] = {
    "stop": (5.0, 20.0, 60.0, 400.0, 2 * HOUR),
    "suspend": (5.0, 20.0, 60.0, 400.0, 2 * HOUR),
    "cut off": (5.0, 20.0, 60.0, 300.0),
    "all off": (60.0, HOUR, 26 * HOUR),
    "outage": (20.0, 90.0, 1_500.0),
    "pass": (60.0, HOUR),
    "step": (20.0, 20.0, -30.0, DAY),
}
_OTHERWISE = (2.0, 30.0, 90.0, 600.0)
Script = tuple[tuple[Kind, tuple[float, ...], int], ...]
"""What happens one after the other: for how long, and after how many callbacks at most."""
_FALL: Final[Script] = (("fail over", (2.0,), 20),)
SCRIPTS: Final[Mapping[str, Script]] = {
    "asleep": (("stop", (20.0, 20.0, 60.0, 400.0), 40), ("pass", (60.0,), 40), ("kill", _OTHERWISE, 40)),
    "suspended": (("suspend", (20.0, 60.0, 400.0), 40), ("stop", (20.0, 60.0), 40)),
    "suspended in an outage": (("outage", (500.0,), 40), ("suspend", (400.0,), 10), ("pass", (60.0,), 40)),
    "cut off": (("cut off", (60.0, 300.0), 40), ("pass", (60.0,), 40), ("cut off", (60.0,), 40)),
    "asleep in a fail-over": (("stop", (5.0, 20.0, 60.0, 60.0, 400.0), 40), *_FALL, ("pass", (60.0,), 20)),
    "replaced before a fail-over": (
        ("stop", (30.0, 60.0), 40),
        ("fail over", (2.0,), 160),
        ("pass", (60.0,), 20),
    ),
    "asleep until a proof": (
        ("stop", (2_700.0,), 40),
        *(("cancel", (), 5),) * 2,
        *_FALL,
        ("pass", (2_110.0,), 20),
        ("kill", (900.0,), 150),
        ("pass", (HOUR,), 20),
    ),
    "cut off in a fail-over": (("cut off", (60.0,), 40), *_FALL, ("pass", (60.0,), 20)),
    "fail-over upon fail-over": (*_FALL, *_FALL, *_FALL),
    "old keys": (("all off", (26 * HOUR,), 40), ("fail over", (2.0,), 150), ("kill", (2.0,), 60)),
    "an old dump": (("all off", (26 * HOUR,), 20), ("restore", (2.0,), 150), ("pass", (60.0,), 40)),
    "lost corrections": (*(("edit", (), 5),) * 4, ("fail over", (2.0,), 60), ("pass", (60.0,), 40)),
    "lost cancellations": (*(("cancel", (), 10),) * 2, *_FALL, ("edit", (), 40), ("cancel", (), 40)),
    "lost retries": (("pass", (3 * HOUR,), 60), *(("retry", (), 20),) * 2, *_FALL, ("retry", (), 60)),
}
"""What is worst, in this order, where requests take long."""
_RARE: Final = ("replaced before a fail-over", "asleep until a proof")
"""Scripts that need several workers, a copy that lacks commits, and the time until so many callbacks."""


@attrs.frozen
class Event:
    """Something that happens, and when."""

    kind: Kind
    steps: int
    """After how many callbacks, or `wait` seconds, whichever is first."""
    wait: float
    worker: int
    row: int
    seconds: float
    """How long it lasts."""
    lag: int
    """How many commits a copy lacks."""
    ahead: float
    """Seconds by which a copy's clock is ahead: fewer than a lease's margin."""


@attrs.frozen
class Fleet:
    """A world of several machines."""

    world: Plan
    chunk_size: int
    workers: int
    slots: int
    queueing: float
    """How probable it is that a request waits before its first byte."""
    abandons: float
    """How probable it is that a request is carried out only when nobody waits for it any more."""
    standbys: Standbys
    hides_timeline: bool
    rate: float
    """How fast the database's clock goes."""
    attention: float
    """Seconds until the operator sees to a suspect ledger, at most."""
    events: tuple[Event, ...]

    @property
    def steps_clock(self) -> bool:
        """Whether the database's clock is set while leases are held."""
        return any(event.kind == "step" for event in self.events)


def draw_fleet(seed: object, script: str = "") -> Fleet:
    """The machines of a seed; what befalls them is drawn, too, unless it is one of the scripts."""
    chance = random.Random(f"{seed}:machines")
    toss, pick = chance.random, chance.choice
    is_worst, is_rare = toss() < 0.7 or script != "", script in _RARE
    waits = (600.0,) if is_rare else (3.0, 30.0, 600.0)
    world = _world(seed, chance, is_worst=is_worst)
    events = SCRIPTS[script or pick(tuple(SCRIPTS))] if is_worst else _any(chance)
    return Fleet(
        world=world,
        chunk_size=pick((1, 2, 3, 4)),
        workers=3 if is_rare else pick((1, 2, 2, 3, 3)),
        slots=chance.randint(1, 2),
        queueing=0.7 if is_worst and not is_rare else pick((0.1, 0.5)),
        abandons=pick((0.0, 0.3)),
        standbys=pick((Standbys.ASYNCHRONOUS, Standbys.ASYNCHRONOUS, *(() if is_rare else Standbys))),
        hides_timeline=toss() < 0.15,
        rate=pick((1.0, 0.99, 1.01)),
        attention=pick((1.0, 60.0, 20 * 60.0) if is_rare or not is_worst else (1.0, 1.0, 60.0)),
        events=tuple(_event(waits, *each, chance, len(world.bodies)) for each in events),
    )


def _world(seed: object, chance: random.Random, *, is_worst: bool) -> Plan:
    """The service of a world with one machine; here it may be moody whatever happens to the ledger."""
    drawn = draw(f"{seed}:machines")
    pick: Callable[[tuple[T, ...]], T] = chance.choice
    more = range(len(drawn.bodies), len(drawn.bodies) + 3)
    bodies = (*drawn.bodies, *(Body(f"r{number}", Decimal(1000 + number)) for number in more))
    busy = {"concurrency": pick((1, 1, 2)), "outage": pick((0.0, 0.0, 0.0, 30.0))}
    world = attrs.evolve(drawn, bodies=bodies, runs=(), moody=False, **busy)
    if chance.random() < (0.3 if is_worst else 0.7):
        return attrs.evolve(world, weather=pick((0.0, 0.3, 1.0)), lag=pick((0.0, 5.0, 850.0)))
    worst = {"stores": pick(("none", "none", "2xx")), "lag": pick((850.0, 850.0, 0.0)), "moody": True}
    return attrs.evolve(world, checks_first=chance.random() < 0.9, weather=pick((0.5, 1.0)), **worst)


def _any(chance: random.Random) -> Script:
    kinds = [chance.choice(_ANY) for _ in range(chance.randint(2, 7))]
    return tuple((kind, _SECONDS.get(kind, _OTHERWISE), 60) for kind in kinds)


def _event(
    waits: tuple[float, ...],
    kind: Kind,
    seconds: tuple[float, ...],
    most: int,
    chance: random.Random,
    rows: int,
) -> Event:
    return Event(
        kind=kind,
        steps=chance.randint(3, most),
        wait=chance.choice(waits),
        worker=chance.randrange(3),
        row=chance.randrange(rows),
        seconds=chance.choice(seconds or (0.0,)),
        ahead=chance.choice((0.0, 3.0, -3.0)),
        lag=chance.choice((0, 1, 2, 3, 5, 8)) if kind == "fail over" else chance.randint(2, 30),
    )
