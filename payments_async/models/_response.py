"""The answer to a record's request: status, headers, body, attempts. Not compared between records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import starmap
from typing import Any, Literal

import attrs

from .._attrs import ValueMixin, maker
from ._masking import body_without_keys, clean, without_keys

Verdict = Literal["not_sent", "not_executed", "executed", "in_doubt"]
"""Effect of one attempt: not sent · refused · carried out · unknown."""


@attrs.frozen(eq=False, repr=False)
class Attempt(ValueMixin):
    """One attempt to send a request."""

    number: int
    """1 for the first."""
    verdict: Verdict
    reason: str
    """The result in a word: `200`, `timeout`, `reset`, `429`."""
    status: int | None = None
    """The HTTP status, when an answer came."""
    waited: float = 0.0
    """Seconds spent before sending: pacing and back-off."""
    elapsed: float = 0.0
    """Seconds from sending to the answer or the failure."""


@attrs.frozen(eq=False, repr=False)
class RateLimit(ValueMixin):
    """The limit as the service reported it (Errors, 429)."""

    limit: int | None = None
    """Requests a minute (`X-RateLimit-Limit`)."""
    remaining: int | None = None
    """Requests left in the window (`X-RateLimit-Remaining`)."""


@attrs.frozen(eq=False)
class ResponseInfo:
    """The answer to a record's request."""

    status: int
    """HTTP status."""
    headers: Mapping[str, str] = attrs.field(repr=False)
    """Header names compare without case."""
    attempts: tuple[Attempt, ...]
    """Every attempt, the last one included."""
    idempotency_key: str | None = None
    """The key sent with a write, made by the client when the caller gave none (Limits, Idempotency)."""
    _message: str | None = attrs.field(default=None, repr=False, alias="message")
    _body: bytes = attrs.field(default=b"", repr=False, alias="body")

    @property
    def message(self) -> str | None:
        """The top-level `message` of a create response, on one line, secret keys masked."""
        return None if self._message is None else clean(self._message)

    @property
    def body(self) -> bytes:
        """The answer's bytes, secret keys masked. They may hold account data, and pickles leave them out."""
        return body_without_keys(self._body)

    @property
    def replayed(self) -> bool:
        """True if the service returned its stored answer to the idempotency key (`X-Idempotent-Replayed`)."""
        return is_replayed(self.headers)

    @property
    def request_id(self) -> str | None:
        """`X-Request-Id`, when the service sends one (gap AE)."""
        return self.headers.get("X-Request-Id")

    @property
    def rate_limit(self) -> RateLimit:
        """The rate-limit headers, where present."""
        return RateLimit(
            _count(self.headers.get("X-RateLimit-Limit")), _count(self.headers.get("X-RateLimit-Remaining"))
        )

    def __getstate__(self) -> dict[str, object]:
        from multidict import CIMultiDict  # the transport's own headers have no pickle

        state = {field.name: getattr(self, field.name) for field in attrs.fields(ResponseInfo)}
        state["headers"] = CIMultiDict({name: without_keys(value) for name, value in self.headers.items()})
        state["_message"], state["_body"] = self.message, b""
        return state

    def __setstate__(self, state: dict[str, object]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


def answer_of(facts: Any) -> Any:
    """Make a ResponseInfo of its parameters, in which each attempt is the parameters of one."""
    if type(facts) is not tuple:
        return facts
    status, headers, attempts, *rest = facts
    return ResponseInfo(status, headers, attempts_of(attempts), *rest)


def attempts_of(tries: Iterable[tuple[Any, ...]]) -> tuple[Attempt, ...]:
    """Make the attempts of their parameters."""
    return tuple(starmap(_attempt, tries))


_attempt = maker(Attempt)


def is_replayed(headers: Mapping[str, str]) -> bool:
    """Return whether the service returned its stored answer to the idempotency key (Errors, rule 2).

    The headers compare without case, or are in lower case like those of an `APIStatusError`.
    """
    return headers.get("x-idempotent-replayed", "").strip().lower() == "true"


def _count(text: str | None) -> int | None:
    """Read a whole number of ASCII digits from a header; None for anything else."""
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None
