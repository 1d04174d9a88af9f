"""What a command needs installed, known before any of it is imported.

What a file, a ledger or a limit store needs besides is named when it is opened, before anything is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from .._extras import install_command

_OF_COMMAND: Final[Mapping[str, tuple[str, ...]]] = {
    "api": ("cli", "bulk"),
    "checkouts": ("cli", "bulk"),
    "demo": ("cli", "sandbox"),
    "doctor": ("cli",),
    "guard": ("cli",),
    "mcp": ("cli", "mcp"),
    "sandbox": ("cli", "sandbox"),
    "payouts": ("cli", "bulk"),
    "webhooks": ("cli",),
}


def required_extras(words: Sequence[str]) -> tuple[str, ...]:
    """The extras without which a command line cannot run. Its help needs only `cli`."""
    if asks_for_help(words):
        return ("cli",)
    name = next((word for word in words if not word.startswith("-")), "")
    return _OF_COMMAND.get(name, ("cli",))


def asks_for_help(words: Sequence[str]) -> bool:
    """Whether a command line asks for help; what follows `--` is another program's."""
    own = words[: words.index("--")] if "--" in words else words
    return not {"--help", "-h"}.isdisjoint(own)


def help_without_libraries() -> str:
    """The help of a package that has no extras: what each command needs."""
    commands = "\n".join(
        f"  payments {name:<9} {install_command(extras)}" for name, extras in _OF_COMMAND.items()
    )
    return (
        "payments: Collect payments and send payouts.\n\n"
        "The command is installed, the libraries that it uses are not. This installs\n"
        "them for all commands but mcp:\n\n"
        f"  {install_command(['all'])}\n\n"
        f"Or for one of them:\n\n{commands}\n\n"
        "A ledger in PostgreSQL also needs the extra postgresql, a Parquet file parquet,\n"
        "a workbook excel, a limit store in Redis redis. The clients, payments_async and payments_sync,\n"
        "need none of this."
    )
