"""Notes, outside a guard's file, how far its sums have come: a file that was put back is behind that.

It is kept in the user's state directory. Who puts back both is not found out.
"""

from __future__ import annotations

import hashlib
import os
import sys

from ..errors import ConfigurationError


def noted(state: str, account: str, serial: int = 0) -> int:
    """How far an account's sums in a file had come; 0 before the first note.

    `serial` is noted instead, unless another process has noted a later one. Raises ConfigurationError.
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
            before = int(file.read(100) or 0)
            if serial > before:
                file.seek(0)
                file.write(str(serial))  # never shorter than what it replaces
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
