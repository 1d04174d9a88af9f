"""What a command line needs installed, known before any of it is imported."""

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
    "trigger": ("cli",),
    "webhooks": ("cli",),
}
_STORED: Final = {
    "api": frozenset({"api"}),
    "checkouts": frozenset({"create"}),
    "payouts": frozenset({"create", "find", "list", "wait", "run", "reconcile", "retry-failed"}),
    "guard": frozenset({"begin", "show"}),
}
"""Commands that use the limit store that the environment names: those of `payouts` make a client."""

_STORES: Final[Mapping[str, str]] = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "redis": "redis",
    "rediss": "redis",
}


def required_extras(words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The extras without which a command line cannot run. Its help needs only `cli`."""
    own = words[: words.index("--")] if "--" in words else words
    names = [word for word in own if not word.startswith("-")]
    if not names or asks_for_help(own):
        return ["cli"]
    needed = dict.fromkeys(_OF_COMMAND.get(names[0], ("cli",)))
    values = [word.rpartition("=")[2] for word in own]
    if names[0] == "payouts":
        if "--page" in own:
            needed["sandbox"] = None
        addresses = [*values, environment.get("PAYMENTS_LEDGER", "")]
        if any(_scheme(address).startswith("postgres") for address in addresses):
            needed["postgresql"] = None
        if any(value.endswith(".xlsx") for value in own):
            needed["excel"] = None
    if names[0] in _STORED:
        if any(value.endswith(".parquet") for value in values):
            needed["parquet"] = None
        store = _STORES.get(_scheme(environment.get("PAYMENTS_LIMIT_STORE", "")))
        keeps_sums = names[0] != "guard" or store == "postgresql"  # Redis keeps none
        if store and keeps_sums and _STORED[names[0]] & set(names):
            needed[store] = None
    return list(needed)


def asks_for_help(words: Sequence[str]) -> bool:
    """Whether a command line asks for help."""
    return not {"--help", "-h", "--help-all"}.isdisjoint(words)


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


def _scheme(address: str) -> str:
    scheme, colon, _ = address.partition("://")
    return scheme.lower() if colon else ""
