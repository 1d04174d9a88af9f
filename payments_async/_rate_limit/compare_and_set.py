"""Runs the rule of `store` on a row that processes share, by compare-and-set: no lock is held meanwhile.

Each message to a store carries the process's own request. If the row still has the version that the process
has read, the store takes the row that the process made of it; otherwise it keeps the request beside the row.
Either way it answers with the present row, its requests and its time. Whoever changes the row next carries
out every request that waits, in order, and leaves the answers in the row.

So a change takes two round trips, and three at most however many processes compete: whoever loses a race
twice finds its answer, because the second winner had read the row with the request beside it. A process that
stops in between keeps nobody waiting, and loses its race.

A change takes effect at the moment when its winner read the row. Nobody else has changed the row since, so
the order is the one that a lock would give. A process counts the start of its permits from the last message
(`late`), and their end from before the first: a slow exchange shortens a permit, and never adds one.
"""

from __future__ import annotations

import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from .._runtime import SYSTEM
from ..errors import ConfigurationError
from . import store
from .store import LimitRow, PermitHolder, PermitRequest, Reservation, State, StoreUnavailable

ROUNDS: Final = 8
"""Round trips for one change, after which it is put off: the store must have lost the row several times."""
REQUEST_KEPT: Final = 2.0
"""Seconds after its first message for which a request may be carried out; its process then puts it off."""
ANSWER_KEPT: Final = 10.0
"""Seconds for which the row keeps an answer for its process, so that no request is carried out twice."""


@attrs.frozen
class RowWrite:
    """A message to a store."""

    sender: str
    """Name of the connection. The store keeps its request under this name, in place of an older one."""
    version: str
    """The row's version afterwards, unlike any other: a row that was lost never has an earlier one again."""
    request: str
    """Kept beside the row when the race is lost."""
    based_on: str = ""
    """The version that was read; the store writes only if the row still has it. No row has ''."""
    content: str = ""
    served: Sequence[str] = ()
    """Senders whose requests `content` answers."""


@attrs.frozen
class RowRead:
    """A store's answer: the row as it is after the message."""

    version: str
    content: str
    """'' for a row that is new, or was lost."""
    requests: Mapping[str, tuple[float, str]]
    """By sender, when each came, and what it asks."""
    now: float
    """The store's time."""


class LimitStore(ABC):
    """A store of rows. Used on one event loop; opens its connection when first used, and again after a loss.

    Each call takes two or three round trips of at most a second each, else raises `StoreUnavailable`. What
    can only be put right by the operator raises `ConfigurationError`.
    """

    def __init__(self, place: str) -> None:
        """`place`: the store, as messages name it."""
        self._place = place
        self._name = SYSTEM.token(8).hex()
        self._numbers = itertools.count(1)

    async def reserve(self, row: LimitRow, request: PermitRequest) -> Reservation:
        """Reserve permits."""
        values, now = await self._change(row, "reserve", attrs.asdict(request))
        return attrs.evolve(Reservation(**values), late=max(now - values["at"], 0.0))

    async def close_after_429(self, row: LimitRow, seconds: float, *, pause: float = 0.0) -> None:
        """Close the row for every process: nothing for `seconds`, then one probe. A lost row stays open.

        `pause`: the same seconds when they replace a mistaken `Retry-After`.
        """
        await self._change(row, "close_after_429", {"seconds": seconds, "pause": pause})

    async def end_probe(self, row: LimitRow, probe: float, *, answered: bool) -> None:
        """End a probe: `answered` opens the row, else the next reservation is granted another probe."""
        await self._change(row, "end_probe", {"probe": probe, "answered": answered})

    @abstractmethod
    async def exchange(self, row: LimitRow, write: RowWrite) -> RowRead:
        """Write, or keep the request: one round trip."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connection."""

    async def _change(self, row: LimitRow, kind: str, values: dict[str, Any]) -> tuple[Any, float]:
        """Change the row. Returns the answer, and the store's time when it was there."""
        number, first = next(self._numbers), None
        made: dict[str, Any] = {}
        for round_trip in range(ROUNDS):
            request = json.dumps([number, first, kind, values])
            version = f"{self._name} {number}.{round_trip}"
            read = await self.exchange(row, RowWrite(self._name, version, request, **made))
            try:
                state, answers = _content(read.content)
                if self._name in answers and answers[self._name][0] == number:
                    return answers[self._name][2], read.now
                content = _carry_out(state, answers, read.requests, read.now)
            except (ValueError, TypeError, LookupError, AttributeError) as error:
                raise ConfigurationError(
                    f"{self._place} has a row that cannot be read, damaged or of another version of this "
                    f"library: delete the row of {row.address}, {row.fingerprint}, {row.kind}"
                ) from error
            made = {"based_on": read.version, "content": content, "served": [*read.requests]}
            first = read.now if first is None else first
            if abs(read.now - first) > REQUEST_KEPT:
                break
        raise StoreUnavailable(f"{self._place} did not make a change in time: its row changed meanwhile")


def _carry_out(
    state: State | None,
    answers: Mapping[str, Any],
    requests: Mapping[str, tuple[float, str]],
    now: float,
) -> str:
    """The row's content after all requests that wait beside it."""
    answers = {sender: answer for sender, answer in answers.items() if abs(now - answer[1]) < ANSWER_KEPT}
    for sender, (came, request) in sorted(requests.items(), key=lambda item: item[1][0]):
        number, first, kind, values = json.loads(request)
        # a process that stood still may send now what it asked long ago
        waited = now - (came if first is None else first)
        if abs(waited) <= REQUEST_KEPT and answers.get(sender, (0,))[0] < number:
            state, answer = _change_state(state, kind, values, now, waited)
            answers[sender] = number, now, answer
    return json.dumps([None if state is None else attrs.asdict(state), answers])


def _content(text: str) -> tuple[State | None, dict[str, Any]]:
    """The state of a row, and its answers: number of the request, time, values."""
    if not text:
        return None, {}
    values, answers = json.loads(text)
    if values is None:
        return None, answers
    workers = {name: PermitHolder(**worker) for name, worker in values.pop("workers").items()}
    return State(**values, workers=workers), answers


def _change_state(
    state: State | None, kind: str, values: dict[str, Any], now: float, waited: float
) -> tuple[State | None, Any]:
    """The state after a request that came `waited` seconds ago, and its answer."""
    if kind == "reserve":
        last = None if values["last"] is None else Reservation(**values["last"])
        request = PermitRequest(**{**values, "last": last, "ago": values["ago"] + waited})
        state, answer = store.reserve(state, request, now)
        return state, attrs.asdict(attrs.evolve(answer, waited=waited))
    if state is None:  # lost since: it stays open
        return None, None
    if kind == "close_after_429":
        return store.close_after_429(state, **values, now=now), None
    return store.end_probe(state, **values), None
