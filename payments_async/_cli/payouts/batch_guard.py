"""The guard that a batch is run under, as commands show it before they record another."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from ...guard import Guard
from .command_context import CommandContext


def guard_text(guards: Sequence[Guard]) -> str:
    """The rules of guards, in the words of their files; `no guard` without any."""
    return " and ".join(json.dumps(guard.rules()) for guard in guards) or "no guard"


def show_guard(guards: Sequence[Guard], digest: str, before: str, context: CommandContext) -> None:
    """Show the rules under which a batch is run from now on."""
    text = f"{guard_text(guards)}; until now {f'guard {before}' if before else 'none'}"
    rules = [guard.rules() for guard in guards]
    context.show.step("Guard", text, good=None, digest=digest or None, before=before or None, rules=rules)


def guards_of_environment() -> tuple[Guard, ...]:
    """The guard of `PAYMENTS_GUARD`. Raises ConfigurationError."""
    path = os.environ.get("PAYMENTS_GUARD")
    return (Guard.from_file(path),) if path else ()
