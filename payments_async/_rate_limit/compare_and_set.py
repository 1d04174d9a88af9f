"""Runs the rule of `store` on a row that processes share, by compare-and-set: no lock is held meanwhile.

Each message to a store carries the process's own request. If the row still has the version that the process
has read, the store takes the row that the process made of it; otherwise it keeps the request beside the row.
Either way it answers with the present row, its requests and its time. Whoever changes the row next carries
out every request that waits, in order, and leaves the answers in the row.

So a change takes two round trips, and three at most however many processes compete: whoever loses a race
twice finds its answer, because the second winner had read the row with the request beside it. A change counts
as made when the row was read: nobody changed it between, so a lock would have made them in the same order.
A process that stops in between keeps nobody waiting, and loses its race.
"""

from __future__ import annotations

import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from .._runtime import SYSTEM
from . import store
from .store import LimitRow, PermitHolder, PermitRequest, Reservation, State, StoreUnavailable

ROUNDS: Final = 8
"""Round trips for one change, after which it is put off: the store must have lost the row several times."""
REQUEST_KEPT: Final = 2.0
"""Seconds for which a request waits beside the row; its process has given it up by then."""
ANSWER_KEPT: Final = 10.0
"""Seconds for which the row keeps an answer for its process."""
_NOT_READ: Final = "-"
"""The version that no row has."""


@attrs.frozen(kw_only=True)
class RowWrite:
    """A message to a store."""

    change: str
    """Name of the change: the connection's and a number. The row's version afterwards."""
    request: str
    """Kept beside the row when the race is lost."""
    based_on: str = _NOT_READ
    """The version that was read; the store writes only if the row still has it. A row that is lost has ''."""
    content: str = ""
    served: Sequence[str] = ()
    """Changes whose requests `content` answers."""


@attrs.frozen
class RowRead:
    """A store's answer: the row as it is after the message."""

    version: str
    content: str
    requests: Mapping[str, tuple[float, str]]
    """By change, when each came, and what it asks."""
    now: float
    """The store's time."""


class SharedRows(ABC):
    """A `LimitStore` on rows of a database."""

    def __init__(self) -> None:
        self._name = SYSTEM.token(8).hex()
        self._numbers = itertools.count(1)

    async def reserve(self, row: LimitRow, request: PermitRequest) -> Reservation:
        """Reserve permits."""
        answer = await self._change(row, "reserve", attrs.asdict(request))
        return Reservation(**answer)

    async def close_after_429(self, row: LimitRow, seconds: float, *, pause: float = 0.0) -> None:
        """Close the row for every process."""
        await self._change(row, "close_after_429", {"seconds": seconds, "pause": pause})

    async def end_probe(self, row: LimitRow, probe: float, *, answered: bool) -> None:
        """End a probe."""
        await self._change(row, "end_probe", {"probe": probe, "answered": answered})

    @abstractmethod
    async def exchange(self, row: LimitRow, write: RowWrite) -> RowRead:
        """Write, or keep the request: one round trip."""

    async def _change(self, row: LimitRow, kind: str, values: dict[str, Any]) -> Any:
        number = next(self._numbers)
        write = RowWrite(change=f"{self._name} {number}", request=json.dumps([kind, values]))
        for _ in range(ROUNDS):
            read = await self.exchange(row, write)
            answers = _content(read.content)[1]
            if (answer := answers.get(self._name)) is not None and answer[0] == number:
                return answer[2]
            write = attrs.evolve(
                write, based_on=read.version, content=carry_out(read), served=[*read.requests]
            )
        raise StoreUnavailable("the limit store lost the row of a limit several times")


def carry_out(read: RowRead) -> str:
    """The row's content after all requests that wait beside it."""
    state, answers = _content(read.content)
    answers = {name: answer for name, answer in answers.items() if abs(read.now - answer[1]) < ANSWER_KEPT}
    for change, (came, request) in sorted(read.requests.items(), key=lambda item: item[1][0]):
        name, _, number = change.partition(" ")
        waited = read.now - came
        if abs(waited) <= REQUEST_KEPT and answers.get(name, (0,))[0] < int(number):
            kind, values = json.loads(request)
            state, answer = _CHANGES[kind](state, values, read.now, waited)
            answers[name] = int(number), read.now, answer
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


def _reserve(state: State | None, values: dict[str, Any], now: float, waited: float) -> tuple[State, Any]:
    last, ago = values["last"], values["ago"] + waited
    request = PermitRequest(**{**values, "last": None if last is None else Reservation(**last), "ago": ago})
    state, answer = store.reserve(state, request, now)
    return state, attrs.asdict(answer)


def _close_after_429(
    state: State | None, values: dict[str, Any], now: float, waited: float
) -> tuple[State | None, Any]:
    return None if state is None else store.close_after_429(state, **values, now=now), None


def _end_probe(
    state: State | None, values: dict[str, Any], now: float, waited: float
) -> tuple[State | None, Any]:
    return None if state is None else store.end_probe(state, **values), None


_CHANGES: Final[Mapping[str, Any]] = {
    "reserve": _reserve,
    "close_after_429": _close_after_429,
    "end_probe": _end_probe,
}
