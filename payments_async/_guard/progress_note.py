"""Notes, outside a guard's file, how far its sums have come: a file that was put back is behind that.

It is kept in the user's state directory. Who puts back both is not found out.
"""

from __future__ import annotations

import hashlib
import os
import sys

from ..errors import ConfigurationError
from .state import Place


class ProgressNote:
    """How far one guard's sums in one file have come."""

    def __init__(self, path: str, account: str) -> None:
        """`account`: whose sums they are in the file."""
        home = os.environ.get("XDG_STATE_HOME", "")
        folder = home if os.path.isabs(home) else os.path.expanduser("~/.local/state")
        name = hashlib.sha256(f"{os.path.realpath(path)}\0{account}".encode()).hexdigest()[:32]
        self._path = os.path.join(folder, "payments-sdk", f"guard-{name}")

    def reached(self) -> Place | None:
        """The place that was noted last; None before the first. Raises ConfigurationError."""
        return self._visit(None)

    def note(self, place: Place) -> None:
        """Note a place, unless another process has noted a later one. Raises ConfigurationError."""
        self._visit(place)

    def _visit(self, place: Place | None) -> Place | None:
        if not os.path.isabs(self._path):  # else each working directory would have a note of its own
            raise self._error("there is no home directory")
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
        except OSError as error:
            raise self._error(error.strerror) from None
        except ValueError:
            raise self._error("it was changed") from None

    def _error(self, why: str | None) -> ConfigurationError:
        return ConfigurationError(
            f"the guard cannot note in {self._path} how far its sums have come ({why}): without that an "
            "older copy of its state would be trusted; let XDG_STATE_HOME name a folder of this user, in full"
        )
