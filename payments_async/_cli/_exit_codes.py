"""The exit codes of the commands. `bulk/_protocol/stop_rules.py` decides that of a batch."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from ..bulk.errors import BulkError
from ..errors import AuthenticationError, ConfigurationError, PaymentsError, PermissionDeniedError


class Exit(IntEnum):
    """Exit codes of every `payments` command."""

    DONE = 0
    REFUSED = 1
    """The service refused, or a check failed."""
    USAGE = 2
    """The command, the key or the address is wrong; nothing is sent until it is corrected."""
    OUTCOME_UNKNOWN = 3
    """Money may have moved: find out before you run it again."""
    RESUMABLE = 75
    """Stopped; the same command resumes."""
    INTERRUPTED = 130
    """Ctrl-C; shells use the same number."""
    READER_LEFT = 141
    """The reader of the output has left, as `head` does; shells use the same number (SIGPIPE)."""


class CommandEnded(Exception):
    """Ends a command: `text` is printed on stderr, `code` is the exit code."""

    def __init__(self, text: str, code: Exit) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


_USAGE: Final = (ConfigurationError, BulkError, AuthenticationError, PermissionDeniedError)


def exit_of(error: PaymentsError) -> Exit:
    """The exit code for an error that ends a command."""
    if error.effect == "unknown":
        return Exit.OUTCOME_UNKNOWN
    return Exit.USAGE if isinstance(error, _USAGE) else Exit.REFUSED
