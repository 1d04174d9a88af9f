"""What receivers answered: headers and the beginning of a body, kept for people to read, in bounded memory.

Not safe for threads by itself: the sandbox's lock is held around every call.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

BODY_BYTES = 4_096
"""Bytes of a body that are kept."""

KEPT_BYTES = 4 * 1024 * 1024
"""Bytes of all answers that are kept; the oldest go first."""

_HEADERS = 40
_LONGEST = 200
"""Headers of an answer, and characters of each, that are kept."""

_OVERHEAD = 500
"""Bytes of memory that an answer takes besides."""


@attrs.frozen
class ReceiverAnswer:
    """A receiver's answer to one try, as far as it is kept."""

    headers: tuple[tuple[str, str], ...] = attrs.field(repr=False)
    body: bytes = attrs.field(repr=False)
    length: int
    """Bytes of the body that were read."""

    @property
    def size(self) -> int:
        """Bytes of memory."""
        return len(self.body) + sum(len(name) + len(value) for name, value in self.headers) + _OVERHEAD


def receiver_answer(headers: Iterable[tuple[str, str]], body: bytes) -> ReceiverAnswer:
    """An answer with the beginning of its headers and of its body."""
    kept = tuple((name[:_LONGEST], value[:_LONGEST]) for name, value in headers)[:_HEADERS]
    return ReceiverAnswer(kept, body[:BODY_BYTES], len(body))


class ReceiverAnswers:
    """The latest answers, by webhook and number of the try (1 is the first)."""

    def __init__(self, room: int = KEPT_BYTES) -> None:
        self._answers: dict[tuple[str, int], ReceiverAnswer] = {}
        self._room = self._budget = room

    def add(self, webhook_id: str, number: int, answer: ReceiverAnswer) -> None:
        """Keep an answer, and drop the oldest while they are too large."""
        self._answers[webhook_id, number] = answer
        self._room -= answer.size
        while self._room < 0:
            oldest = next(iter(self._answers))
            self._room += self._answers.pop(oldest).size

    def find(self, webhook_id: str, number: int) -> ReceiverAnswer | None:
        """The answer to a try; None when there was none, or it is no longer kept."""
        return self._answers.get((webhook_id, number))

    def clear(self) -> None:
        """Drop them all."""
        self._answers.clear()
        self._room = self._budget
