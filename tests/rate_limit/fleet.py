"""A fleet that shares one limit, in virtual time: processes, a store, and a service that counts.

Every process has callers who want to send without pause, and reserves with `_rate_limit/compare_and_set.py`.
Messages to the store take a while and may be lost; the service counts a request at any moment between its
sending and its answer. `Faults` happen at random moments.
"""

from __future__ import annotations

import heapq
import random
import types
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from functools import partial
from typing import Final

import attrs

from payments_async._rate_limit import store
from payments_async._rate_limit.compare_and_set import CompareAndSetStore, RowRead, RowWrite
from payments_async._rate_limit.store import VALID, LimitFigures, LimitRow, PermitRequest, Reservation, State

PATIENCE: Final = 1.0
"""Seconds after which a process gives up a message to the store."""
ATTEMPT: Final = 30.0
"""Seconds after which a process gives up a request."""
EPOCH: Final = 1_800_000_000.0

QUIET: Final = 10.0
"""Seconds at the beginning of a run that are not judged by what was used."""

ROW: Final = LimitRow("https://api.example/v1", "3f9a", "write")
_RESERVE: Final = store.reserve


@attrs.frozen(kw_only=True)
class Faults:
    """How often something happens, in seconds on average; 0 for never."""

    kill: float = 0.0
    """A process dies, and another takes its place."""
    stop: float = 0.0
    """A process stands still, for a minute at most."""
    emptied: float = 0.0
    """The store loses the row."""
    stale: float = 0.0
    """The store goes back to what it knew up to five seconds ago."""
    forward: float = 0.0
    """The store's clock is set 45 seconds forward; not twice in a minute."""
    back: float = 0.0
    """The store's clock is set an hour back."""
    slow: float = 0.0
    """The service takes eight times as long for five seconds; not twice in ten seconds."""
    lost: float = 0.0
    """Share of the messages to the store whose answer never comes."""


@attrs.define
class PermitGroup:
    """Permits of one reservation."""

    count: int
    start: float
    end: float


class Connection(CompareAndSetStore):
    """A process's connection: `send` on one of its calls returns the next message, and takes the answer."""

    @types.coroutine
    def exchange(self, row: LimitRow, write: RowWrite) -> Generator[RowWrite, RowRead, RowRead]:  # type: ignore[override] # an awaitable all the same
        """Have the message sent."""
        return (yield write)

    async def aclose(self) -> None:
        """Nothing is open."""


Call = Coroutine[RowWrite, RowRead | None, Reservation]


