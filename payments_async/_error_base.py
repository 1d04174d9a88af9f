"""What every error has: its effect, its attempts, and a pickle without account data."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Literal

from ._masking import body_without_keys
from .models._response import Attempt

Effect = Literal["none", "happened", "unknown"]
"""Whether this call moved money or made a record: it did not · it did · nobody can tell yet."""


class Body:
    """An answer's body, which may hold account data: read it on purpose, it never prints itself."""

    __slots__ = ("raw",)

    def __init__(self, raw: bytes) -> None:
        self.raw: bytes = body_without_keys(raw)
        """The bytes as they came, secret keys masked."""

    def text(self) -> str:
        """The body as text; unreadable bytes are replaced."""
        return self.raw.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as the standard library reads it; raises ValueError when it is not JSON."""
        return json.loads(self.raw)

    def __repr__(self) -> str:
        return f"<body of {len(self.raw)} bytes>"


class PaymentsError(Exception):
    """Anything this package raises on purpose."""

    _left_out_of_pickles: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        message: str,
        *,
        effect: Effect = "none",
        operation: str | None = None,
        idempotency_key: str | None = None,
        attempts: tuple[Attempt, ...] = (),
    ) -> None:
        super().__init__(message)
        self.effect: Effect = effect
        """Whether this call can have moved money or made a record."""
        self.operation = operation
        """Which call it was: `payouts.create`."""
        self.idempotency_key = idempotency_key
        """The key the write carried."""
        self.attempts = attempts
        """Every try and what came of it."""

    def __reduce__(self) -> tuple[Any, ...]:
        state = {name: value for name, value in vars(self).items() if name not in self._left_out_of_pickles}
        left_out = dict.fromkeys(self._left_out_of_pickles & vars(self).keys())
        return _rebuilt, (type(self), self.args, {**state, **left_out})


def _rebuilt(cls: type[PaymentsError], args: tuple[Any, ...], state: dict[str, Any]) -> PaymentsError:
    error = cls.__new__(cls, *args)
    error.args = args
    vars(error).update(state)
    return error
