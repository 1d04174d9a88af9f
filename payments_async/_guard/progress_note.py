"""Notes, outside a guard's file, how far its sums have come: a file that was put back is behind that.

It is kept in the user's state directory. Who puts back both is not found out.
"""

from __future__ import annotations

import hashlib
import os
import sys

from ..errors import ConfigurationError
from .state import Place


def noted(state: str, account: str, place: Place | None = None) -> Place | None:
    """How far an account's sums in a file had come; None before the first note.

    `place` is noted instead, unless another process has noted a later one. Raises ConfigurationError.
    """
    home = os.environ.get("XDG_STATE_HOME", "")
    folder = home if os.path.isabs(home) else os.path.expanduser("~/.local/state")
    name = hashlib.sha256(f"{os.path.realpath(state)}\0{account}".encode()).hexdigest()[:32]
    path = os.path.join(folder, "payments-sdk", f"guard-{name}")
    if not os.path.isabs(path):  # else each working directory would have a note of its own
        raise _error(path, "there is no home directory")
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
            if sys.platform != "win32":
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
            born, _, number = file.read(100).partition(" ")
            before = (float(born), int(number)) if born else None
            if place is not None and place > (before or (0.0, 0)):
                file.seek(0)
                file.write(f"{place[0]!r} {place[1]}")
                file.truncate()
            return before
    except OSError as error:
        raise _error(path, error.strerror) from None
    except ValueError:
        raise _error(path, "it was changed") from None


def _error(path: str, why: str | None) -> ConfigurationError:
    return ConfigurationError(
        f"the guard cannot note in {path} how far its sums have come ({why}): without that an "
        "older copy of its state would be trusted; let XDG_STATE_HOME name a folder of this user, in full"
    )