class Process:
    """A process with callers, and its permits."""

    def __init__(
        self, fleet: Fleet, name: str, callers: int, *, interactive: bool = True, rest: float = 0.0
    ) -> None:
        """`rest`: seconds on average between a caller's answer and its next request."""
        self.fleet = fleet
        self.name = name
        self.waiting = callers
        self.interactive = interactive
        self.rest = rest
        self.waits: list[float] = []
        """Seconds that the callers who rest waited for their permits."""
        self._since: deque[float] = deque([0.0] * callers)
        self.under_way = 0
        self.groups: list[PermitGroup] = []
        self.asking: Call | None = None
        """The reservation that is under way."""
        self._asked = 0.0
        self._messages = 0
        self._store = Connection("the store")
        self.ask_at = 0.0
        self.last: tuple[Reservation | None, float] = (None, 0.0)
        self.dead = False
        self.stopped_until = 0.0
        self.sent = 0

    def held(self, now: float) -> int:
        """Permits reserved, unused or under way."""
        self.groups = [group for group in self.groups if group.count and group.end > now]
        return self.under_way + sum(group.count for group in self.groups)

    def act(self) -> None:
        """Use the permits that have started; ask for more when none is still to start."""
        now = self.fleet.now
        if self.dead or self._stands_still():
            return
        held = self.held(now)
        for group in self.groups:
            while group.start <= now and group.count and self.waiting:
                group.count -= 1
                self.waiting -= 1
                self.under_way += 1
                self.sent += 1
                self.waits.append(now - self._since.popleft())
                self.fleet.request(self)
        if (
            self.waiting
            and not self.asking
            and self.ask_at <= now
            and not any(group.start > now for group in self.groups)
        ):
            self._ask(held)

    def _stands_still(self) -> bool:
        if self.stopped_until > self.fleet.now:
            self.fleet.at(self.stopped_until, self.act)
            return True
        return False

    def _ask(self, held: int) -> None:
        self._asked = asked = self.fleet.now
        last, then = self.last
        request = PermitRequest(
            worker=self.name,
            limit=self.fleet.limit,
            wanted=self.waiting,
            held=held,
            lifetime=ATTEMPT + 5.0,
            interactive=self.interactive,
            last=last,
            ago=asked - then,
        )
        self.asking = self._store.reserve(ROW, request)
        self._go_on(self.asking)

    def _go_on(self, call: Call, read: RowRead | None = None) -> None:
        """Send the next message of a reservation, or take the answer; once the process runs again."""
        fleet = self.fleet
        if self.stopped_until > fleet.now:
            fleet.at(self.stopped_until, partial(self._go_on, call, read))
        elif self.asking is call and not self.dead:
            try:
                write = call.send(read)
            except StopIteration as ended:
                self._answered(ended.value)
            except store.StoreUnavailable:
                self._give_up(call, self._messages)
            else:
                self._messages += 1
                fleet.round_trip(write, partial(self._go_on, call))
                fleet.at(fleet.now + PATIENCE, partial(self._give_up, call, self._messages))

    def _give_up(self, call: Call, message: int) -> None:
        if self.stopped_until > self.fleet.now:
            self.fleet.at(self.stopped_until, partial(self._give_up, call, message))
        elif self.asking is call and self._messages == message:
            call.close()
            self.asking = None
            self.act()

    def _answered(self, answer: Reservation) -> None:
        now, asked = self.fleet.now, self._asked
        self.asking = None
        self.last = answer, asked + answer.waited
        start, end = now + answer.wait - answer.late, asked + answer.wait + VALID
        if answer.granted:
            self.groups.append(PermitGroup(answer.granted, start, end))
        else:
            self.ask_at = start
        self.fleet.at(start, self.act)

    def ended(self) -> None:
        """A request was answered."""
        if self.stopped_until > self.fleet.now:
            self.fleet.at(self.stopped_until, self.ended)
            return
        self.under_way -= 1
        rest = self.fleet.chance.expovariate(1.0 / self.rest) if self.rest else 0.0
        self.fleet.at(self.fleet.now + rest, self._call)

    def _call(self) -> None:
        self.waiting += 1
        self._since.append(self.fleet.now)
        self.act()


class Fleet:
    """The processes, the store's row and the service's count."""

    def __init__(
        self,
        seed: int,
        *,
        limit: int = 60_000,
        processes: int = 4,
        callers: int = 256,
        faults: Faults = Faults(),
        delay: float = 0.0006,
    ) -> None:
        self.chance = random.Random(seed)
        self.limit = limit
        self.now = 0.0
        self.counted: list[float] = []
        self.round_trips = 0
        self.happened: Counter[str] = Counter()
        self.row = RowRead("", "", {}, 0.0)
        self._delay_of_network = delay / 2
        self._faults = faults
        self._skew = EPOCH
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._made = 0
        self._slow_until = 0.0
        self._copies: list[tuple[float, RowRead]] = []
        self._callers = callers
        self.processes = [self.start(self._callers) for _ in range(processes)]
        for name in ("kill", "stop", "emptied", "stale", "forward", "back", "slow"):
            self._plan(name)

    def run(self, seconds: float) -> None:
        """Go on until so many seconds have passed since the beginning."""
        events = self._events
        while events and events[0][0] <= seconds:
            self.now, _, event = heapq.heappop(events)
            event()
        self.now = seconds

    def at(self, when: float, event: Callable[[], object]) -> None:
        """Let something happen at a time, or at once when that is past."""
        self._made += 1
        heapq.heappush(self._events, (max(when, self.now), self._made, event))

    def request(self, process: Process) -> None:
        """Send one request."""
        took = self.chance.uniform(0.03, 0.12) + self.chance.expovariate(20.0)
        if self.now < self._slow_until:
            took *= 8.0
        self.counted.append(self.now + took * self.chance.random())
        self.at(self.now + took, process.ended)

    def round_trip(self, write: RowWrite, answered: Callable[[RowRead], object]) -> None:
        """Send a message to the store."""
        self.round_trips += 1
        there, back = (self._delay() for _ in range(2))
        lost = self.chance.random() < self._faults.lost

        def arrived() -> None:
            self.row = after(self.row, write, self.now + self._skew)
            self._copies = [copy for copy in self._copies if copy[0] > self.now - 5.0]
            self._copies.append((self.now, self.row))
            if not lost:
                self.at(self.now + back, partial(answered, self.row))

        self.at(self.now + there, arrived)

    def _delay(self) -> float:
        spike = self.chance.uniform(0.1, 0.6) if self.chance.random() < 0.005 else 0.0
        return self._delay_of_network + self.chance.expovariate(1000.0) + spike

    def start(self, callers: int, *, interactive: bool = True, rest: float = 0.0) -> Process:
        """Let another process begin within a second."""
        self._made += 1
        process = Process(self, f"p{self._made}", callers, interactive=interactive, rest=rest)
        self.at(self.now + self.chance.random(), process.act)
        return process

    def _plan(self, name: str, rest: float = 0.0) -> None:
        """Let a fault happen at some time."""
        if every := getattr(self._faults, name):
            self.at(self.now + rest + self.chance.expovariate(1.0 / every), lambda: self._happen(name))

    def _happen(self, name: str) -> None:
        self.happened[name] += 1
        getattr(self, f"_{name}")()
        self._plan(name, {"forward": 60.0, "slow": 10.0}.get(name, 0.0))

    def _kill(self) -> None:
        place = self.chance.randrange(len(self.processes))
        self.processes[place].dead = True
        self.processes[place] = self.start(self._callers)

    def _stop(self) -> None:
        self.chance.choice(self.processes).stopped_until = self.now + self.chance.choice((0.5, 5.0, 60.0))

    def _emptied(self) -> None:
        self.row = RowRead("", "", {}, 0.0)

    def _stale(self) -> None:
        if self._copies:
            self.row = self.chance.choice(self._copies)[1]

    def _forward(self) -> None:
        self._skew += 45.0

    def _back(self) -> None:
        self._skew -= 3600.0

    def _slow(self) -> None:
        self._slow_until = self.now + 5.0

    @property
    def fullest(self) -> float:
        """The fullest minute, as a part of the limit."""
        return fullest_minute(self.counted) / self.limit

    @property
    def used(self) -> float:
        """The part of the limit that was used, but for the beginning."""
        counted = sum(QUIET <= moment < self.now for moment in self.counted)
        return counted / (self.limit * (self.now - QUIET) / 60.0)

    @property
    def least_share(self) -> float:
        """The requests of the process with the fewest, as a part of the average."""
        sent = [process.sent for process in self.processes]
        return min(sent) * len(sent) / sum(sent)


