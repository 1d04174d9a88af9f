"""The words that differ in blocking code."""

from __future__ import annotations

import re

SOURCE, TARGET = "payments_async", "payments_sync"

_WORDS = {
    r"from sqlalchemy\.ext\.asyncio import AsyncConnection, AsyncSession": (
        "from sqlalchemy import Connection\nfrom sqlalchemy.orm import Session"
    ),
    r"\basync (def|with|for)\b": r"\1",
    r"\bawait ": "",
    r"\bAsyncIterator\b": "Iterator",
    r"\bAsync([A-Z]\w*)": r"\1",
    r"\baclose\b": "close",
    r"\b__a(enter|exit)__": r"__\1__",
    r"\bon the run's own event loop\b": "from any thread",
}


class Unmirrored(Exception):
    """Something that cannot have a twin, or a twin without a source; the message says where."""


def blocking(text: str) -> str:
    """The source's text with the words of blocking code."""
    for pattern, word in _WORDS.items():
        text = re.sub(pattern, word, text)
    return text


def header(path: str) -> str:
    """The first line of a generated file."""
    return f"# From {path}; change that, then run: python -m tools.mirror"
