"""The error of state files, apart from what reads them, so that it costs no import of SQLite."""

from __future__ import annotations


class StateError(Exception):
    """A state file cannot be used or written; the text says why."""
