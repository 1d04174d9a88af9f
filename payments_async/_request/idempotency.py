"""Makes, checks and remembers idempotency keys (Limits, Idempotency)."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections import OrderedDict

from .. import _assumptions
from .._runtime import Runtime

HEADER = "X-Idempotency-Key"
_forks = itertools.count(1)
_generation = 0


def _after_fork() -> None:
    global _generation
    _generation = next(_forks)


if hasattr(os, "register_at_fork"):  # pragma: no branch  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork)


def problem(key: object) -> str | None:
    """The fault of a caller's key, or None."""
    if not isinstance(key, str):
        return f"must be text, not {type(key).__name__}"
    if not 8 <= len(key) <= 128:
        return f"has {len(key)} characters, 8 to 128 are allowed"
    plain = key.isascii() and key.isprintable() and " " not in (key[0], key[-1])
    return None if plain else "may hold only printable ASCII, with no space at either end"


class KeyMaker:
    """Makes unique keys: 128 random bits once, then a counter; a fork draws new bits."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._seed()

    def _seed(self) -> None:
        # One assignment: no thread may see the parent's bits with the child's generation, or a new count.
        self._source = (_generation, self._runtime.token(16).hex(), itertools.count(1).__next__)

    def __call__(self) -> str:
        generation, prefix, count = self._source
        if generation != _generation:
            self._seed()
            _, prefix, count = self._source
        return f"{prefix}-{count()}"

    def __deepcopy__(self, memo: object) -> KeyMaker:
        return KeyMaker(self._runtime)

    def __copy__(self) -> KeyMaker:
        return KeyMaker(self._runtime)


class UsedKeys:
    """Remembers the last body of each key that callers gave, to refuse another body (gap R)."""

    def __init__(self, size: int = 10_000) -> None:
        self._size = size
        self._seen: OrderedDict[str, tuple[float, bytes]] = OrderedDict()

    def first_used(self, key: str, now: float) -> float:
        """Time of the key's first use here, monotonic seconds; `now` for an unused key."""
        return self._seen.get(key, (now, b""))[0]

    def conflict(self, key: str, body: bytes, now: float) -> bool:
        """Return whether the key was used with another body; if not, note it with this one."""
        digest = hashlib.blake2b(body, digest_size=16).digest()
        at, known = self._seen.get(key, (now, digest))
        if known != digest and now - at < _assumptions.KEY_LIFETIME:
            return True
        self._seen[key] = (at if known == digest else now, digest)
        while len(self._seen) > self._size:
            self._seen.popitem(last=False)
        return False
