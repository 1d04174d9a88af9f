"""Permits that a store grants to this process, for one class, as a state machine.

To callers it is a token bucket that also needs a permit for each grant. It keeps that bucket's counts, and
its closing after a 429. The store client asks for what `planned_request` says, and passes the answer on
(`take_answer`).

A reservation is a group: its permits start together, and are dropped a second later. While a group has not
started no other is asked for, except for interactive calls after a bulk group. A request also asks ahead, for
about as many permits as the present traffic uses in a moment, so that most calls find one at hand.

In an outage of the store (`lose`) interactive calls take turns at this process's part of the limit, if the
number of processes is known; bulk calls wait. The part still bounds the first seconds after the outage, until
all processes have noticed its end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from .bucket import NONE, ORDINARY, TokenBucket
from .limits import LimitSnapshot, Priority
from .store import VALID, PermitRequest, Reservation
from .waiters import ASKED, NEVER

AHEAD: Final = 0.3
"""Seconds of the present use for which permits are at hand after a reservation."""
LOW: Final = 0.1
"""Seconds of the present use for which permits are left when more are asked for."""
SPAN: Final = 0.25
"""Seconds over which the use is measured."""
LAG: Final = 0.25
"""Seconds in which a store usually answers."""
GIVEN_UP: Final = 5.0
"""Seconds for which a request that was given up may still reach the service."""
FALLBACK: Final = 0.97
"""Part of the limit that the fleet uses without its store; the rest covers what was under way before."""
HAND_OVER: Final = 3.0
"""Seconds after an outage in which the part still bounds a process: by then all others have noticed, too."""
SMALL: Final = 6_000
"""Below this limit, a process also reports permits that it no longer holds: the fleet may hold only few."""
REPORT: Final = 2.0
"""Seconds after a reservation until a process that needs no more reports so."""
RETRY: Final = 1.0
"""Seconds between tries of a store that cannot be reached."""
LOCAL: Final = 1 << 40
"""Bit of a grant that was given without the store."""


@attrs.define(eq=False)
class PermitGroup:
    """Permits of one reservation."""

    starts: float
    ends: float
    left: int
    probe: float
    """`Reservation.probe`."""


@attrs.frozen
class PlannedRequest:
    """What to ask the store for, and when."""

    due: float
    wanted: int
    interactive: bool


class PermitBucket(TokenBucket):
    """Grants the permits of one class. Calls `call` when the store client is needed before it planned."""

    __slots__ = (
        "_at_hand",
        "_call",
        "_groups",
        "_interactive",
        "_lingering",
        "_local",
        "_low",
        "_measured",
        "_next",
        "_paced_until",
        "_probe",
        "_rate",
        "_taken",
        "_told",
        "_under_way",
        "closing",
        "ended_probe",
        "is_lost",
        "last",
        "planned",
        "workers",
    )

    def __init__(
        self,
        limit: int,
        capacity: int,
        call: Callable[[], object],
        *,
        workers: int | None = None,
        lingering: tuple[float, int] = (ASKED, 0),
    ) -> None:
        """`workers`: processes of the fleet, if known. `lingering`: until when so many requests may count."""
        self._call = call
        self.workers = workers
        self._local: TokenBucket | None = None
        super().__init__(limit, capacity)
        self._groups: list[PermitGroup] = []
        self._at_hand = 0  # permits in all groups
        self._under_way = 0
        self._lingering = [lingering]
        self._next = {True: ASKED, False: ASKED}  # earliest times to ask, for interactive calls and for bulk
        self._interactive = True  # the kind of the last reservation
        self._measured, self._taken, self._rate, self._low = ASKED, 0, 0.0, 0
        self._told = 0  # permits of this process, by what the store knows
        self._probe = NONE, 0.0  # the grant of a probe, and its number in the store
        self.is_lost, self._paced_until = False, ASKED
        self.planned: float = NEVER
        """When the store client will look again; `ASKED` while it is at it."""
        self.last: tuple[Reservation | None, float] = (None, 0.0)
        """The store's last answer, and the time of its `at`, or up to a round trip earlier."""
        self.closing: tuple[float, float] | None = None
        """A closing that the store has not been told: when it opens, `close_after_429`'s pause."""
        self.ended_probe: tuple[float, bool] | None = None
        """A probe's end that the store has not been told: its number, whether it was answered."""

    def resize(self, limit: int, capacity: int) -> None:
        """Change the limits; requests that count already still count."""
        super().resize(limit, capacity)
        if self.workers is not None:
            part = max(int(FALLBACK * limit / self.workers), 1)
            if self._local is None:
                self._local = TokenBucket(part, max(part // 240, 1))
            else:
                self._local.resize(part, max(part // 240, 1))

    @property
    def part(self) -> int | None:
        """This process's part of the limit without the store; None without a number of processes."""
        return None if self._local is None else self._local.limit

    # What callers use

    def take(self, now: float, priority: Priority | None = None) -> int:
        """Take a grant, or `NONE`. Without a priority the caller will try again with one, in the queue."""
        if self.is_lost:
            return self._take_without_store(now, priority)
        group = self._started(now)
        if group is None:
            if priority is not None:
                self._want(self._next[priority == "interactive"])
            return NONE
        if now < self._paced_until and not self._pace(now):
            return NONE
        grant = super().take(now)
        if not grant:
            return NONE
        group.left -= 1
        self._at_hand -= 1
        self._under_way += 1
        self._taken += 1
        if group.probe:
            self._probe = grant, group.probe
        if self._at_hand < self._low:
            self._want(self._next[self._interactive])
        return grant

    def settle(self, grant: int, now: float, *, answered: bool = True) -> None:
        """End a grant: the request was answered, or given up (`answered` false)."""
        self._under_way -= 1
        if not answered:
            self._lingering.append((now + GIVEN_UP, 1))
        if grant & LOCAL and self._local is not None:
            self._local.settle(grant ^ LOCAL, now, answered=answered)
        else:
            super().settle(grant, now, answered=answered)
            self._end_probe(grant, answered=answered)

    def refuse(self, grant: int, now: float, seconds: float, *, mistaken: bool = False) -> float:
        """End a grant after a 429: close for `seconds`, and have the store close for every process."""
        if grant & LOCAL and self._local is not None:
            self._under_way -= 1
            seconds = self._local.refuse(grant ^ LOCAL, now, seconds, mistaken=mistaken)
        else:
            if grant == self._probe[0]:
                self._probe = NONE, 0.0  # the closing ends it
            seconds = super().refuse(grant, now, seconds, mistaken=mistaken)
        self.closing = max(self.closing or (ASKED, 0.0), (now + seconds, seconds if mistaken else 0.0))
        self._want(ASKED)
        return seconds

    def put_back(self, grant: int) -> None:
        """Return the grant of a request that was never sent. Its permit is not used again."""
        self._under_way -= 1
        if grant & LOCAL and self._local is not None:
            self._local.put_back(grant ^ LOCAL)
        else:
            super().put_back(grant)
            self._end_probe(grant, answered=False)

    def close(self, now: float, seconds: float) -> None:
        """Grant nothing for `seconds`, and drop the permits at hand."""
        self._drop()
        super().close(now, seconds)

    def is_probe(self, grant: int) -> bool:
        """Return whether a grant is a closing's probe."""
        return grant & ~LOCAL > ORDINARY

    def wait(self, now: float, priority: Priority = "interactive") -> float:
        """Seconds until `take` may grant."""
        interactive = priority == "interactive"
        if self.is_lost:
            return self._local.wait(now) if self._local is not None and interactive else RETRY
        delay = super().wait(now)
        if self._local is not None and now < self._paced_until:
            delay = max(delay, self._local.wait(now))
        if self._started(now) is not None:
            return delay
        if self._groups:
            return max(delay, min(group.starts for group in self._groups) - now)
        return max(delay, self._next[interactive] - now, LAG)

    def idle(self, now: float) -> bool:
        """Return whether nothing counts and nothing is closed, so that a new bucket would behave the same."""
        return super().idle(now) and not self._under_way and (self._local is None or self._local.idle(now))

    def snapshot(self, now: float) -> LimitSnapshot:
        """The state as values: of this process, and the limit that it keeps to at present."""
        own = super().snapshot(now)
        local = None if self._local is None else self._local.snapshot(now)
        used = own.used + (0 if local is None else local.used)
        if not self.is_lost:
            ready = min(self._ready(now), own.available)
            return LimitSnapshot(self.limit, used, ready, own.closed_for)
        if local is None:
            return LimitSnapshot(self.limit, used, 0, own.closed_for)
        return LimitSnapshot(local.limit, used, local.available, local.closed_for)

    # What the store client uses

    def planned_request(self, now: float, interactive: int, bulk: int) -> PlannedRequest | None:
        """What to ask for, and when, with so many callers in the queue; None while nothing is needed."""
        self._measure(now)
        ready, ahead = self._ready(now), int(AHEAD * self._use(now))
        if interactive > ready:
            return PlannedRequest(self._next[True], interactive + ahead - ready, True)
        if interactive + bulk > ready:
            return PlannedRequest(self._next[False], interactive + bulk + ahead - ready, False)
        if self._at_hand < self._low:
            return PlannedRequest(self._next[self._interactive], ahead - self._at_hand, self._interactive)
        if self._told and self.limit < SMALL:
            return PlannedRequest(self.last[1] + REPORT, 0, self._interactive)
        return None

    def held(self, now: float) -> int:
        """Permits reserved, unused, or under way."""
        self._started(now)
        self._lingering = [each for each in self._lingering if each[0] > now]
        return self._at_hand + self._under_way + sum(number for _, number in self._lingering)

    def take_answer(self, answer: Reservation, request: PermitRequest, asked: float, now: float) -> None:
        """Take the store's answer to what it was asked at `asked`."""
        if self.is_lost:
            self.is_lost = False
            if self._local is not None:
                self._paced_until = now + HAND_OVER
        self.last = answer, asked + answer.waited
        self._told = request.held + answer.granted
        starts = now + answer.wait - answer.late
        if request.wanted:
            self._interactive = request.interactive
            self._next[False] = starts
        if request.wanted and request.interactive:
            self._next[True] = starts
        if answer.closed_for:
            self.close(now, answer.closed_for - answer.late)
        elif answer.granted and self.closing is None:  # else a 429 came meanwhile
            self._open(answer, now)
            self._groups.append(
                PermitGroup(starts, asked + answer.wait + VALID, answer.granted, answer.probe)
            )
            self._at_hand += answer.granted

    def lose(self, now: float) -> None:
        """The store cannot be reached. This process's part begins with nothing saved up."""
        if not self.is_lost:
            self.is_lost = True
            self._drop()
            self._next = {True: ASKED, False: ASKED}
            if self._local is not None:
                self._local.empty(now)
                if self._shut and self._opens > now:
                    self._local.close(now, self._opens - now)

    # Parts

    def _take_without_store(self, now: float, priority: Priority | None) -> int:
        self._want(now)
        grant = self._local.take(now) if self._local is not None and priority == "interactive" else NONE
        if not grant:
            return NONE
        self._under_way += 1
        return grant | LOCAL

    def _pace(self, now: float) -> bool:
        """Keep to this process's part as well, soon after an outage."""
        assert self._local is not None
        grant = self._local.take(now)
        if grant:
            self._local.settle(grant, now)
        return bool(grant)

    def _started(self, now: float) -> PermitGroup | None:
        """The first group with permits that may be used; drops what is over."""
        for group in tuple(self._groups):
            if not group.left or group.ends <= now:
                self._discard(group)
            elif group.starts <= now:
                return group
        return None

    def _ready(self, now: float) -> int:
        return sum(group.left for group in self._groups if group.starts <= now < group.ends)

    def _drop(self) -> None:
        for group in tuple(self._groups):
            self._discard(group)

    def _discard(self, group: PermitGroup) -> None:
        self._groups.remove(group)
        self._at_hand -= group.left
        if group.probe and group.left:
            self._report_probe(group.probe, answered=False)

    def _open(self, answer: Reservation, now: float) -> None:
        """A permit means that the row is open, or that it is the probe of a closing."""
        if not answer.probe:
            self._shut = NONE
        elif not self._shut:
            super().close(now, 0.0)
        self._mistaken = answer.pause

    def _end_probe(self, grant: int, *, answered: bool) -> None:
        taken, probe = self._probe
        if taken and grant == taken:
            self._probe = NONE, 0.0
            self._report_probe(probe, answered=answered)

    def _report_probe(self, probe: float, *, answered: bool) -> None:
        self.ended_probe = probe, answered
        self._want(ASKED)

    def _want(self, due: float) -> None:
        """Have the store client look at `due`, if it would not by itself."""
        if due < self.planned:
            self.planned = due
            self._call()

    def _measure(self, now: float) -> None:
        """Measure the use of permits over a moment."""
        if now - self._measured >= SPAN:
            self._rate = self._taken / (now - self._measured)
            self._measured, self._taken = now, 0

    def _use(self, now: float) -> float:
        """Permits used in a second, by the last moment or what this one has seen so far."""
        rate = max(self._rate, self._taken / SPAN)
        self._low = int(LOW * rate)
        return rate