def after(row: RowRead, write: RowWrite, now: float) -> RowRead:
    """What the statement and the script do: the row after a message."""
    if not row.version or row.version != write.based_on:
        requests = {**row.requests, write.sender: (now, write.request)}
        return RowRead(row.version or write.version, row.content, requests, now)
    waiting = {sender: request for sender, request in row.requests.items() if sender not in write.served}
    return RowRead(write.version, write.content, waiting, now)


def full_when_new(state: State | None, request: PermitRequest, now: float) -> tuple[State, Reservation]:
    """The rule without `new_state_is_empty`: a lost row begins with a whole burst."""
    return _RESERVE(state or State(born=now, at=now, tail=now - 60.0, since=now), request, now)


def leaves_no_room(figures: LimitFigures, peak: int) -> float:
    """The rate without `rate_leaves_room`."""
    return figures.limit / store.WINDOW


def scheduled(seed: int) -> Fleet:
    """A fleet and its faults by a seed, run for two to three minutes.

    Where a burst has fewer permits than there are processes, the store has no faults (see `store`).
    """
    chance = random.Random(seed)

    def often(*seconds: float) -> float:
        return chance.choice((0.0, *seconds))

    limit, processes = chance.choice((60, 100, 600, 2_400, 6_000, 6_000)), chance.choice((1, 2, 4, 16))
    process_faults = {"kill": often(5, 20), "stop": often(10, 30), "slow": often(15, 40)}
    store_faults = {
        "emptied": often(10, 30),
        "stale": often(60),
        "forward": often(60),
        "back": often(20, 60),
        "lost": often(0.01, 0.05),
    }
    faults = Faults(**process_faults, **(store_faults if limit >= 600 else {}))
    callers = chance.choice((16, 64, 256))
    fleet = Fleet(seed, limit=limit, processes=processes, callers=callers, faults=faults)
    fleet.run(chance.uniform(120.0, 180.0))
    return fleet


def fullest_minute(moments: Sequence[float]) -> int:
    """The most requests in any sixty seconds, wherever they begin: an aligned minute is one of them."""
    most = oldest = 0
    moments = sorted(moments)
    for newest, moment in enumerate(moments):
        while moments[oldest] <= moment - 60.0:
            oldest += 1
        most = max(most, newest - oldest + 1)
    return most
