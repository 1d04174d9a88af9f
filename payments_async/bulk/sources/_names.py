"""Row keys and references as they are compared: two that only look alike are one. Pure.

A row key is composed once, where it is read; everything behind takes it as it is. A ledger of an earlier
release has its keys as its file had them, and so keeps its references.
"""

from __future__ import annotations

from typing import Final
from unicodedata import normalize

from ..._validation.rules import Text, is_unseen, name_problem

MAX_ROW_KEY: Final = 191


def row_key_fault(row_key: object) -> str | None:
    """What is wrong with an operator's row key."""
    if problem := Text(MAX_ROW_KEY)(row_key):
        return problem
    assert isinstance(row_key, str)
    return name_problem(row_key) if row_key.strip() else "must not be blank"


def compared(name: str) -> str:
    """The name in composed form (NFC), without what `row_key_fault` objects to.

    Of a name without fault it is the composed form; of a faulty one, the name that was probably meant. It is
    empty when nothing can be seen of it.
    """
    if name.isascii() and name.isprintable():
        return name.strip()
    seen = "".join(" " if letter.isspace() else letter for letter in name if not _is_noise(letter))
    return normalize("NFC", seen.strip())


def _is_noise(letter: str) -> bool:
    return is_unseen(letter) and not letter.isspace()
