"""The idempotency store of one API key (`docs/interface.md`, Limits, Idempotency)."""

from __future__ import annotations

import hashlib

import msgspec

from .._common.values import Answer, RequestRefused
from .records import PayoutRecord

LIFETIME = 86_400.0  # seconds a first answer is kept: 24 hours

_SHORTEST, _LONGEST = 8, 128


def idempotency_key(header: str | None, refusal: int) -> str | None:
    """The key a write request carries, or None; `RequestRefused` unless it has 8 to 128 characters."""
    if header is not None and not (_SHORTEST <= len(header) <= _LONGEST and _is_text(header)):
        raise RequestRefused(refusal, f"X-Idempotency-Key must be {_SHORTEST} to {_LONGEST} characters long.")
    return header


def _is_text(header: str) -> bool:
    """True if its bytes were UTF-8: others arrive as surrogates, which can be neither hashed nor stored."""
    return header.isascii() or not any("\ud800" <= character <= "\udfff" for character in header)


def fingerprint(method: str, path: str, body: bytes) -> bytes:
    """Compute the fingerprint of a request: of its method, its path and the exact bytes of its body."""
    return hashlib.blake2b(f"{method} {path}\n".encode() + body, digest_size=16).digest()


class StoredAnswer(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A first answer and the request it belongs to."""

    request: bytes
    answer: Answer | PayoutRecord
    """Of the creation of a payout that was pending then, the payout: the answer can be made of it again."""
    at: float
    late: float = 0.0  # for so many seconds the first request waited for its answer


class IdempotencyStore:
    """First answers by key, forgotten after 24 hours of sandbox time."""

    def __init__(self) -> None:
        self._stored: dict[str, StoredAnswer] = {}

    def find(self, key: str, now: float) -> StoredAnswer | None:
        """Find the answer that was stored under `key` less than 24 hours ago."""
        stored = self._stored.get(key)
        return stored if stored is not None and now < stored.at + LIFETIME else None

    def keep(self, key: str, request: bytes, answer: Answer | PayoutRecord, now: float, late: float) -> None:
        """Store a first answer, and drop those that are too old (entries are in order of age)."""
        self._stored.pop(key, None)
        self._stored[key] = StoredAnswer(request, answer, now, late)
        while self._stored[oldest := next(iter(self._stored))].at + LIFETIME <= now:
            del self._stored[oldest]
