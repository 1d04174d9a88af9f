"""Makes, checks and remembers idempotency keys (Limits, Idempotency)."""

from __future__ import annotations

import itertools
import json
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from decimal import Decimal
from typing import Any, Protocol
from weakref import WeakSet

from .. import _assumptions
from .._runtime import Runtime, after_fork_in_child
from ..models._masking import clean

HEADER = "X-Idempotency-Key"
_forks = itertools.count(1)
_generation = 0


def _after_fork() -> None:
    global _generation
    _generation = next(_forks)


after_fork_in_child(_after_fork)


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


class URLMaker(Protocol):
    """A maker of webhook URLs, whose tokens differ though they are for the same record."""

    def subject(self, url: str) -> Hashable:
        """The record that a URL of its own is for; None for any other URL."""


class KeyUse:
    """The first use of a key that a caller gave."""

    __slots__ = ("at", "body")

    def __init__(self, at: float, body: bytes) -> None:
        self.at: float = at
        """Monotonic seconds."""
        self.body: bytes = body


class UsedKeys:
    """Remembers the first body of each key that callers gave, to refuse another body (gap R).

    The keys are those of all clients of a process, each with its address and secret key.
    """

    def __init__(self, size: int = 50_000) -> None:
        self._size = size
        self._seen: OrderedDict[Hashable, KeyUse] = OrderedDict()
        self.url_makers: WeakSet[URLMaker] = WeakSet()
        """Those whose URLs for the same record are no difference."""

    def first_use(self, key: Hashable, body: bytes, now: float) -> KeyUse:
        """The key's first use: this one where it is new, or free for another body after a day."""
        use = self._seen.get(key)
        if use is None or (use.body != body and now - use.at >= _assumptions.KEY_LIFETIME):
            self._seen.pop(key, None)
            use = self._seen[key] = KeyUse(now, body)
            if len(self._seen) > self._size:
                self._seen.popitem(last=False)
        return use

    def conflict(self, use: KeyUse, body: bytes) -> str | None:
        """What differs from the first body, in words; None when it is no more than the token of our URL."""
        if use.body == body:
            return None
        one, other = _fields(use.body), _fields(body)
        urls = [fields.get("webhook_url") for fields in (one, other)]
        names = _differing(one, other)
        return None if names == ["webhook_url"] and self._is_for_one(*urls) else difference(use.body, body)

    def _is_for_one(self, *urls: Any) -> bool:
        """Return whether two URLs of one maker are for the same record."""
        if not all(isinstance(url, str) for url in urls):
            return False
        subjects = ([maker.subject(url) for url in urls] for maker in self.url_makers)
        return any(first == second is not None for first, second in subjects)


def difference(one: bytes, other: bytes) -> str:
    """The fields in which two bodies differ, in words that show no value."""
    names = [clean(name) for name in _differing(_fields(one), _fields(other))] or ["the order of fields"]
    *most, last = names
    return f"{', '.join(most)} and {last} differ" if most else f"{last} differs"


def _fields(body: bytes) -> Mapping[str, Any]:
    fields: dict[str, Any] = json.loads(body, parse_float=Decimal)
    return fields


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The names of the fields that differ; `true` and 1 do, and so do 1 and 1.0."""
    return [name for name in {**one, **other} if _spelled(one, name) != _spelled(other, name)]


def _spelled(fields: Mapping[str, Any], name: str) -> str | None:
    return json.dumps(fields[name], sort_keys=True, default=repr) if name in fields else None
