"""How a command ends: by a signal, or with an error and its exit code (`bulk/_protocol/exit_codes.py`)."""

from __future__ import annotations

import threading
from typing import Final, NoReturn

from ..bulk._protocol.exit_codes import Exit as Exit
from ..bulk.errors import BulkError
from ..errors import AuthenticationError, ConfigurationError, PaymentsError, PermissionDeniedError


class CommandEnded(Exception):
    """Ends a command: `text` is printed on stderr, `code` is the exit code.

    With --json a line on stdout says so instead, with these `facts`.
    """

    def __init__(self, text: str, code: Exit, **facts: object) -> None:
        super().__init__(text)
        self.text = text
        self.code = code
        self.facts = facts


_USAGE: Final = (ConfigurationError, BulkError, AuthenticationError, PermissionDeniedError)


def exit_of(error: PaymentsError) -> Exit:
    if error.effect == "unknown":
        return Exit.OUTCOME_UNKNOWN
    return Exit.USAGE if isinstance(error, _USAGE) else Exit.REFUSED


def message_for(error: PaymentsError) -> str:
    """An error's message after its class; a wrong option or variable is named by the message itself."""
    return str(error) if isinstance(error, ConfigurationError) else f"{type(error).__name__}: {error}"


def until_interrupted() -> NoReturn:
    """Sleep until a signal raises KeyboardInterrupt."""
    while True:  # one wait without an end would go on after a signal that came just before it
        threading.Event().wait(1.0)
