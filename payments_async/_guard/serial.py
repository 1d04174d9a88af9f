"""Remembers, outside a guard's file, how far its sums have come: a file that was put back is behind that.

It is kept in the user's state directory. Who puts back both is not found out.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence

from ..errors import ConfigurationError

Place = tuple[float, int]
"""Which state it is, and the number of its changes."""


class Serial:
    """The place that one guard's sums in one file have reached."""

    def __init__(self, path: str, row: str) -> None:
        """`row`: whose sums they are in the file."""
        folder = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        name = hashlib.sha256(f"{os.path.realpath(path)}\0{row}".encode()).hexdigest()[:32]
        self._path = os.path.join(folder, "payments-sdk", f"guard-{name}")

    def reached(self) -> Place | None:
        """The place that was noted last; None before the first. Raises ConfigurationError."""
        return self._visit(None)

    def note(self, last: Sequence[float]) -> None:
        """Note a place, unless another process has noted a later one. Raises ConfigurationError."""
        self._visit((last[0], int(last[1])))

    def _visit(self, place: Place | None) -> Place | None:
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            with open(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
                if sys.platform != "win32":
                    import fcntl

                    fcntl.flock(file, fcntl.LOCK_EX)
                born, _, number = file.read(100).partition(" ")
                noted = (float(born), int(number)) if born else None
                if place is not None and place > (noted or (0.0, 0)):
                    file.seek(0)
                    file.write(f"{place[0]!r} {place[1]}")
                    file.truncate()
                return noted
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it was changed"
            raise ConfigurationError(
                f"the guard cannot note in {self._path} how far its sums have come ({why}): without that an "
                "older copy of its state would be trusted; let XDG_STATE_HOME name a folder of this user"
            ) from None
