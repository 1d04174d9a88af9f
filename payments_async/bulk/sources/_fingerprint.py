"""What an input says, as one hash: the same for the same rows, however they are written down."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

_FORM = b"payments-sdk rows 1\n"  # a change of the form below is a change of every batch's identity
_GROUP: Final = 512


def _told(value: Any) -> Any:
    """A value JSON has no form for. Its type is told, so that it differs from the same text."""
    return {f"${type(value).__name__}": str(value)}


canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), check_circular=False, default=_told
).encode
"""A value as JSON text that differs whenever the value, or its type, does."""


class Fingerprint:
    """SHA-256 over the rows in order, each as one line of JSON: names sorted, ASCII, no white space.

    Empty cells and lines, the order of columns, line endings and byte order marks leave no trace in it.
    """

    __slots__ = ("_hash", "_waiting")

    def __init__(self) -> None:
        self._hash = hashlib.sha256(_FORM)
        self._waiting: list[str] = []

    def add(self, row: object) -> str:
        """Count one row in. Gives its line; of a value nested too deep for one, the line `null`."""
        try:
            line = canonical(row)
        except RecursionError:
            line = "null"
        self._waiting.append(line)
        if len(self._waiting) == _GROUP:  # hashing in groups costs a tenth of hashing line by line
            self._flush()
        return line

    def hexdigest(self) -> str:
        """The hash of everything so far: 64 hexadecimal digits."""
        self._flush()
        return self._hash.hexdigest()

    def _flush(self) -> None:
        if self._waiting:
            self._hash.update("\n".join([*self._waiting, ""]).encode("ascii"))
            self._waiting.clear()
