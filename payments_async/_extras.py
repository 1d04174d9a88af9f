"""The extras: what each brings, and the one line that says how to install what is missing."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

EXTRAS: Final = {
    "cli": ("cyclopts", "rich"),
    "sandbox": ("babel", "jinja2", "segno"),
    "bulk": ("sqlalchemy", "greenlet", "aiosqlite"),
    "postgresql": ("psycopg",),
    "parquet": ("pyarrow",),
    "excel": ("openpyxl",),
    "redis": ("redis",),
    "otel": ("opentelemetry",),
    "speed": ("uvloop",),
    "mcp": ("mcp",),
}
"""The libraries of each extra, by the names that one imports; of `postgresql` and `mcp`, those that they add
to other extras."""


def missing_libraries(extras: Iterable[str]) -> list[str]:
    return [library for extra in extras for library in EXTRAS[extra] if not _is_there(library)]


def install_command(extras: Iterable[str]) -> str:
    """The command that adds extras to an installed package. Every shell reads its quotes."""
    return f'pip install "payments-sdk[{",".join(extras)}]"'


def needs(subject: str, *extras: str) -> str:
    """The message about what is missing: all libraries, and the one command that installs them.

    With nothing missing, a library that is installed failed: the error being handled says why.
    """
    if wanting := [extra for extra in extras if missing_libraries((extra,))]:
        return f"{subject} {', '.join(missing_libraries(wanting))}: {install_command(wanting)}"
    libraries = ", ".join(name for extra in extras for name in EXTRAS[extra])
    why = f"which is installed and cannot be imported ({sys.exception()})"
    return f"{subject} {libraries}, {why}: {install_command(extras)}"


def _is_there(library: str) -> bool:
    if library in sys.modules:
        return sys.modules[library] is not None
    try:
        from importlib.util import find_spec  # asked when something is missing, which is rare

        found = find_spec(library)
        # a folder without a module may be anybody's; opentelemetry is one that several distributions share
        return found is not None and (found.origin is not None or library == "opentelemetry")
    except ModuleNotFoundError:  # an import hook said so
        return False
