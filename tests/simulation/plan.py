"""What a seed says about its world, drawn before anything runs."""

from __future__ import annotations

import random
from decimal import Decimal
from functools import cache
from typing import Literal

import attrs

from payments_async.bulk._protocol.identifiers import body_hash
from payments_async.bulk._protocol.stop_rules import Account

HOUR, DAY = 3600.0, 86_400.0

HOME = Account("live", "https://service.example/v1", "key 1")

Stores = Literal["all", "definite", "2xx", "none"]
"""Which first answers the service replays (gap S)."""
Parallel = Literal["race", "409", "wait"]
"""What a request meets whose key is in flight."""
Second = Literal["", "own ledger", "shared ledger"]
Site = Literal["home", "rotated key", "other project", "other environment", "other address"]


@attrs.frozen
class Body:
    """A request body: what the service sees, and its exact bytes as a hash."""

    row: str
    amount: Decimal
    bad: bool = False
    """Whether the service refuses it, always."""
    encoding: int = 1
    """Which release of the client wrote it."""

    @property
    def content(self) -> str:
        """The hash of what it says."""
        return _content(self)

    @property
    def hash(self) -> str:
        """The hash of its bytes."""
        return _bytes(self)


@cache
def _content(body: Body) -> str:
    return body_hash(f"{body.row} {body.amount} {body.bad}".encode())


@cache
def _bytes(body: Body) -> str:
    return body_hash(f"{body.row} {body.amount} {body.bad} {body.encoding}".encode())


@attrs.frozen
class Foreign:
    """A payout that somebody else made under a row's reference."""

    row: int
    kind: Literal["same amount", "other amount", "unreadable proof"]
    age: float
    currency: str


@attrs.frozen
class Run:
    """One start of the program, and what happens before and during it."""

    gap: float
    """Seconds since the last one."""
    clock: float
    """By how much this session's wall clock is wrong."""
    jump: float
    """By how much it jumps after a few seconds."""
    site: Site
    second: Second
    crash: int | None
    """After how many callbacks the machine dies."""
    drain: int | None
    """After how many callbacks somebody asks it to stop."""
    delete: bool
    edit: bool
    cancel: bool
    retry: bool
    encoding: int


CALM = Run(HOUR, 0.0, 0.0, "home", "", None, None, False, False, False, False, 1)
"""A start at which nothing happens to the program."""


@attrs.frozen
class Plan:
    """A world."""

    bodies: tuple[Body, ...]
    concurrency: int
    stores: Stores
    parallel: Parallel
    checks_first: bool
    """Whether the service checks the body before the reference."""
    moody: bool
    """Whether it refuses good bodies at times, and takes them later."""
    dates: bool
    """Whether its answers carry a `Date`."""
    proofs: bool
    weather: float
    """How bad the network is, 0 to 1."""
    astray: bool
    """Whether something that is not the service answers more often than elsewhere."""
    outage: float
    """Seconds from the first creation on for which a load balancer answers 500 to all of them."""
    lag: float
    """Seconds until the list shows a payout, at most."""
    foreign: Foreign | None
    runs: tuple[Run, ...]

    @property
    def excused_row(self) -> str | None:
        """The row that may stay in doubt for ever: nobody can tell whose payout has its reference."""
        foreign = self.foreign
        is_unclear = foreign is not None and foreign.kind == "unreadable proof"
        return self.bodies[foreign.row].row if foreign is not None and is_unclear else None


def draw(seed: object) -> Plan:
    """The world of a seed."""
    chance = random.Random(f"{seed}:plan")
    toss, pick = chance.random, chance.choice
    sober = toss() < 0.3  # neither two ledgers nor a lost one: there a refusal may depend on the moment
    dates, proofs = toss() < 0.75, toss() < 0.85
    bodies = tuple(
        Body(f"r{number}", Decimal(1000 + number), bad=toss() < 0.12)
        for number in range(chance.randint(2, 5))
    )
    moody = sober and toss() < 0.8  # then doubt is what matters: bad weather, slow lists, forgetful keys
    return Plan(
        bodies=bodies,
        concurrency=chance.randint(2, 3),
        stores=pick(("2xx", "none") if moody else ("all", "all", "definite", "2xx", "none")),
        parallel=pick(("race", "409", "wait")),
        checks_first=toss() < (0.8 if moody else 0.5),
        moody=moody,
        dates=dates,
        proofs=proofs,
        weather=1.0 if moody else pick((0.0, 0.3, 1.0, 1.0)),
        astray=random.Random(f"{seed}:astray").random() < 0.15,
        outage=_outage(random.Random(f"{seed}:outage")),
        lag=pick((0.0, 850.0, 850.0) if moody else (0.0, 5.0, 850.0)),
        foreign=_foreign(chance, len(bodies)) if proofs and toss() < 0.25 else None,
        runs=tuple(_run(chance, sober=sober, dates=dates) for _ in range(chance.randint(1, 4))),
    )


def _outage(chance: random.Random) -> float:
    return chance.choice((30.0, 30.0, 1_500.0)) if chance.random() < 0.1 else 0.0


def _foreign(chance: random.Random, rows: int) -> Foreign:
    return Foreign(
        row=chance.randrange(rows),
        kind=chance.choice(("same amount", "same amount", "other amount", "unreadable proof")),
        age=chance.choice((60.0, 5 * DAY)),
        currency=chance.choice(("XOF", "XOF", "USD")),
    )


_ELSEWHERE: tuple[Site, ...] = ("rotated key", "other project", "other environment", "other address")


def _run(chance: random.Random, *, sober: bool, dates: bool) -> Run:
    toss, pick = chance.random, chance.choice
    gap = pick((1.0, 60.0, HOUR, 22.9 * HOUR, 26 * HOUR, 26 * HOUR))
    # Without the service's Date only a clock that went back behind its own past can be caught.
    wrong = (-5 * HOUR, -5 * HOUR, -40 * DAY, 2 * DAY, 2 * DAY) if dates else (-40 * DAY,)
    return Run(
        gap=gap,
        clock=pick(wrong) if toss() < 0.3 else 0.0,
        jump=pick(wrong) if toss() < 0.05 else 0.0,
        site=pick(_ELSEWHERE) if toss() < 0.1 else "home",
        second="" if toss() < 0.8 else "shared ledger" if sober or toss() < 0.5 else "own ledger",
        crash=chance.randint(5, 120) if toss() < 0.6 else None,
        drain=chance.randint(5, 120) if toss() < 0.1 else None,
        delete=not sober and toss() < 0.12,
        edit=toss() < 0.15,
        cancel=toss() < 0.1,
        retry=toss() < 0.3,
        encoding=2 if toss() < 0.05 else 1,
    )
