"""Remembers the states of records that a handler has seen."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Awaitable
from typing import Final, Protocol, TypeVar

from ..models import Payout
from ._values import Trusted

T = TypeVar("T")
KEPT: Final = 10_000


class SeenStore(Protocol):
    """Remembers the states that were handled; several processes may share one store.

    Both methods may be plain or coroutine functions. When one raises, the service tries again. A state is at
    most 700 characters of ASCII, and a week of them is enough.
    """

    def seen(self, state: str) -> bool | Awaitable[bool]:
        """Return whether this state of a record was handled."""

    def add(self, state: str) -> Awaitable[None] | None:
        """Remember that this state was handled."""


class MemoryStore:
    """Remembers the latest states handled in this process, 10,000 by default."""

    def __init__(self, most: int = KEPT) -> None:
        """Keep at most `most` states."""
        self._most = most
        self._states: OrderedDict[str, None] = OrderedDict()

    def seen(self, state: str) -> bool:
        """Return whether this state of a record was handled."""
        return state in self._states

    def add(self, state: str) -> None:
        """Remember that this state was handled; the oldest one is forgotten when there are too many."""
        self._states[state] = None
        while len(self._states) > self._most:
            self._states.popitem(last=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._states)} of {self._most})"


async def awaited(value: T | Awaitable[T]) -> T:
    """Return a function's result, awaited if it is awaitable."""
    return await value if inspect.isawaitable(value) else value


def state_of(record: Trusted) -> str:
    """A record's state as text: the handler gets the record again when the text differs.

    It has the status, which of the ends have a time (forms may lack the status, gap I), and for a payment the
    active attempt and its status.
    """
    ends = [name for name in ("completed_at", "failed_at", "expired_at") if getattr(record, name, None)]
    parts = [record.id, record.status, *ends]
    if not isinstance(record, Payout) and (attempt := record.active_attempt) is not None:
        parts += [attempt.id, attempt.status]
    return " ".join(ascii(part)[1:-1][:128] if part else "-" for part in parts)
