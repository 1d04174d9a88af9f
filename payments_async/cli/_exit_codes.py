"""How a command ends, as a number for the shell."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from ..bulk.errors import BulkError
from ..errors import AuthenticationError, ConfigurationError, PaymentsError, PermissionDeniedError


class Exit(IntEnum):
    """Exit codes of every `payments` command."""

    DONE = 0
    REFUSED = 1
    """The service refused, or what was checked is not as it should be."""
    USAGE = 2
    """The command, the key or the address is wrong; nothing is sent until that is mended."""
    OUTCOME_UNKNOWN = 3
    """Money may have moved: find out before you run it again."""
    RESUMABLE = 75
    """Stopped; the same command goes on where it stopped."""
    INTERRUPTED = 130
    """Ctrl-C, the shell's own number for it."""
    READER_LEFT = 141
    """Whoever read the output has left, as `head` does: the shell's own number for that (SIGPIPE)."""


class CommandEnded(Exception):
    """A command ends here: `text` is told on stderr, `code` is its exit code."""

    def __init__(self, text: str, code: Exit) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


_TO_MEND: Final = (ConfigurationError, BulkError, AuthenticationError, PermissionDeniedError)


def exit_of(error: PaymentsError) -> Exit:
    """The exit code for an error that ends a command."""
    if error.effect == "unknown":
        return Exit.OUTCOME_UNKNOWN
    return Exit.USAGE if isinstance(error, _TO_MEND) else Exit.REFUSED
