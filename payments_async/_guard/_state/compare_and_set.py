"""Stores of rows that processes share, and how a rule changes a row by compare-and-set, without a lock.

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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

import attrs

from ..._rate_limit.store import LimitRow, StoreUnavailable
from ..._runtime import SYSTEM
from ...errors import ConfigurationError

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


class RowRule(Protocol):
    """How rows of one kind change: pure, and the same in every process.

    Any process may carry out another's request, so all that a change depends on is in its values.
    """

    def read(self, values: Any) -> Any:
        """The state that a row keeps as JSON; None for a row that is new, or was lost."""

    def write(self, state: Any) -> Any:
        """The JSON value of a state."""

    def change(
        self, state: Any, kind: str, values: dict[str, Any], now: float, waited: float
    ) -> tuple[Any, Any]:
        """The state after a request that came `waited` seconds ago, and its answer, a JSON value."""


class LimitStore(ABC):
    """A store of rows. Used on one event loop; opens its connection when first used, and again after a loss.

    Each call takes a few seconds at most, else raises `StoreUnavailable`. What can only be put right by the
    operator raises `ConfigurationError`.
    """

    def __init__(self, place: str) -> None:
        """`place`: the store, as messages name it."""
        self._place = place

    @abstractmethod
    async def change(
        self, row: LimitRow, rule: RowRule, kind: str, values: dict[str, Any]
    ) -> tuple[Any, float]:
        """Change the row. Returns the rule's answer, and the store's time when it was there."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connection."""

    @contextmanager
    def _reading(self, row: LimitRow) -> Iterator[None]:
        """Context in which a row is read and changed; raises ConfigurationError for one that cannot be."""
        try:
            yield
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ConfigurationError(
                f"{self._place} has a row that cannot be read, damaged or of another version of this "
                f"library: delete the row of {row.address}, {row.fingerprint}, {row.kind}"
            ) from error


class CompareAndSetStore(LimitStore):
    """A store that takes a row only if nobody has changed it meanwhile.

    A change takes two or three round trips of at most a second each.
    """

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._name = SYSTEM.token(8).hex()
        self._numbers = itertools.count(1)

    @abstractmethod
    async def exchange(self, row: LimitRow, write: RowWrite) -> RowRead:
        """Write, or keep the request: one round trip."""

    async def change(
        self, row: LimitRow, rule: RowRule, kind: str, values: dict[str, Any]
    ) -> tuple[Any, float]:
        """Change the row, by this process or by another that wins the race."""
        # a copy of this process goes on with the same name and numbers: the nonce tells them apart
        number, first = [next(self._numbers), SYSTEM.token(8).hex()], None
        made: dict[str, Any] = {}
        for round_trip in range(ROUNDS):
            request = json.dumps([number, first, kind, values])
            version = f"{number[1]}.{round_trip}"
            read = await self.exchange(row, RowWrite(self._name, version, request, **made))
            with self._reading(row):
                kept, answers = json.loads(read.content) if read.content else (None, {})
                if self._name in answers and answers[self._name][0] == number:
                    return answers[self._name][2], read.now
                content = _carry_out(rule, kept, answers, read)
            made = {"based_on": read.version, "content": content, "served": [*read.requests]}
            first = read.now if first is None else first
            if abs(read.now - first) > REQUEST_KEPT:
                break
        raise StoreUnavailable(f"{self._place} did not make a change in time: its row changed meanwhile")


def _carry_out(rule: RowRule, kept: Any, answers: Mapping[str, Any], read: RowRead) -> str:
    """The row's content after all requests that wait beside it."""
    state, now = rule.read(kept), read.now
    answers = {sender: answer for sender, answer in answers.items() if abs(now - answer[1]) < ANSWER_KEPT}
    for sender, (came, request) in sorted(read.requests.items(), key=lambda item: item[1][0]):
        number, first, kind, values = json.loads(request)
        # a process that stood still may send now what it asked long ago
        waited = now - (came if first is None else first)
        if abs(waited) <= REQUEST_KEPT and answers.get(sender, ([0],))[0][0] < number[0]:
            state, answer = rule.change(state, kind, values, now, waited)
            answers[sender] = number, now, answer
    return json.dumps([rule.write(state), answers])
