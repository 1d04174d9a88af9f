"""What a forked child renews: state of a module that belongs to threads, loops and sockets of its parent."""

from __future__ import annotations

import os
from collections.abc import Callable


def after_fork_in_child(renew: Callable[[], None]) -> None:
    """Have a function called in each child process, right after a fork. Windows has no fork."""
    if hasattr(os, "register_at_fork"):  # pragma: no branch
        os.register_at_fork(after_in_child=renew)
