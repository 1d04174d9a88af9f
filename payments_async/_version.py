"""The package's version, and the message for a library of an extra that is not installed."""

from __future__ import annotations

__version__ = "0.1.0"


def with_extra(extra: str) -> str:
    """The message that names the extra to install, wherever the package was installed from."""
    return f"install payments-sdk with its extra {extra!r}"
